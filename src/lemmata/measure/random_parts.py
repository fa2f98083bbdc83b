"""Parts of a network that draw at random while it is trained, and so have no curvature to be measured."""

from torch import nn

__all__ = []  # for what goes through a network more than once


def without_draws(model: nn.Module) -> nn.Module:
    """The model, if none of its parts draws at random: two passes would be of two functions."""
    if any(part.training and draws(part) for part in model.modules()):
        raise ValueError("model must not draw units while it is measured: call model.eval() first")
    return model


def draws(part: nn.Module) -> bool:
    """Whether a part draws at random while it is in training mode."""
    if isinstance(part, nn.modules.dropout._DropoutNd):
        return part.p > 0
    if isinstance(part, nn.RReLU):
        return part.lower < part.upper
    rate = getattr(part, "dropout", 0.0)  # a number in attention and in recurrent networks, elsewhere a module
    if isinstance(part, nn.RNNBase) and part.num_layers == 1:
        return False  # torch drops only between layers
    return isinstance(rate, int | float) and rate > 0
