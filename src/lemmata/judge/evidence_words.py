"""Evidence in one sentence, the same in the terminal, on the page and in what is remembered of a lie."""

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["sentence"]

BOUNDS = {"=": "", "≤": "at most ", "≥": "at least "}
# A margin below this share of the value is rounding, of which a reader needs no digits.
ROUNDING = 1e-9
PYTHON = {"True": "yes", "False": "no", "None": "nothing"}


def sentence(evidence: Mapping[str, Any] | None) -> str:
    """What was looked at, what was measured and what was predicted, in plain words; of evidence as fields or as JSON.

    >>> sentence({"measured": 9, "predicted": 4, "relation": "=", "margin": 0.0, "detail": "", "alpha": 0.0})
    'measured 9, predicted 4'
    >>> detail = "103 instances, the worst reaches the bound; 4 of 4 checks hold"
    >>> sentence({"measured": 3, "predicted": 3, "relation": "≤", "margin": 1e-15, "detail": detail, "alpha": 0.0})
    '103 instances, the worst reaches the bound: measured 3, predicted at most 3; all 4 checks hold'
    """
    if not evidence:
        return ""
    detail, checks = _split_detail(evidence["detail"])
    told = _comparison_sentence(evidence)
    if evidence["alpha"]:
        told += f" (chance misleads once in {1 / evidence['alpha']:,.0f} times)"
    return (f"{detail}: {told}" if detail else told) + (f"; {checks}" if checks else "")


def _comparison_sentence(evidence: Mapping[str, Any]) -> str:
    if isinstance(evidence["measured"], bool) and isinstance(evidence["predicted"], bool):
        return "as predicted" if evidence["measured"] == evidence["predicted"] else "not as predicted"
    measured, predicted = (_number_in_words(evidence[key]) for key in ("measured", "predicted"))
    margin, relation = evidence["margin"], evidence["relation"]
    if relation == "=" and measured == predicted and not _margin_matters(margin, evidence["predicted"]):
        return f"measured {measured}, as predicted"
    allowed = f" ± {_number_in_words(margin)}" if _margin_matters(margin, evidence["predicted"]) else ""
    return f"measured {measured}, predicted {BOUNDS[relation]}{predicted}{allowed}"


def _margin_matters(margin: Any, predicted: Any) -> bool:
    """Whether a margin says more than that numbers are rounded."""
    if not isinstance(margin, int | float) or margin != margin:
        return False
    size = abs(predicted) if isinstance(predicted, int | float | complex) else 0.0
    return margin > ROUNDING * max(size, 1e-3)


def _split_detail(detail: str) -> tuple[str, str]:
    """The words of the judge that speaks, and how many judges agree with it: see `all_of`."""
    found = re.fullmatch(r"(?:(.*); )?(\d+) of (\d+) checks (hold|failed)", detail)
    if not found:
        return detail, ""
    count, of, outcome = found[2], found[3], found[4]
    if of == "1":
        return found[1] or "", ""
    every = count == of and outcome == "hold"
    return found[1] or "", f"all {of} checks hold" if every else f"{count} of {of} checks {outcome}"


def _number_in_words(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _plain_text(str(value))
    if abs(value) < 1e15 and float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.5g}"


def _plain_text(text: str) -> str:
    """What Python writes of a value, in words.

    >>> _plain_text("((True, True), (True, False))"), _plain_text("torch.Size([2, 3])")
    ('(yes, yes), (yes, no)', '2 × 3')
    >>> _plain_text("('a', 'b')"), _plain_text("(1+2j)")
    ('a, b', '1+2j')
    """
    if size := re.fullmatch(r"torch\.Size\(\[(.*)\]\)", text):
        return size[1].replace(", ", " × ")
    text = re.sub(r"\b(True|False|None)\b", lambda found: PYTHON[found[0]], re.sub(r"'([^']*)'", r"\1", text))
    inner = text[1:-1] if text[:1] + text[-1:] in ("()", "[]", "{}") else ""
    return inner.removesuffix(",") if inner and _has_balanced_brackets(inner) else text


def _has_balanced_brackets(text: str) -> bool:
    """Whether no bracket of a text belongs to one outside it."""
    depth = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return False
    return depth == 0
