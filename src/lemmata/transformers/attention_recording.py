r"""Attention maps: where every attention of a model looks while it answers."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from lemmata.train.evaluation_mode import evaluating
from lemmata.transformers.cross_attention import CrossAttention
from lemmata.transformers.self_attention import SelfAttention

__all__ = ["attention_maps"]


def attention_maps(model: nn.Module, *inputs: Tensor, **more: Tensor) -> dict[str, Float[Tensor, "batch heads _ _"]]:
    """Where every attention of a model looks while it answers, by the names of the layers, without dropout.

    >>> model = nn.Sequential(SelfAttention(8, heads=2), SelfAttention(8, heads=4))
    >>> {name: tuple(weights.shape) for name, weights in attention_maps(model, torch.randn(1, 5, 8)).items()}
    {'0': (1, 2, 5, 5), '1': (1, 4, 5, 5)}
    """
    found: dict[str, Tensor] = {}
    hooks = []
    for name, part in model.named_modules():
        if isinstance(part, (SelfAttention, CrossAttention)):

            def look(part: nn.Module, given: tuple[Any, ...], named: dict[str, Any], name: str = name) -> None:
                if named.get("cache") is not None:
                    raise ValueError("caches hide where a model looks back to: give it the whole text at once instead")
                told = {word: each for word, each in named.items() if word not in ("cache", "answered")}
                found[name] = part.weights(*given, **told)  # type: ignore[operator]

            hooks.append(part.register_forward_pre_hook(look, with_kwargs=True))
    try:
        with evaluating(model):
            model(*inputs, **more)
    finally:
        for hook in hooks:
            hook.remove()
    if not hooks:
        raise ValueError(f"{type(model).__name__} has no SelfAttention or CrossAttention to look at")
    return found
