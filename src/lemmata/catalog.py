"""What the package holds, found without importing it.

Systems and recipes are marked in the chapters (`lemmata.marks`), statements stand in each chapter's `statements.yaml`,
claims and lies are decorated functions: all of it is read from the source by `ast`. So listing everything costs no
import of torch, and adding a system or a claim edits no table.
"""

import ast
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemmata import statements
from lemmata.files import cache_folder
from lemmata.index import Index
from lemmata.statements import COSTS, ID, Argument, Erratum, Statement, dials_in, read_statements

__all__ = [
    "CHAPTERS",
    "Catalog",
    "ClaimEntry",
    "LieEntry",
    "RecipeEntry",
    "SystemEntry",
    "load",
    "promised",
    "read_claims",
]

# The order of the course. A chapter exists once its folder has a statements.yaml or, named here, any file at all.
CHAPTERS = (
    "foundations connectionism feedforward optim tricks convolution recurrent transformers geometric "
    "kernel bayes generalization generative robustness continual meta vision"
).split()
SHARED = ("measure", "fast")  # folders that chapters stand on, which have systems too

SYSTEM_KINDS = "module optimizer estimator function sampler memory".split()

# --- What is found ---


@dataclass(frozen=True)
class LieEntry:
    """A lie as written: its text, the misprint it stands for, and the one argument it changes."""

    text: str
    printed: str = ""
    raises: str = ""
    argument: str = ""
    value: str = ""
    truth: str = ""
    regime: str = ""
    loose: str = ""


@dataclass(frozen=True)
class ClaimEntry:
    """A claim as written: where its check stands and which lies it must reject."""

    id: str
    module: str
    function: str
    path: Path
    line: int
    sentence: str
    lies: tuple[LieEntry, ...] = ()
    cost: str = "quick"
    arguments: tuple[tuple[str, str], ...] = ()  # name and default, as written


@dataclass(frozen=True)
class SystemEntry:
    """A system as written: its name, what it is, and the claims its docstring promises."""

    id: str
    title: str
    kind: str
    chapter: str
    module: str
    name: str
    path: Path
    line: int
    sentence: str
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecipeEntry:
    """A recipe as written: which system it trains, on what (names of data sets, the usual one first), measured how."""

    system: str
    data: str
    metric: str
    module: str
    name: str
    path: Path
    line: int


