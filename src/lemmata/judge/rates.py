"""Evidence for rates and orders: the slope on logarithmic axes."""

from typing import Any

import torch

from lemmata.judge import pictures
from lemmata.judge.evidence import Evidence
from lemmata.judge.numeric import rounding_unit
from lemmata.judge.pictures import while_watched

__all__ = ["slope_is"]


def slope_is(x: Any, y: Any, predicted: float, *, within: float) -> Evidence:
    """y grows like x to the power `predicted`: the least-squares slope of log y over log x.

    `within` must be less than half the distance to the nearest lie's exponent; the check of that is the lie itself.

    >>> slope_is([1.0, 2.0, 4.0], [3.0, 12.0, 48.0], 2.0, within=0.1).holds
    True
    """
    if not within > 0:
        raise ValueError(f"within must be > 0, got {within}")
    rounding_unit("slope_is", x=x, y=y)
    horizontal, vertical = (torch.as_tensor(side, dtype=torch.float64).flatten() for side in (x, y))
    if horizontal.numel() != vertical.numel() or horizontal.numel() < 3:
        raise ValueError(
            f"a slope needs three points or more with both coordinates, got {len(horizontal)} and {len(vertical)}"
        )
    if bool((horizontal <= 0).any() or (vertical <= 0).any()):
        raise ValueError("a slope on logarithmic axes needs positive values")
    across, up = horizontal.log(), vertical.log()
    across = across - across.mean()
    slope = float((across * (up - up.mean())).sum() / across.square().sum())
    evidence = Evidence("numeric", slope, float(predicted), within, detail=f"slope over {len(across)} points")
    return while_watched(evidence, lambda: pictures.slope(horizontal, vertical, slope, float(predicted)))
