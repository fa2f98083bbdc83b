"""What a reader can turn on a lie, in a reader's words, and what the formula shows at each position.

The page must not wait for a child process to say it: a lie whose values are written as plain numbers, or as something
that is no number for certain, has its dial from the source. What only running the code can tell is asked of it: see
`dials_of` in views/probe.py.
"""

import ast
import math
import operator
from collections.abc import Callable
from html import escape
from typing import Any

from lemmata.catalog import LieEntry
from lemmata.catalog.dials import dials_in
from lemmata.catalog.statements import Argument, Statement
from lemmata.catalog.unicode_math import unicode_math
from lemmata.judge.dial import Dial, dial_of
from lemmata.lab.site.formulas import inside, pieces, prose, style_of

__all__ = ["guess", "reader_view"]

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
CONSTANTS = {"math.pi": math.pi, "math.e": math.e, "math.tau": math.tau, "math.inf": math.inf, "math.nan": math.nan}
FUNCTIONS = {"math.sqrt": math.sqrt, "math.log": math.log, "math.exp": math.exp}
# Written so, a value is no number, whatever else it is.
NO_NUMBERS = (ast.Lambda, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr)
AS_STATED = "as stated"
MINUS = '<mo form="prefix" lspace="0" rspace="0">−</mo>'


def guess(lie: LieEntry) -> Dial | None:
    """The dial of a lie as far as its source tells; None where only running the code can.

    >>> guess(LieEntry("", argument="sign", value="1.0", truth="-math.pi / 2"))
    Dial(argument='sign', kind='real', truth=-1.5707963267948966, lie=1.0)
    """
    values = []
    for source in (lie.truth, lie.value):
        try:
            values.append(_number_of_node(ast.parse(source, mode="eval").body))
        except (ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError, RecursionError):
            return None
    return dial_of(lie.argument, *values)


def reader_view(dial: Dial, lie: LieEntry, statement: Statement) -> dict[str, Any]:
    """A dial as the page shows it: words for its argument, for its ends and for every position.

    `formula` has what a formula shows at each position, by the style in which it marks this argument; at the truth it
    shows what it says itself, so that the first entry is empty.
    """
    known = next((a for a in statement.arguments if a.name == lie.argument), Argument(lie.argument, ""))
    values = [dial.value(k) for k in range(dial.last + 1)]
    if dial.kind == "switch":
        texts = [known.label(lie.truth) or AS_STATED, known.label(lie.value) or lie.text]
    else:
        texts = [shown(value) for value in values]
    words = known.words or lie.argument.replace("_", " ")
    two = dial.last == 1  # nothing lies between them: a switch, whatever stands on it
    worded = any(name == lie.argument for before, _, _ in pieces(statement.dialled) for name, _ in dials_in(before))
    styles = {style_of(value) for name, value in dials_in(statement.dialled) if name == lie.argument}
    return {
        "argument": lie.argument,
        "kind": "switch" if two else dial.kind,
        "words": words,
        "heard": unicode_math(words),
        "values": values,
        "texts": texts,
        "spoken": [unicode_math(text) for text in texts],  # a screen reader names no control by a formula
        "ends": ["", lie.text if two and texts[1] != lie.text else ""],
        "last": dial.last,
        "formula": {style: ["", *_moved_markup(style, dial, texts)] for style in styles}
        | ({"words": ["", *(str(prose(text)) for text in texts[1:])]} if worded else {}),
    }


def shown(value: float) -> str:
    """A number as a reader writes it.

    >>> shown(-0.5), shown(20000), shown(2 * math.pi)
    ('−0.5', '20,000', '6.2832')
    """
    text = f"{int(value):,}" if float(value).is_integer() else f"{value:.5g}"
    return text.replace("-", "−")


def _moved_markup(style: str, dial: Dial, texts: list[str]) -> list[str]:
    """MathML for every position but the first."""
    if dial.kind == "switch":
        return [inside(texts[1])]
    return [_written_value(style, dial.value(k), dial.truth) for k in range(1, dial.last + 1)]


def _written_value(style: str, value: float, truth: float) -> str:
    """MathML of a moved value: a number; a sign, or a signed number; what is neutral at the truth, and not printed."""
    size = f"<mn>{escape(shown(abs(value)))}</mn>"
    if style == "number" or (style == "nothing" and truth != 0):
        return MINUS + size if value < 0 else size
    if style == "divisor":
        return "<mo>/</mo>" + (MINUS + size if value < 0 else size)
    value = -value if style == "subtrahend" else value
    sign = f"<mo>{'−' if value < 0 else '+'}</mo>"
    return sign if style == "sign" and abs(value) == 1 else sign + size


def _number_of_node(node: ast.AST) -> Any:
    """What an expression of numbers comes to, by the operations that Python itself would do; else ValueError."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, NO_NUMBERS):
        return None
    if isinstance(node, ast.UnaryOp | ast.BinOp) and type(node.op) in OPERATORS:
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        return OPERATORS[type(node.op)](*map(_number_of_node, parts))
    if isinstance(node, ast.Attribute) and (name := ast.unparse(node)) in CONSTANTS:
        return CONSTANTS[name]
    if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in FUNCTIONS and not node.keywords:
        return FUNCTIONS[name](*map(_number_of_node, node.args))
    raise ValueError("not a plain number")
