r"""Blooming: what a full photosite cannot hold runs along its column, and none of it is lost before the edge."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.image_arguments import image_of

__all__ = ["bloom"]


@system("bloom", title="Blooming", kind="function")
def bloom(
    charge: Float[Tensor, "*batch height width"], full_well: int | float, drained: int | float = 0.0
) -> tuple[Float[Tensor, "*batch height width"], Float[Tensor, "*batch width"]]:
    r"""Spill what is above the full well along the columns, half of it down and half of it up.

    The charge $c$ that passes from row to row on its way down is that of a queue, which the room of each photosite
    empties: $c_{i+1} = \max(0,\, c_i + e_i - r_i)$ with the excess $e$ and the room $r$. With $S_i = \sum_{j \le i}
    (e_j - r_j)$ that is $c_{i+1} = S_i - \min(0, \min_{j \le i} S_j)$: two cumulative passes instead of a loop. What
    runs down takes its room first. `drained` is the fraction of the excess that anti-blooming carries away.

    Shapes:
        charge: (..., height, width) >= 0    returns: charge of the same shape, and (..., width) what left at the edges

    Claims: vision.blooming
    Differs: real channels spill in both directions at once; who fills a gap between two streaks first is a choice.

    >>> held, lost = bloom(torch.tensor([[0.0], [0.0], [5.0], [0.0]]), full_well=2.0)
    >>> held[:, 0], lost
    (tensor([0.0000, 1.5000, 2.0000, 1.5000]), tensor([0.]))
    """
    image_of("charge", charge)
    validate.positive("full_well", full_well)
    validate.fraction("drained", drained, most=1.0)
    if bool((charge < 0).any()):
        raise ValueError(f"charge must be >= 0, got {float(charge.min()):g}: clamp it")
    held = charge.clamp(max=full_well)
    excess = (charge - held) * ((1 - drained) / 2)
    held, below = _spill_charge(held, excess, full_well)
    upwards, above = _spill_charge(held.flip(-2), excess.flip(-2), full_well)
    return upwards.flip(-2), below + above


def _spill_charge(held: Tensor, excess: Tensor, full_well: int | float) -> tuple[Tensor, Tensor]:
    """Charge that runs down its column into the room there is; what is over at the bottom."""
    total = (excess - (full_well - held)).cumsum(-2)  # (..., height, width), S of the docstring
    after = total - total.cummin(-2).values.clamp(max=0)  # c that leaves each row
    before = torch.nn.functional.pad(after, (0, 0, 1, 0))[..., :-1, :]
    filled = (held + (before + excess - after)).clamp(max=full_well)  # rounding must not overfill
    return filled, after[..., -1, :]
