"""Mutants of a source file: each is the file with one piece of its arithmetic or logic broken.

What is no arithmetic is left alone: docstrings, annotations, decorators, messages, representations, saved state, and
the guards against bad input. A mutant is text: one span of the file replaced, every other byte and line kept.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation.unclaimed import FUNCTION, Checks, called, is_text, left_alone

__all__ = ["Mutant", "mutants"]

# Pairs that are mistaken for one another.
OTHERS = (
    "min max, amin amax, argmin argmax, minimum maximum, cummin cummax, any all, sum mean, cumsum cumprod, floor ceil, "
    "zeros ones, zeros_like ones_like, new_zeros new_ones, zeros_ ones_"
)
OTHER = {a: b for pair in OTHERS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
BUILTINS = ("min", "max", "any", "all")

# Swapping the arguments of these changes nothing, or is nonsense that any run would notice.
UNSWAPPED = frozenset(
    "min max minimum maximum add mul multiply equal eq ne allclose isclose logaddexp dot gcd hypot promote_types "
    "result_type isinstance issubclass hasattr getattr setattr __setattr__ map filter".split()
)
LAST_SWAPPED = frozenset("addcmul addcmul_".split())  # their last two arguments are the factors of a product
EVEN = frozenset("abs square norm vector_norm matrix_norm p_norm frobenius_norm fabs".split())  # f(-x) = f(x)

# Functions that take the number of a dimension.
OF_A_DIMENSION = frozenset(
    "size flip unsqueeze squeeze flatten transpose movedim softmax log_softmax logsumexp cumsum cumprod sum mean any "
    "all argmax argmin amax amin cat stack unbind chunk split select narrow diagonal roll".split()
)

# One more than an integer as large as this is as good: it is a capacity, a block, a number of draws. So is a
# default from ten on: a size that whoever wants another one gives.
CAPACITY, DEFAULT_CAPACITY = 1000, 10

# Twice a tolerance is the same tolerance: nothing that anybody could or should see.
TOLERANCE = 1e-5

# Arguments that guard, hurry or hide and never change a result.
INERT = frozenset("strict capture_output timeout maxsize stacklevel non_blocking foreach fused lasting".split())


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the bytes from `start` to `end` are replaced by `text`.

    `row` is the source line it starts on, `last` the number of the line it ends on, `lines` are the first and last of
    the statement around it (None outside functions, where importing runs it).
    """

    path: Path
    line: int
    column: int
    operator: str
    before: str
    after: str
    start: int
    end: int
    text: str
    row: str
    last: int
    lines: tuple[int, int] | None = None

    @property
    def id(self) -> str:
        return f"{self.path.name}:{self.line}:{self.column} {self.operator}: {self.before} -> {self.after}"

    def of(self, source: bytes) -> bytes:
        """The whole file with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(path: Path | str, source: bytes | None = None) -> list[Mutant]:
    r"""Every mutant of a file, in the order of the source; of `source` where that is given.

    >>> for mutant in mutants("line.py", b"def line(x, slope):\n    return slope * x + 1\n"):
    ...     print(mutant.id)
    line.py:2:12 dropped term: slope * x -> slope
    line.py:2:12 dropped term: slope * x -> x
    line.py:2:12 sign: slope * x + 1 -> slope * x - 1
    line.py:2:12 dropped term: slope * x + 1 -> slope * x
    line.py:2:12 dropped term: slope * x + 1 -> 1
    line.py:2:24 off by one: 1 -> 2
    """
    path = Path(path)
    source = path.read_bytes() if source is None else source
    tree = ast.parse(source, str(path))
    spans = _Spans(path, source)
    found = {}
    checks = Checks(tree)
    for place in _places(tree, left_alone(tree, checks)):
        for operator, change in OPERATORS.items():
            if change is _swapped and checks.calls(place.node):
                continue
            for new in change(place.node, place.parent):
                mutant = spans.mutant(place, operator, new)
                found.setdefault((mutant.start, mutant.end, mutant.text), mutant)
    return sorted(found.values(), key=lambda mutant: (mutant.start, mutant.end))  # stable: then by operator


# --- The operators: from a node to its broken neighbours ---


def _sign(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """a + b and a - b, -x and x, ~x and x."""
    other = {ast.Add: ast.Sub, ast.Sub: ast.Add}
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in other and not _literal_sequence(node):
        yield _with(node, op=other[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and not (
        _even(node, parent) or _is_dimension(node, parent) or _written_out(parent)
    ):
        yield from [] if isinstance(node.op, ast.UAdd) else [node.operand]


def _off_by_one(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """n and n + 1, the bounds of ranges and slices, < and <=."""
    other = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield from [] if _is_capacity(node.value, parent) else [ast.Constant(node.value + 1)]
    elif isinstance(node, ast.expr) and _is_bound(node, parent):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
    yield from _comparisons(node, other)


def _dropped_term(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """a + b and a, a * b and a, one of several conditions, a step that is left out."""
    if isinstance(node, ast.BinOp) and not _literal_text(node) and not _written_out(node):
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            yield node.left
        if isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
            yield node.right
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            yield node.left
    elif isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            yield _with(node, values=rest) if len(rest) > 1 else rest[0]
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass()


def _swapped(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """f(a, b) and f(b, a), a - b and b - a, a / b and b / a."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
        if not _written_out(node) and not (isinstance(node.op, ast.Sub) and _even(node, parent)):
            yield _with(node, left=node.right, right=node.left)
    elif isinstance(node, ast.Call) and called(node) not in UNSWAPPED:
        pairs = list(enumerate(zip(node.args, node.args[1:], strict=False)))
        for index, (a, b) in pairs[:-1] if called(node) in LAST_SWAPPED else pairs:
            if _exchangeable(a) and _exchangeable(b) and ast.dump(a) != ast.dump(b):
                yield _with(node, args=[*node.args[:index], b, a, *node.args[index + 2 :]])


