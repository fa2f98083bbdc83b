"""A system's choices are declared once, in its frozen Config; its constructor's parameters are written from them.

A class whose `__init__` says `self.config = config_of(XConfig, locals())` has a parameter `name: type = XConfig.name`
for each field of XConfig, in their order, where the first of them stands; what follows from the data, `device` and
`dtype` are its own. A field `tuple[int, ...]` is a parameter `Sequence[int]`: callers, and JSON, have lists.
`python -m lemmata.lazy` writes those parameters into the source, for readers, editors and type checkers;
`dev.py lint --fix` does the same.
"""

import ast
import dataclasses
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

__all__ = ["config_of", "rewritten", "signed_files"]

HERE = Path(__file__).resolve().parent
MARK = "config_of("

Config = TypeVar("Config")


def config_of(kind: type[Config], arguments: Mapping[str, Any]) -> Config:
    """The config that a constructor was given in its arguments, `locals()`; a list is taken for a tuple."""
    chosen = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = arguments[field.name]
        several = isinstance(value, list) and isinstance(field.default, tuple)
        chosen[field.name] = tuple(value) if several else value
    return kind(**chosen)


class Parameter(NamedTuple):
    """One parameter of a constructor, or a lone `*` or `/`, as it is written."""

    name: str
    text: str
    default: ast.expr | None = None


def signed_files(root: Path = HERE) -> list[Path]:
    """The files in which a constructor takes its parameters from a Config."""
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if MARK in path.read_text(encoding="utf-8") and list(_config_constructors(ast.parse(path.read_bytes())))
    ]


def rewritten(path: Path, root: Path = HERE) -> str:
    """The source of a file with the parameters of its constructors as their Configs declare them."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, str(path))
    for function, config in reversed(
        list(_config_constructors(tree))
    ):  # from the last: what stands before keeps its place
        start, end = _parameter_span(source, function)
        written = _written_parameters(source, function)
        fields = _config_fields(tree, config, path, root)
        lines = "".join(f"        {parameter.text},\n" for parameter in _merge_parameters(written, config, fields))
        source = f"{source[:start]}(\n{lines}    ){source[end:]}"
    return source


def _config_constructors(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Each `__init__` that calls config_of, and the name of its Config."""
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for function in kind.body:
            if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and ast.unparse(node.func) == "config_of":
                        yield function, ast.unparse(node.args[0])


def _written_parameters(source: str, function: ast.FunctionDef) -> list[Parameter]:
    """The parameters as they are written, `*` and `/` among them."""
    found = function.args
    positional = [*found.posonlyargs, *found.args]
    defaults = [None] * (len(positional) - len(found.defaults)) + found.defaults
    written = [_written_parameter(source, *pair) for pair in zip(positional, defaults, strict=True)]
    if found.posonlyargs:
        written.insert(len(found.posonlyargs), Parameter("/", "/"))
    if found.vararg or found.kwonlyargs:
        star = _written_parameter(source, found.vararg, None).text if found.vararg else ""
        written.append(Parameter("*", f"*{star}"))
    written += [_written_parameter(source, *pair) for pair in zip(found.kwonlyargs, found.kw_defaults, strict=True)]
    if found.kwarg:
        written.append(Parameter("**", f"**{_written_parameter(source, found.kwarg, None).text}"))
    return written


def _written_parameter(source: str, argument: ast.arg, default: ast.expr | None) -> Parameter:
    text = ast.get_source_segment(source, argument) or argument.arg
    if default is not None:
        text += f"{' = ' if argument.annotation else '='}{ast.get_source_segment(source, default)}"
    return Parameter(argument.arg, text, default)


def _merge_parameters(written: list[Parameter], config: str, fields: dict[str, str]) -> list[Parameter]:
    """The parameters with those of the Config in one run, where its first stands, or else before `device`."""

    def declared(parameter: Parameter) -> bool:  # by a field that is there, or by one that is no more
        gone = isinstance(parameter.default, ast.Attribute) and ast.unparse(parameter.default.value) == config
        return parameter.name in fields or gone

    rest = [n for n, parameter in enumerate(written) if parameter.name in ("device", "*", "**")]
    first = next((n for n, parameter in enumerate(written) if declared(parameter)), min(rest, default=len(written)))
    before = [parameter for parameter in written[:first] if not declared(parameter)]
    after = [parameter for parameter in written[first:] if not declared(parameter)]
    return [*before, *(Parameter(name, text) for name, text in fields.items()), *after]


def _config_fields(tree: ast.Module, config: str, path: Path, root: Path) -> dict[str, str]:
    """Name -> parameter as it is written, for every field of a Config that this file defines or imports."""
    kind = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == config), None)
    if kind is None:
        home = _home_of_name(tree, config, path, root)
        return _config_fields(ast.parse(home.read_bytes(), str(home)), config, home, root)
    found: dict[str, str] = {}
    for base in reversed(kind.bases):  # as dataclasses order what they inherit
        inherited = _config_fields(tree, ast.unparse(base), path, root)
        found |= {name: text.replace(f" = {ast.unparse(base)}.", f" = {config}.") for name, text in inherited.items()}
    source = path.read_text(encoding="utf-8")
    for node in kind.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, annotation = node.target.id, ast.get_source_segment(source, node.annotation) or ""
            annotation = re.sub(r"\btuple\[(\w+), \.\.\.\]", r"Sequence[\1]", annotation)
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith("field"):
                raise ValueError(f"{path}: {config}.{name} must have a plain default, which a parameter can repeat")
            found[name] = f"{name}: {annotation}" + (f" = {config}.{name}" if node.value else "")
    return found


def _home_of_name(tree: ast.Module, name: str, path: Path, root: Path) -> Path:
    """The file from which this one imports a name of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            file = root.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if file.exists():
                return file
    raise ValueError(f"{path} must define {name}, or import it from the file that does")


def _parameter_span(source: str, function: ast.FunctionDef) -> tuple[int, int]:
    """Where the list of parameters begins and ends in the source, parentheses included."""
    lines = source.splitlines(keepends=True)
    before = sum(map(len, lines[: function.lineno - 1]))
    depth, start = 0, 0
    for token in tokenize.generate_tokens(io.StringIO(source[before:]).readline):
        position = before + sum(map(len, lines[function.lineno - 1 :][: token.start[0] - 1])) + token.start[1]
        if token.type == tokenize.COMMENT:
            raise ValueError(f"line {function.lineno + token.start[0] - 1}: move the comment out of the parameters")
        if token.string in "([{" and token.type == tokenize.OP:
            start, depth = start or position, depth + 1
        elif token.string in ")]}" and token.type == tokenize.OP:
            depth -= 1
            if depth == 0:
                return start, position + 1
    raise ValueError(f"line {function.lineno}: the list of parameters does not end")


def write_signatures(root: Path = HERE) -> None:
    """Write the constructors of all files that differ from their Configs."""
    for path in signed_files(root):
        text = rewritten(path, root)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
