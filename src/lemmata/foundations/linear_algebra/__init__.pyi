"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.linear_algebra.general_position import dependent_subset as dependent_subset
from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank as DiagonalPlusLowRank

__all__ = [
    "DiagonalPlusLowRank",
    "dependent_subset",
]