def _constant(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """c and 2c, 0 and 1, True and False."""
    if isinstance(node, ast.Constant) and getattr(parent, "arg", "") not in INERT:
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, float | complex) and (node.value == 0 or abs(node.value) > TOLERANCE):
            yield ast.Constant(2 * node.value if node.value else node.value + 1.0)


def _flipped(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """== and !=, < and >, `and` and `or`, a condition and its negation."""
    pairs = [(ast.Eq, ast.NotEq), (ast.Lt, ast.Gt), (ast.LtE, ast.GtE), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
    other = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    yield from _comparisons(node, other)
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        yield _with(node, op=ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd())
    elif isinstance(node, ast.expr) and not isinstance(node, ast.Compare | ast.UnaryOp | ast.Constant):
        conditions = [*getattr(parent, "ifs", ()), getattr(parent, "test", None)]
        if any(node is condition for condition in conditions):
            yield ast.UnaryOp(ast.Not(), node)


def _other_function(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """min and max, any and all, sum and mean, zeros and ones."""
    if isinstance(node, ast.Attribute) and node.attr in OTHER:
        yield _with(node, attr=OTHER[node.attr])
    elif isinstance(node, ast.Name) and node.id in BUILTINS and isinstance(node.ctx, ast.Load):
        yield _with(node, id=OTHER[node.id])
    elif isinstance(node, ast.keyword) and node.arg in ("min", "max"):
        yield _with(node, arg=OTHER[node.arg])


OPERATORS: dict[str, Callable[[ast.AST, ast.AST], Iterator[ast.AST]]] = {
    "sign": _sign,
    "off by one": _off_by_one,
    "dropped term": _dropped_term,
    "swapped arguments": _swapped,
    "changed constant": _constant,
    "flipped condition": _flipped,
    "other function": _other_function,
}


def _comparisons(node: ast.AST, other: dict[type, type]) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, op in enumerate(node.ops):
            if type(op) in other:
                yield _with(node, ops=[*node.ops[:index], other[type(op)](), *node.ops[index + 1 :]])


def _is_bound(node: ast.expr, parent: ast.AST) -> bool:
    """A computed bound of a range or slice; the whole length of something is as good as any larger number."""
    numbered = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant)  # n + 1: its number is mutated
    if numbered or isinstance(node, ast.Constant | ast.UnaryOp | ast.Starred):
        return False
    if isinstance(parent, ast.Slice):
        whole = isinstance(node, ast.Call) and called(node) == "len" and node is parent.upper
        return node is not parent.step and not whole
    return isinstance(parent, ast.Call) and called(parent) == "range" and node in parent.args[:2]


def _even(node: ast.expr, parent: ast.AST) -> bool:
    """Whether what stands around a term forgets its sign: |a - b|, (a - b)^2."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in EVEN
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow) and node is parent.left:
        return isinstance(parent.right, ast.Constant) and parent.right.value in (2, 4)
    return isinstance(parent, ast.Call) and called(parent) in EVEN and node in parent.args[:1]


def _is_dimension(node: ast.UnaryOp, parent: ast.AST) -> bool:
    """`dim=-1`, `x.shape[-1]`, `x.size(-1)`: of a matrix 1 is the same, and -2, which is tried, is another."""
    if not isinstance(node.op, ast.USub) or type(getattr(node.operand, "value", None)) is not int:
        return False
    if isinstance(parent, ast.keyword):
        return parent.arg in ("dim", "axis")
    if isinstance(parent, ast.Subscript):
        return getattr(parent.value, "attr", "") == "shape"
    return isinstance(parent, ast.Call) and called(parent) in OF_A_DIMENSION


def _is_capacity(number: int, parent: ast.AST) -> bool:
    """A number whose successor does as well: large, a default size, a power written out (1 << 20, 10**7), or inert."""
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.AnnAssign):
        return number >= DEFAULT_CAPACITY
    return number >= CAPACITY or getattr(parent, "arg", "") in INERT or _written_out(parent)


def _written_out(node: ast.AST) -> bool:
    """A power of literals (1 << 20, 10**7, 2.0**-40): one number, which happens to be read more easily so."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.LShift | ast.Pow):
        return False
    exponent = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
    return isinstance(node.left, ast.Constant) and isinstance(exponent, ast.Constant)


def _literal_text(node: ast.BinOp) -> bool:
    """Words put together: nobody computes with them."""
    return isinstance(node.op, ast.Add | ast.Mod) and (is_text(node.left) or is_text(node.right))


def _literal_sequence(node: ast.BinOp | ast.AugAssign) -> bool:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(isinstance(side, ast.List | ast.Tuple | ast.ListComp) or is_text(side) for side in sides)


def _exchangeable(argument: ast.expr) -> bool:
    """Not a text, a shape or a list: in another's place those are nonsense that any run would notice."""
    return not isinstance(argument, ast.Starred | ast.Tuple | ast.List | ast.Lambda) and not is_text(argument)


def _with(node: ast.AST, **changed: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in changed.items():
        setattr(new, name, value)
    return new


# --- Where mutants may stand ---


@dataclass(frozen=True)
class _Place:
    node: ast.AST
    parent: ast.AST
    statement: ast.stmt | None  # the innermost one, where the node stands inside a function


def _places(tree: ast.Module, alone: set[ast.AST]) -> Iterator[_Place]:
    waiting: list[_Place] = [_Place(node, tree, None) for node in tree.body]
    while waiting:
        place = waiting.pop()
        node = place.node
        if node in alone:
            continue
        yield place
        for child in _children(node):
            within = place.statement is not None or (isinstance(node, FUNCTION) and child in node.body)
            statement = child if isinstance(child, ast.stmt) else place.statement
            waiting.append(_Place(child, node, statement if within else None))


def _children(node: ast.AST) -> list[ast.AST]:
    """What is computed below a node: no annotations, decorators, base classes or messages."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        defaults = [*node.args.defaults, *(value for value in node.args.kw_defaults if value)]
        return [*defaults, *(node.body if isinstance(node.body, list) else [node.body])]
    if isinstance(node, ast.ClassDef):
        return list(node.body)
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value else []
    if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return []
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context | ast.operator)]


# --- From nodes to text ---


class _Spans:
    """Places of a file in bytes, as `ast` counts its columns."""

    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source = path, source
        self.rows = source.splitlines(keepends=True)
        self.starts = [0]
        for row in self.rows:
            self.starts.append(self.starts[-1] + len(row))

    def mutant(self, place: _Place, operator: str, new: ast.AST) -> Mutant:
        node: ast.expr = place.node  # type: ignore[assignment]  (statements and keywords have the same four numbers)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        before = " ".join(self.source[start:end].decode().split())
        after = " ".join(ast.unparse(new).split())
        row, text = self.rows[node.lineno - 1], _text(new, self.source[start:end].count(b"\n"))
        return Mutant(
            self.path, node.lineno, len(row[: node.col_offset].decode()) + 1, operator, before, after, start, end, text,
            row.decode().strip(), node.end_lineno, _lines(place.statement),
        )  # fmt: skip


def _text(new: ast.AST, lost: int) -> str:
    """The new piece, in parentheses where it needs them, over as many lines as the old one."""
    text = ast.unparse(new)
    if isinstance(new, ast.expr) and (lost or not isinstance(new, ast.Constant | ast.Name | ast.Attribute | ast.Call)):
        return f"({text}{chr(10) * lost})"
    return text + "\n" * lost


def _lines(statement: ast.stmt | None) -> tuple[int, int] | None:
    """First and last line of a statement; of one with a body, its head and where that begins."""
    if statement is None:
        return None
    body = getattr(statement, "body", None)
    last = body[0].lineno if body else statement.end_lineno
    return statement.lineno, last or statement.lineno
