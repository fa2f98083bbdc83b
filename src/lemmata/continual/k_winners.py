"""k-winner-take-all: of each layer's units the k most active speak, the others are silent."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["WinnerTakeAll", "winner_take_all"]


@system("winner_take_all", title="k-winner-take-all", kind="function")
def winner_take_all(a: Float[Tensor, "*batch units"], k: int) -> Float[Tensor, "*batch units"]:
    r"""Keep the k largest values of the last axis, and put zeros for the others.

    $$ \mathrm{kWTA}(a)_i = a_i \text{ if } a_i \text{ is among the } k \text{ largest, else } 0 $$

    Of equal values the first win, so that never more than k are kept. The gradient passes through the winners alone.

    Shapes:
        a: (..., units)    returns: (..., units)

    Claims: continual.kwta
    Source: Maass, On the computational power of winner-take-all (2000); Ahmad and Scheinkman, How can we be so dense?
        (2019).

    >>> winner_take_all(torch.tensor([3.0, -5.0, 2.0, 2.0]), 2)
    tensor([3., 0., 2., 0.])
    """
    values = validate.floating("a", a)
    if not values.ndim:
        raise ValueError("a must have an axis of units, got a single number")
    validate.count("k", k, most=values.shape[-1])
    return _winner_mask(values, k)


def _winner_mask(values: Tensor, k: int) -> Tensor:
    least = values.topk(k).values[..., -1:]  # (..., 1)
    above, equal = values > least, values == least
    room = k - above.sum(-1, keepdim=True)
    winners = above | (equal & (equal.cumsum(-1) <= room))
    return torch.where(winners, values, torch.zeros_like(values))


@system(
    "winner_take_all_layer",
    title="k-winner-take-all layer",
    kind="module",
    example="WinnerTakeAll(2)(torch.randn(5, 7))",
)
class WinnerTakeAll(nn.Module):
    r"""`winner_take_all` in place of an activation.

    $$ y = \mathrm{kWTA}(a) $$

    Shapes:
        a: (..., units)    returns: (..., units)


    >>> (WinnerTakeAll(2)(torch.randn(3, 10)) != 0).sum(1)
    tensor([2, 2, 2])
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = validate.count("k", k)

    def forward(self, a: Float[Tensor, "*batch elements"]) -> Float[Tensor, "*batch elements"]:
        if validate.tensor("a", a).ndim == 0 or a.shape[-1] < self.k:
            raise ValueError(f"a must have {self.k} units or more on its last axis, got shape {tuple(a.shape)}")
        return _winner_mask(a, self.k)

    def extra_repr(self) -> str:
        return f"k={self.k}"
