"""Evidence: what one run of a check measured, and whether that is what the statement predicts."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from lemmata.figure import Figure

__all__ = ["ALPHA", "BETA", "Degenerate", "Evidence", "Skip", "all_of"]

# With K = 1,000 claims a whole run raises a false alarm less than once in a million: 1e-9 * 1,000.
ALPHA = 1e-9
# A lie is found with probability above 0.999.
BETA = 1e-3

# From the strongest to the weakest ground that a verdict can rest on.
GROUNDS = ("exact", "numeric", "statistical", "training")


class Skip(Exception):
    """Raised by a check that needs something this machine lacks; the message names it."""


class Degenerate(ValueError):
    """Raised when no instance could be drawn on which the truth and the lies differ."""


@dataclass(frozen=True)
class Evidence:
    """Measured against predicted: accepted if they differ by at most the margin.

    `proof` marks exhaustive enumeration or symbolic identity; `weak` says why the evidence cannot count.
    """

    holds: bool
    by: str
    measured: Any
    predicted: Any
    margin: float = 0.0
    alpha: float = 0.0
    detail: str = ""
    proof: bool = False
    weak: str = ""
    figure: Figure | None = None
    relation: str = "="  # "≤" or "≥" where what is predicted is a bound

    def __post_init__(self) -> None:
        if self.by not in GROUNDS:
            raise ValueError(f"by must be one of {', '.join(GROUNDS)}, got {self.by!r}")
        if self.undecided:
            object.__setattr__(self, "holds", False)

    @property
    def undecided(self) -> bool:
        """NaN neither confirms the truth nor rejects a lie."""
        return any(isinstance(v, float) and math.isnan(v) for v in (self.measured, self.predicted, self.margin))

    def showing(self, figure: Figure) -> "Evidence":
        """The same evidence with a figure."""
        return dataclasses.replace(self, figure=figure)

    def to_json(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["figure"] = self.figure.to_json() if self.figure else None
        return {key: _finite(value) for key, value in values.items()}


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
    return dataclasses.replace(
        shown,
        holds=not failed,
        by=max((part.by for part in parts), key=GROUNDS.index),
        alpha=spent,
        detail=f"{shown.detail}; {others}" if shown.detail else others,
        proof=all(part.proof for part in parts),
        weak="" if decided else next((part.weak for part in parts if part.weak), ""),
        figure=next((part.figure for part in parts if part.figure), None),
    )


def _finite(value: Any) -> Any:
    """JSON has no NaN, no infinity, and no types but its own."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return value if value is None or isinstance(value, bool | int | float | str | dict) else str(value)
