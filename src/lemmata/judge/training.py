"""Evidence from training: the score a trained system reaches."""

from torch import Tensor

from lemmata.judge.evidence import Evidence
from lemmata.judge.numeric import rounding_unit

__all__ = ["reaches"]


def reaches(score: float | Tensor, target: float | Tensor, *, at_most: bool = False, detail: str = "") -> Evidence:
    """The score is at least the target (an accuracy), or with `at_most` no more than it (a loss).

    >>> reaches(0.97, 0.95).holds, reaches(0.97, 0.95, at_most=True).holds
    (True, False)
    """
    rounding_unit("reaches", score=score, target=target)
    score, target = float(score), float(target)
    return Evidence("training", score, target, detail=detail, relation="≤" if at_most else "≥")
