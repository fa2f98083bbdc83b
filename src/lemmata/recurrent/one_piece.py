"""Weights in one piece of memory, which cuDNN's recurrent kernels want."""

import torch
from torch import Tensor

__all__ = ["in_one_piece"]


def in_one_piece(*weights: Tensor) -> list[Tensor]:
    """The same weights as views of one tensor, in their order; gradients flow back to each of them.

    Given input weights, recurrent weights and both biases in this order, cuDNN takes them as they lie: weights in
    several pieces it copies at every call, with a warning, and so it does where the biases are left out.

    Claims: rnn.elman

    >>> first, second = in_one_piece(torch.ones(2, 3), torch.zeros(4))
    >>> first.shape, second.shape, first.data_ptr() + 6 * 4 == second.data_ptr()
    (torch.Size([2, 3]), torch.Size([4]), True)
    """
    pieces = torch.cat([weight.reshape(-1) for weight in weights]).split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]
