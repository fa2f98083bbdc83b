"""Initial weights of a whole transformer: one call, against torch's scheme for every matrix by hand."""

from collections.abc import Callable

import torch
from torch import nn

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.tricks.initialization import initialize


@entry(
    "initialization",
    title="Initial weights of a transformer",
    measures="all weights, drawn anew by He's scheme",
    cases={"transformer": "12 layers of width 256, 9.5 million parameters, float32"},
    targets={"torch.nn.init": 1.05},
)
def transformer(case: str, device: str) -> nn.Module:
    """An encoder with four heads and 1,024 hidden units in each layer."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    return nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).to(device)


@ours("lemmata")
def by_one_call(model: nn.Module) -> Callable[[], nn.Module]:
    """Every kind of layer by its own rule."""

    def drawn() -> nn.Module:
        initialize(model, "he")
        return model

    return drawn


@peer("torch.nn.init")
def by_hand(model: nn.Module) -> Callable[[], nn.Module]:
    """As one writes it: matrices are drawn, biases zero, scales one."""

    def drawn() -> nn.Module:
        for name, values in model.named_parameters():
            if values.ndim > 1:
                nn.init.kaiming_normal_(values)
            elif name.endswith("bias"):
                nn.init.zeros_(values)
            else:
                nn.init.ones_(values)
        return model

    return drawn


@limit("so many normal numbers, drawn at once")
def numbers_alone(model: nn.Module) -> Callable[[], nn.Module]:
    """Each weight is a random number."""
    count = sum(values.numel() for values in model.parameters() if values.ndim > 1)
    values = torch.empty(count, device=next(model.parameters()).device)

    def drawn() -> nn.Module:
        values.normal_()
        return model

    return drawn


@agreement(within=5e-3)
def in_numbers(model: nn.Module) -> dict[str, float]:
    """The sum of squares, which chance moves by some ten-thousandths."""
    return {"squares": sum(float(values.detach().double().square().sum()) for values in model.parameters())}
