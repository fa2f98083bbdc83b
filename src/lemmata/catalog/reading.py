"""Claims, systems and recipes, read from the source by `ast`: nothing is imported."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lemmata.catalog.entries import ClaimEntry, LieEntry, RecipeEntry, SystemEntry
from lemmata.catalog.statements import COSTS, ID

__all__ = ["promised", "read_claims", "read_systems"]

SYSTEM_KINDS = "module optimizer estimator function sampler memory strategy".split()


def read_claims(path: Path, module: str, problems: list[str]) -> Iterator[ClaimEntry]:
    """The claims of one file, the user's or ours, in the order they stand there."""
    names: set[str] = set()
    for node in _parse_file(path, problems).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = [d for d in node.decorator_list if isinstance(d, ast.Call)]
        claims = [d for d in marks if _mark_name(d) == "claim"]
        where = f"{path}:{node.lineno}"
        if not claims and not any(getattr(d, "id", "") == "claim" for d in node.decorator_list):
            continue
        id = _literal_value(claims[0].args[0]) if claims and claims[0].args else None
        if not isinstance(id, str) or not ID.fullmatch(id):
            problems.append(f"{where}: claim() needs a literal id in lower case such as 'perceptron.novikoff'")
            continue
        if node.name in names:
            problems.append(f"{where}: {node.name} is defined twice, which hides the first claim: rename one")
        names.add(node.name)
        defaults = _argument_defaults(node)
        lies = tuple(_lie_entry(d, defaults, where, problems) for d in marks if _mark_name(d) == "lie")
        cost = next((str(_literal_value(k.value)) for k in claims[0].keywords if k.arg == "cost"), "quick")
        if cost not in COSTS:
            problems.append(f"{where}: cost must be one of {', '.join(COSTS)}, got {cost!r}")
            continue
        yield ClaimEntry(
            id, module, node.name, path, node.lineno, _first_paragraph(node), lies, cost, tuple(defaults.items())
        )


def read_systems(
    path: Path, chapter: str, room: str, module: str, problems: list[str]
) -> Iterator[SystemEntry | RecipeEntry]:
    """The systems and recipes that a file marks."""
    for node in _parse_file(path, problems).body:
        for mark in getattr(node, "decorator_list", ()):
            if not isinstance(mark, ast.Call) or _mark_name(mark) not in ("system", "recipe"):
                continue
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            names = [_literal_value(argument) for argument in mark.args]
            words = {keyword.arg or "": _literal_value(keyword.value) for keyword in mark.keywords}
            where, needed = f"{path}:{node.lineno}", {"recipe": {"data", "metric"}, "system": {"title", "kind"}}
            if not names or not all(isinstance(word, str) for word in (*names, *words.values())):
                problems.append(f"{where}: @{_mark_name(mark)} takes literal strings only")
            elif set(words) - ({"example"} if _mark_name(mark) == "system" else set()) != needed[_mark_name(mark)]:
                problems.append(
                    f"{where}: @{_mark_name(mark)} takes a name, {' and '.join(sorted(needed[_mark_name(mark)]))}"
                )
            elif _mark_name(mark) == "recipe":
                for name in names:
                    yield RecipeEntry(name, words["data"], words["metric"], module, node.name, path, node.lineno)
            elif len(names) > 1 or not re.fullmatch("[a-z0-9_]+", names[0]):
                told = ", ".join(map(repr, names))
                problems.append(f"{where}: a system has one name in lower case, its words joined by _, got {told}")
            elif words["kind"] not in SYSTEM_KINDS:
                problems.append(f"{where}: kind must be one of {', '.join(SYSTEM_KINDS)}, got {words['kind']!r}")
            else:
                place = chapter, module, node.name, path, node.lineno
                told = ast.get_docstring(node) or ""
                rest = _first_paragraph(node), promised(told), room, _docstring_source(told), words.get("example", "")
                yield SystemEntry(names[0], words["title"], words["kind"], *place, *rest)


def promised(docstring: str) -> tuple[str, ...]:
    """The ids on a docstring's `Claims:` line, which may run over several lines."""
    found = re.search(r"^Claims:(.*?)(?=^\s*$|^[A-Z]\w*:|\Z)", docstring, re.M | re.S)
    return tuple(re.findall(ID.pattern.replace("(", "(?:"), found.group(1))) if found else ()


def _docstring_source(docstring: str) -> str:
    """What a docstring says after `Source:`, up to the next label."""
    found = re.search(r"(?:^|(?<=\.  ))Source:(.*?)(?=^\s*$|\.  [A-Z]\w*:|^[A-Z]\w*:|\Z)", docstring, re.M | re.S)
    return " ".join(found.group(1).split()) if found else ""


def _lie_entry(mark: ast.Call, defaults: dict[str, str], where: str, problems: list[str]) -> LieEntry:
    text = str(_literal_value(mark.args[0])) if mark.args else ""
    words = {keyword.arg or "": keyword.value for keyword in mark.keywords}
    printed = str(_literal_value(words.pop("printed", ast.Constant(""))))
    raises = ast.unparse(words.pop("raises")) if "raises" in words else ""
    slack = [str(_literal_value(words.pop(word, ast.Constant("")))) for word in ("regime", "loose")]
    if len(words) != 1 or not set(words) <= set(defaults):
        problems.append(f"{where}: lie {text!r} must change exactly one argument that has a default")
        return LieEntry(text, printed, raises)
    ((argument, value),) = words.items()
    return LieEntry(text, printed, raises, argument, ast.unparse(value), defaults[argument], *slack)


def _parse_file(path: Path, problems: list[str]) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (SyntaxError, ValueError, OSError) as error:
        line = getattr(error, "lineno", None) or 1
        problems.append(f"{path}:{line}: not valid Python: {getattr(error, 'msg', error)}")
        return ast.Module([], [])


def _mark_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _literal_value(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None


def _argument_defaults(function: ast.FunctionDef) -> dict[str, str]:
    spec = function.args
    positional = [a.arg for a in spec.posonlyargs + spec.args]
    pairs: Iterable[tuple[str, ast.expr | None]] = [
        *zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True),
        *zip((a.arg for a in spec.kwonlyargs), spec.kw_defaults, strict=True),
    ]
    return {name: ast.unparse(value) for name, value in pairs if value is not None}


def _first_paragraph(node: ast.ClassDef | ast.FunctionDef) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
