r"""A kernel that is a column times a row: filtered along one axis and then along the other."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Separable", "separated"]


class Separable(NamedTuple):
    r"""The factors of $k[i,j] = c_i\,r_j$: $h + w$ products for each pixel in place of $hw$.

    Shapes:
        column: (height,), row: (width,)

    >>> Separable(torch.tensor([1.0, 2.0, 1.0]), torch.tensor([-1.0, 0.0, 1.0])).dense()
    tensor([[-1.,  0.,  1.],
            [-2.,  0.,  2.],
            [-1.,  0.,  1.]])
    """

    column: Float[Tensor, "height"]
    row: Float[Tensor, "width"]

    def dense(self) -> Float[Tensor, "height width"]:
        """The whole kernel."""
        return self.column[:, None] * self.row


def separated(kernel: Float[Tensor, "height width"]) -> Separable | None:
    """The factors of a kernel of rank one, or nothing where its rank is larger by more than rounding.

    >>> separated(torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])) is None
    True
    """
    peak = int(kernel.abs().argmax())
    i, j = divmod(peak, kernel.shape[1])
    if not bool(kernel[i, j]):
        return None
    found = Separable(kernel[:, j] / kernel[i, j], kernel[i].clone())  # through the largest entry: no factor above one
    off = (found.dense() - kernel).abs().max()
    return found if bool(off <= 8 * torch.finfo(kernel.dtype).eps * kernel[i, j].abs()) else None