@dataclass
class Catalog:
    """Everything the package states, checks and builds, with the faults found on the way."""

    statements: dict[str, Statement] = field(default_factory=dict)
    claims: dict[str, ClaimEntry] = field(default_factory=dict)
    systems: dict[str, SystemEntry] = field(default_factory=dict)
    recipes: list[RecipeEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def open(self) -> list[str]:
        """Ids that are stated but have no check yet."""
        return [id for id in self.statements if id not in self.claims]

    def settled(self, id: str, erratum: Erratum) -> str:
        """How a misprint is settled: refuted (a lie says what is printed), read as one of READINGS, or open."""
        if erratum.reading:
            return erratum.reading
        claim = self.claims.get(id)
        return "refuted" if claim and any(lie.printed == erratum.key for lie in claim.lies) else "open"


# --- Reading the source ---


@functools.cache
def load(root: Path | None = None) -> Catalog:
    """Read every chapter below a package folder (default: lemmata itself)."""
    root = root or Path(__file__).parent
    catalog = Catalog()
    kinds = (Statement, Argument, Erratum, ClaimEntry, LieEntry, SystemEntry, RecipeEntry)
    index = Index(cache_folder() / f"catalog-{root.name}.json", kinds, [Path(__file__), Path(statements.__file__)])

    def found(path: Path, kind: str, read: Callable[[list[str]], Iterable[Any]]) -> Iterator[Any]:
        entries, problems = index.read(path, kind, read)
        catalog.problems.extend(problems)
        yield from entries

    for folder in _chapters(root):
        package = f"{root.name}.{folder.name}"
        path = folder / "statements.yaml"
        if path.exists():
            for statement in found(path, "statements", functools.partial(read_statements, folder)):
                _add(catalog.statements, statement, path, catalog.problems)
        for path in sorted((folder / "claims").glob("*.py")):
            read = functools.partial(read_claims, path, f"{package}.claims.{path.stem}")
            for claim in found(path, "claims", read):
                _add(catalog.claims, claim, path, catalog.problems)
        for path in sorted(folder.glob("*.py")):
            read = functools.partial(_systems, path, folder.name, f"{package}.{path.stem}")
            for entry in found(path, "systems", read):
                if isinstance(entry, RecipeEntry):
                    catalog.recipes.append(entry)
                else:
                    _add(catalog.systems, entry, path, catalog.problems)
    index.keep()
    catalog.claims = {id: _with_cost(claim, catalog.statements.get(id)) for id, claim in catalog.claims.items()}
    if not any("not valid YAML" in problem for problem in catalog.problems):  # which would explain all that follow
        catalog.problems += _disagreements(catalog)
    return catalog


def read_claims(path: Path, module: str, problems: list[str]) -> Iterator[ClaimEntry]:
    """The claims of one file, the user's or ours, in the order they stand there."""
    names: set[str] = set()
    for node in _parse(path, problems).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = [d for d in node.decorator_list if isinstance(d, ast.Call)]
        claims = [d for d in marks if _name(d) == "claim"]
        where = f"{path}:{node.lineno}"
        if not claims and not any(getattr(d, "id", "") == "claim" for d in node.decorator_list):
            continue
        id = _literal(claims[0].args[0]) if claims and claims[0].args else None
        if not isinstance(id, str) or not ID.fullmatch(id):
            problems.append(f"{where}: claim() needs a literal id in lower case such as 'perceptron.novikoff'")
            continue
        if node.name in names:
            problems.append(f"{where}: {node.name} is defined twice, which hides the first claim: rename one")
        names.add(node.name)
        defaults = _defaults(node)
        lies = tuple(_lie(d, defaults, where, problems) for d in marks if _name(d) == "lie")
        cost = next((str(_literal(k.value)) for k in claims[0].keywords if k.arg == "cost"), "quick")
        if cost not in COSTS:
            problems.append(f"{where}: cost must be one of {', '.join(COSTS)}, got {cost!r}")
            continue
        yield ClaimEntry(id, module, node.name, path, node.lineno, _sentence(node), lies, cost, tuple(defaults.items()))


def _chapters(root: Path) -> list[Path]:
    found = {path.parent.name: path.parent for path in root.glob("*/statements.yaml")}
    found |= {name: root / name for name in (*CHAPTERS, *SHARED) if (root / name / "__init__.py").is_file()}
    return [found.pop(name) for name in CHAPTERS if name in found] + [found[name] for name in sorted(found)]


def _systems(path: Path, chapter: str, module: str, problems: list[str]) -> Iterator[SystemEntry | RecipeEntry]:
    for node in _parse(path, problems).body:
        for mark in getattr(node, "decorator_list", ()):
            if not isinstance(mark, ast.Call) or _name(mark) not in ("system", "recipe"):
                continue
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            first = _literal(mark.args[0]) if mark.args else None
            words = {keyword.arg or "": _literal(keyword.value) for keyword in mark.keywords}
            where, needed = f"{path}:{node.lineno}", {"recipe": {"data", "metric"}, "system": {"title", "kind"}}
            if not isinstance(first, str) or not all(isinstance(word, str) for word in words.values()):
                problems.append(f"{where}: @{_name(mark)} takes literal strings only")
            elif set(words) != needed[_name(mark)]:
                problems.append(f"{where}: @{_name(mark)} takes a name, {' and '.join(sorted(needed[_name(mark)]))}")
            elif _name(mark) == "recipe":
                yield RecipeEntry(first, words["data"], words["metric"], module, node.name, path, node.lineno)
            elif not re.fullmatch("[a-z0-9_]+", first):
                problems.append(f"{where}: a system's name is in lower case, its words joined by _, got {first!r}")
            elif words["kind"] not in SYSTEM_KINDS:
                problems.append(f"{where}: kind must be one of {', '.join(SYSTEM_KINDS)}, got {words['kind']!r}")
            else:
                place = chapter, module, node.name, path, node.lineno
                claims = promised(ast.get_docstring(node) or "")
                yield SystemEntry(first, words["title"], words["kind"], *place, _sentence(node), claims)


def promised(docstring: str) -> tuple[str, ...]:
    """The ids on a docstring's `Claims:` line, which may run over several lines."""
    found = re.search(r"^Claims:(.*?)(?=^\s*$|^[A-Z]\w*:|\Z)", docstring, re.M | re.S)
    return tuple(re.findall(ID.pattern.replace("(", "(?:"), found.group(1))) if found else ()


def _lie(mark: ast.Call, defaults: dict[str, str], where: str, problems: list[str]) -> LieEntry:
    text = str(_literal(mark.args[0])) if mark.args else ""
    words = {keyword.arg or "": keyword.value for keyword in mark.keywords}
    printed = str(_literal(words.pop("printed", ast.Constant(""))))
    raises = ast.unparse(words.pop("raises")) if "raises" in words else ""
    slack = [str(_literal(words.pop(word, ast.Constant("")))) for word in ("regime", "loose")]
    if len(words) != 1 or not set(words) <= set(defaults):
        problems.append(f"{where}: lie {text!r} must change exactly one argument that has a default")
        return LieEntry(text, printed, raises)
    ((argument, value),) = words.items()
    return LieEntry(text, printed, raises, argument, ast.unparse(value), defaults[argument], *slack)


def _disagreements(catalog: Catalog) -> Iterator[str]:
    for id, claim in catalog.claims.items():
        where = f"{claim.path}:{claim.line}"
        if id not in catalog.statements:
            yield f"{where}: claim {id!r} has no statement: add it to the chapter's statements.yaml"
            continue
        yield from _wrong_dials(catalog.statements[id], claim)
        keys = {erratum.key: erratum for erratum in catalog.statements[id].errata}
        for lie in claim.lies:
            if lie.printed and lie.printed not in keys:
                yield f"{where}: lie {lie.text!r} quotes {lie.printed}, but {id} has {', '.join(keys) or 'no errata'}"
            elif lie.printed and keys[lie.printed].reading:
                yield f"{where}: {lie.printed} of {id} is a lie here and {keys[lie.printed].reading} in statements.yaml"
    for entry in catalog.systems.values():
        for id in entry.claims:
            if id not in catalog.statements:
                yield f"{entry.path}:{entry.line}: {entry.name} promises the unknown claim {id!r}"
    for recipe in catalog.recipes:
        if recipe.system not in catalog.systems:
            yield f"{recipe.path}:{recipe.line}: {recipe.name} trains the unknown system {recipe.system!r}"


def _wrong_dials(statement: Statement, claim: ClaimEntry) -> Iterator[str]:
    """A dial must stand for an argument of the check, and show its true value."""
    defaults = dict(claim.arguments)
    known = {argument.name: argument for argument in statement.arguments}
    where = f"{claim.path.parents[1] / 'statements.yaml'}:{statement.line}: {statement.id}"
    for name in [name for name in known if name not in defaults]:
        yield f"{where} has words for {name!r}, which is no argument of its check"
    for argument in [argument for argument in known.values() if argument.name in defaults]:
        told = {defaults[argument.name]} | {lie.value for lie in claim.lies if lie.argument == argument.name}
        for value in [value for value, _ in argument.values if value not in told]:
            yield f"{where} has a label for {argument.name} = {value}, which the check never has"
    for name, shown in dials_in(statement.dialled):
        if name not in defaults:
            yield f"{where} has a dial {name!r}, which is no argument of its check"
        elif not _shows(shown, defaults[name], known[name].label(defaults[name]) if name in known else ""):
            yield f"{where} shows {shown or 'nothing'} on the dial {name!r}, but the check has {defaults[name]}"


def _shows(shown: str, default: str, label: str) -> bool:
    """Whether what stands on a dial is the true value: a number, a sign, nothing (a factor 1, a summand 0), a label."""
    value = number_in(default)
    if value is None:
        return bool(label) and shown.strip() == label.strip("$").strip()
    if shown.strip() in SIGNS:
        return value in SIGNS[shown.strip()]
    return number_in(shown) == value


SIGNS = {"": (0.0, 1.0), "+": (1.0,), "-": (-1.0,)}
CONSTANTS = {r"\pi": math.pi, "math.pi": math.pi, "e": math.e, "math.e": math.e, r"\log2": math.log(2)}


def number_in(text: str) -> float | None:
    r"""The number that a piece of LaTeX or of source shows, or None.

    >>> number_in("-1"), number_in(r"\tfrac12"), number_in(r"\frac{3}{4}"), number_in("1 / 2"), number_in("x")
    (-1.0, 0.5, 0.75, 0.5, None)
    >>> number_in(r"2\pi e") == number_in("2 * math.pi * math.e") == 2 * math.pi * math.e
    True
    """
    text = re.sub(r"\s", "", text.replace("{,}", "").replace("math.log(2)", r"\log2"))
    text = re.sub(r"\\[td]?frac\{?(\d+?)\}?\{?(\d+)\}?$", r"\1/\2", text)
    factors = re.findall(r"(?:^[+-])?[\d.]+(?:e-?\d+)?(?:/[\d.]+)?|\\pi|\\log2|math\.pi|math\.e|e", text)
    if not factors or re.sub(r"\*|\\cdot|\\,", "", text) != "".join(factors):
        return None
    try:
        return math.prod(map(_factor, factors))
    except (ValueError, ZeroDivisionError):
        return None


def _factor(text: str) -> float:
    above, _, below = text.partition("/")
    return CONSTANTS[text] if text in CONSTANTS else float(above) / float(below or 1)


def _add(known: dict[str, Any], entry: Any, path: Path, problems: list[str]) -> None:
    first = known.setdefault(entry.id, entry)
    if first is not entry:
        where = f"{getattr(first, 'path', path).name}:{first.line}"
        problems.append(f"{path}:{entry.line}: duplicate id {entry.id!r}, which {where} has: rename one")


def _with_cost(claim: ClaimEntry, statement: Statement | None) -> ClaimEntry:
    return ClaimEntry(**{**vars(claim), "cost": statement.cost}) if statement else claim


def _parse(path: Path, problems: list[str]) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (SyntaxError, ValueError, OSError) as error:
        line = getattr(error, "lineno", None) or 1
        problems.append(f"{path}:{line}: not valid Python: {getattr(error, 'msg', error)}")
        return ast.Module([], [])


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None


def _defaults(function: ast.FunctionDef) -> dict[str, str]:
    spec = function.args
    positional = [a.arg for a in spec.posonlyargs + spec.args]
    pairs: Iterable[tuple[str, ast.expr | None]] = [
        *zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True),
        *zip((a.arg for a in spec.kwonlyargs), spec.kw_defaults, strict=True),
    ]
    return {name: ast.unparse(value) for name, value in pairs if value is not None}


def _sentence(node: ast.ClassDef | ast.FunctionDef) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
