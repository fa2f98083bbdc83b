"""Weights as torch's own recurrent modules have them, and as their kernels want them."""

import torch
from torch import Tensor, nn

from lemmata import validate

__all__ = ["in_one_piece", "one_layer"]


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


def one_layer(module: nn.RNNBase, layer: int, reverse: bool) -> list[Tensor]:
    """The weights for input and state, and both biases if it has them, of one layer and direction."""
    validate.count("layer", layer, least=0, most=module.num_layers - 1)
    if validate.flag("reverse", reverse) and not module.bidirectional:
        raise ValueError("reverse must be False: the module runs in one direction only")
    end = f"_l{layer}" + ("_reverse" if reverse else "")
    names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if module.bias else ()))
    return [getattr(module, name + end).detach() for name in names]
