"""Evidence: what one run of a check measured, and whether that is what the statement predicts.

Nobody says that evidence holds: that follows from its numbers, here and again for whoever reads them as JSON.
"""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from lemmata.figure import Figure

__all__ = ["ALPHA", "BETA", "Degenerate", "Evidence", "Skip", "all_of"]

# With K = 1,000 claims a whole run raises a false alarm less than once in a million: 1e-9 * 1,000.
ALPHA = 1e-9
# A lie is found with probability above 0.999.
BETA = 1e-3

# From the strongest to the weakest ground that a verdict can rest on.
GROUNDS = ("exact", "numeric", "statistical", "training")
RELATIONS = ("=", "≤", "≥")


class Skip(Exception):
    """Raised by a check that needs something this machine lacks; the message names it."""


class Degenerate(ValueError):
    """Raised when no instance could be drawn on which the truth and the lies differ."""


@final
@dataclass(frozen=True)
class Evidence:
    """Measured against predicted: it holds if they stand in the relation, up to the margin, and nothing is unmet.

    Numbers are compared by value, anything else by its text. `unmet` names a further condition that failed, `weak`
    says why the evidence cannot count. `proof` is not for the caller to say: it marks what a judge enumerated itself
    (`everywhere`) or proved by algebra (`symbolic`).

    >>> Evidence("numeric", 1.0, 1.5, margin=0.5).holds, Evidence("numeric", 1, 99).holds
    (True, False)
    """

    by: str
    measured: Any
    predicted: Any
    margin: float = 0.0
    alpha: float = 0.0
    detail: str = ""
    weak: str = ""
    unmet: str = ""
    figure: Figure | None = None
    relation: str = "="  # "≤" or "≥" where what is predicted is a bound
    parts: tuple["Evidence", ...] = ()
    proof: bool = field(default=False, init=False)
    # How to draw what was measured, where a reader watches: see pictures.py. No part of the evidence itself.
    picture: ClassVar[Callable[[], Figure | None] | None] = None

    def __init_subclass__(cls) -> None:
        raise TypeError("Evidence holds by its numbers, and no class of its own may say otherwise")

    def __post_init__(self) -> None:
        if self.by not in GROUNDS:
            raise ValueError(f"by must be one of {', '.join(GROUNDS)}, got {self.by!r}")
        if self.relation not in RELATIONS:
            raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {self.relation!r}")
        for name in ("measured", "predicted", "margin"):
            object.__setattr__(self, name, _plain_values(getattr(self, name)))
        if not isinstance(self.margin, int | float) or self.margin < 0:
            raise ValueError(f"margin must be a number >= 0, got {self.margin!r}")

    @property
    def holds(self) -> bool:
        """Whether the numbers say so: those of every part too, where there are parts."""
        stands = _relation_stands(self.measured, self.relation, self.predicted, self.margin)
        return stands and not (self.weak or self.unmet) and all(part.holds for part in self.parts)

    @property
    def undecided(self) -> bool:
        """NaN neither confirms the truth nor rejects a lie; nor does a margin without end, which allows everything."""
        return _is_undecided(self.measured, self.predicted, self.margin)

    def showing(self, figure: Figure | None) -> "Evidence":
        """The same evidence with this figure, or with none."""
        other = copy.copy(self)
        object.__setattr__(other, "figure", figure)
        return other

    def to_json(self) -> dict[str, Any]:
        values = {f.name: _json_number(getattr(self, f.name)) for f in dataclasses.fields(self)}
        figure = self.figure.to_json() if self.figure else None
        parts = [part._decisive_numbers() for part in self.parts]
        return {"holds": self.holds, **values, "figure": figure, "parts": parts}

    def _decisive_numbers(self) -> dict[str, Any]:
        """What decides whether a part holds, as JSON, and no more: some claims have hundreds of parts."""
        kept = {"measured": _json_number(self.measured), "predicted": _json_number(self.predicted)}
        kept |= {"margin": _json_number(self.margin)} if self.margin != 0 else {}
        kept |= {"relation": self.relation} if self.relation != "=" else {}
        kept |= {name: getattr(self, name) for name in ("weak", "unmet") if getattr(self, name)}
        return kept | ({"parts": [part._decisive_numbers() for part in self.parts]} if self.parts else {})


