"""The parameters of a transformer with twelve layers, and gradients for them: what the contests of optimisers move."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

LAYERS, VOCABULARY = 12, 4096


class Weights(NamedTuple):
    """Matrices of the layers, and everything else: embedding, head, biases and norms. All have gradients."""

    hidden: list[nn.Parameter]
    others: list[nn.Parameter]

    @property
    def all(self) -> list[nn.Parameter]:
        return [*self.hidden, *self.others]


def transformer_weights(width: int, device: str, seed: int = 0) -> Weights:
    """The same numbers for every contender."""
    generator = torch.Generator().manual_seed(seed)
    matrices = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    vectors = [(3 * width,), (width,), (4 * width,), (width,), *[(width,)] * 4]
    tables = [(VOCABULARY, width), (VOCABULARY, width), (width,), (width,)]
    made = [_random_parameter(shape, generator, device) for shape in [*LAYERS * matrices, *tables, *LAYERS * vectors]]
    return Weights(made[: LAYERS * len(matrices)], made[LAYERS * len(matrices) :])


def _random_parameter(shape: tuple[int, ...], generator: torch.Generator, device: str) -> nn.Parameter:
    parameter = nn.Parameter((0.02 * torch.randn(shape, generator=generator)).to(device))
    parameter.grad = torch.randn(shape, generator=generator).to(device)
    return parameter


def moved(before: list[Tensor], after: list[nn.Parameter]) -> Tensor:
    """How far each parameter has gone, as a share of all: whatever the number of steps, if all are alike."""
    lengths = torch.stack(
        [torch.linalg.vector_norm(new.detach() - old) for old, new in zip(before, after, strict=True)]
    )
    return lengths / lengths.sum()
