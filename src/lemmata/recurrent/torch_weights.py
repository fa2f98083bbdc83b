"""Weights as torch's own recurrent modules have them."""

from torch import Tensor, nn

from lemmata import validate

__all__ = ["one_layer"]


def one_layer(module: nn.RNNBase, layer: int | None, reverse: bool | None) -> list[Tensor]:
    """The weights for input and state, and both biases if it has them, of one layer and direction.

    Of several layers or directions it must be said which: one of them is not the module.
    """
    if layer is None and module.num_layers > 1:
        raise ValueError(
            f"module has {module.num_layers} layers: Stacked.from_torch(module) takes them all, layer=0 the first"
        )
    if reverse is None and module.bidirectional:
        raise ValueError("module runs both ways: Stacked.from_torch(module) takes both, reverse=False the first")
    layer, reverse = 0 if layer is None else layer, False if reverse is None else reverse
    validate.count("layer", layer, least=0, most=module.num_layers - 1)
    if validate.flag("reverse", reverse) and not module.bidirectional:
        raise ValueError("reverse must be False: the module runs in one direction only")
    end = f"_l{layer}" + ("_reverse" if reverse else "")
    names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if module.bias else ()))
    return [getattr(module, name + end).detach() for name in names]