def all_of(*parts: Evidence) -> Evidence:
    """All parts must hold. Reports the first that fails, else the first: put what the statement says there."""
    if not parts:
        raise ValueError("all_of needs at least one piece of evidence")
    for part in parts:
        if not isinstance(part, Evidence):
            raise TypeError(
                f"all_of takes evidence, got {type(part).__name__}: return the result of a judge such as close"
            )
    spent = sum(part.alpha for part in parts)
    if spent > ALPHA * 1.001:
        raise ValueError(
            f"the parts spend alpha = {spent:.1e} of {ALPHA:.0e}: give each of k statistical parts alpha=1e-9 / k"
        )
    # One part that fails for certain decides; NaN and weak evidence speak only where nothing else does.
    failed = sorted((part for part in parts if not part.holds), key=lambda part: part.undecided or bool(part.weak))
    decided = bool(failed) and not (failed[0].undecided or failed[0].weak)
    shown = failed[0] if failed else parts[0]
    others = f"{len(failed) or len(parts)} of {len(parts)} checks {'failed' if failed else 'hold'}"
    whole = dataclasses.replace(
        shown,
        by=max((part.by for part in parts), key=GROUNDS.index),
        alpha=spent,
        detail=f"{shown.detail}; {others}" if shown.detail else others,
        weak="" if decided else next((part.weak for part in parts if part.weak), ""),
        figure=next((part.figure for part in parts if part.figure), None),
        parts=parts,
    )
    return proved(whole) if all(part.proof for part in parts) else whole


def proved(evidence: Evidence) -> Evidence:
    """Mark as a proof what holds. For judges that went through every case or did the algebra, and for no one else."""
    other = copy.copy(evidence)
    object.__setattr__(other, "proof", evidence.holds)
    return other


def consistent(evidence: Mapping[str, Any], holds: bool) -> bool:
    """Whether the numbers of evidence that came as JSON say what was said of it: that it holds, or that it fails.

    Undecided and weak evidence says neither.
    """
    if holds or not evidence.keys() >= {"measured", "predicted", "margin"}:
        return holds and _numbers_hold(evidence)
    values = (_number_from_json(evidence.get(name)) for name in ("measured", "predicted", "margin"))
    return not (_is_undecided(*values) or evidence.get("weak") or _numbers_hold(evidence))


def failed_part(evidence: Mapping[str, Any] | None) -> list[int]:
    """The way to the first part of a part of evidence (as JSON) that fails, by numbers; empty where it has none."""
    parts = (evidence or {}).get("parts") or ()
    found = next((k for k, part in enumerate(parts) if not _numbers_hold(part)), None)
    return [] if found is None else [found, *failed_part(parts[found])]


# --- The rule ---


def _relation_stands(measured: Any, relation: str, predicted: Any, margin: Any) -> bool:
    """Whether numbers stand in the relation up to the margin; anything else is equal or not."""
    if _is_undecided(measured, predicted, margin):
        return False
    if measured == predicted:
        return True
    numbers = (int, float, complex) if relation == "=" else (int, float)
    if not all(isinstance(value, numbers) for value in (measured, predicted)):
        return False
    if not margin:  # a difference would be rounded: 2^53 + 1 is not 2.0^53
        return relation != "=" and (measured < predicted) is (relation == "≤")
    try:
        excess = measured - predicted
    except OverflowError:  # an integer beyond all floats, and a float
        return False
    return {"=": abs(excess), "≤": excess, "≥": -excess}[relation] <= margin


def _is_undecided(measured: Any, predicted: Any, margin: Any) -> bool:
    nan = any(isinstance(v, float | complex) and v != v for v in (measured, predicted))
    return nan or not isinstance(margin, int | float) or not math.isfinite(margin)


def _numbers_hold(evidence: Mapping[str, Any]) -> bool:
    """The rule on JSON; a part leaves out what is as usual."""
    if not evidence.keys() >= {"measured", "predicted"}:
        return False
    measured, predicted, margin = (
        _number_from_json(evidence.get(name, 0.0)) for name in ("measured", "predicted", "margin")
    )
    stands = _relation_stands(measured, evidence.get("relation", "="), predicted, margin)
    met = not (evidence.get("weak") or evidence.get("unmet"))
    return stands and met and all(_numbers_hold(part) for part in evidence.get("parts", ()))


# --- Values that JSON can carry, and back ---


def _plain_values(value: Any) -> Any:
    """Numbers as Python has them, anything else as text: what is compared is what is shown."""
    if hasattr(value, "item"):  # a tensor or an array of one number
        try:
            value = value.item()
        except (RuntimeError, ValueError):
            value = str(value)
    if not (value is None or isinstance(value, bool | int | float | complex | str)):
        value = str(value)
    # The word "nan" is not a number, although as JSON a NaN is written so.
    return repr(value) if isinstance(value, str) and not isinstance(_number_from_json(value), str) else value


def _json_number(value: Any) -> Any:
    """JSON has no NaN, no infinity, no complex numbers, and no types but its own."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return value if value is None or isinstance(value, bool | int | float | str | dict) else str(value)


def _number_from_json(value: Any) -> Any:
    """What `_json_number` made of a number, as that number again."""
    if not isinstance(value, str):
        return value
    if value in ("nan", "inf", "-inf"):
        return float(value)
    try:
        return complex(value) if value.endswith(("j", "j)")) else value
    except ValueError:
        return value
