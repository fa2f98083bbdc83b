r"""Dials in formulas: `\dial{name}{value}` marks the symbol that an argument of the check stands for."""

import math
import re

__all__ = ["NEUTRAL", "dials_in", "number_in", "shows", "without_dials", "without_exponents_one"]

DIAL = re.compile(r"\\dial\{(\w+)\}\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


def without_dials(latex: str) -> str:
    r"""Plain LaTeX: every dial replaced by the value that stands in it; a neutral one is not written.

    >>> without_dials(r"at most $\dial{round}{\lfloor}\dial{factor}{}R^{\dial{power}{2}}\rfloor$")
    'at most $\\lfloor R^{2}\\rfloor$'
    """
    latex = DIAL.sub(lambda found: rf"\dial{{{found[1]}}}{{}}" if found[2].strip() in NEUTRAL else found[0], latex)
    latex = re.sub(rf"\^\{{{DIAL.pattern}\}}", lambda found: found[0] if found[2].strip() else "\0", latex)
    # A command before or at the end of a dial must not swallow the letter that follows.
    marked = DIAL.sub("\0\\2\0", latex)
    return re.sub(r"(\\[a-zA-Z]+)\0+(?=[a-zA-Z])", r"\1 ", marked).replace("\0", "")


def without_exponents_one(latex: str) -> str:
    r"""The same formulas, where an exponent 1 that can be moved is written as nothing until it is.

    >>> without_exponents_one(r"$\dial{factor}{1}x^{\dial{power}{1}}$")
    '$\\dial{factor}{1}x^{\\dial{power}{}}$'
    """
    return re.sub(r"(\^\{\\dial\{\w+\})\{1\}(?=\})", r"\1{}", latex)


def dials_in(latex: str) -> list[tuple[str, str]]:
    r"""(name, value) of every dial in a text.

    >>> dials_in(r"$\dial{factor}{\tfrac12}x^{\dial{power}{2}}$")
    [('factor', '\\tfrac12'), ('power', '2')]
    """
    return DIAL.findall(latex)


def shows(shown: str, default: str, label: str) -> bool:
    """Whether what stands on a dial is the true value: a number, a sign, nothing (a factor 1, a summand 0), a label."""
    value = number_in(default)
    if value is None:
        return bool(label) and shown.strip() == label.strip("$").strip()
    if shown.strip() in SIGNS:
        return value in SIGNS[shown.strip()]
    return number_in(shown) == value


SIGNS = {"": (0.0, 1.0), "+": (1.0,), "-": (-1.0,), "/": (1.0,), "-0": (0.0,)}
# A divisor 1 and a subtrahend 0: like a factor 1 and a summand 0, which are written as nothing, they appear once moved.
NEUTRAL = ("", "/", "-0")
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
        return math.prod(map(_dial_factor, factors))
    except (ValueError, ZeroDivisionError):
        return None


def _dial_factor(text: str) -> float:
    above, _, below = text.partition("/")
    return CONSTANTS[text] if text in CONSTANTS else float(above) / float(below or 1)
