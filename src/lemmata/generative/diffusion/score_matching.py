r"""Denoising score matching at many noise levels, and annealed Langevin sampling from what it learns."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.generative.diffusion.ancestral import finite_samples
from lemmata.generative.diffusion.denoiser_mlp import DenoiserMLP  # noqa: F401 - in the example
from lemmata.generative.diffusion.reverse_time import noise_like
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating

__all__ = ["NoiseLevelScore", "noise_ladder"]


def noise_ladder(smallest: float, largest: float, count: int) -> tuple[float, ...]:
    """Noise levels from the largest down, each the same fraction of that before it.

    >>> noise_ladder(0.01, 1.0, 3)
    (1.0, 0.1, 0.01)
    """
    validate.number("largest", largest, above=validate.positive("smallest", smallest))
    steps = validate.count("count", count, least=2) - 1
    return tuple(round(largest * (smallest / largest) ** (k / steps), 12) for k in range(count))


@system(
    "noise_level_score",
    title="Score model of many noise levels",
    kind="module",
    example="NoiseLevelScore(DenoiserMLP(3, widths=(8,)), (3,))(torch.randn(5, 3), torch.randint(0, 10, (5,)))",
)
class NoiseLevelScore(nn.Module):
    r"""The score of data with added noise, at levels from so much that nothing else is seen to hardly any.

    $$ L = \mathbb E_{k, x, \epsilon}\ \tfrac1d \big\|\epsilon + \sigma_k\, s_\theta(x + \sigma_k\epsilon, k)\big\|^2,
       \qquad x \leftarrow x + \tfrac{\eta_k}2 s_\theta(x, k) + \sqrt{\eta_k}\, z, \quad
       \eta_k = \mathrm{step}\cdot\sigma_k^2 $$

    Nothing shrinks the data, in contrast to `DDPM`. `denoiser(x, time)` gets the noisy state scaled to about unit
    variance, and as its time where on the ladder the level stands, from 1 (most noise) to 0; its answer is taken for
    the noise. `sample` runs some Langevin steps on each level, and at last takes away the noise that is left.

    Shapes:
        x: (batch, *shape), level: (batch,) of integers, 0 for the most noise    returns: the score, (batch, *shape)

    Source: P. Vincent, A connection between score matching and denoising autoencoders (2011); Y. Song and S. Ermon,
        Generative modeling by estimating gradients of the data distribution (2019).

    >>> model = NoiseLevelScore(DenoiserMLP(2), shape=(2,), levels=noise_ladder(0.05, 3.0, 8))
    >>> model.loss(torch.randn(4, 2)).shape, model.sample(3, steps=2).shape
    (torch.Size([]), torch.Size([3, 2]))
    """

    def __init__(
        self, denoiser: nn.Module, shape: Sequence[int], levels: Sequence[float] = noise_ladder(0.01, 5.0, 10)
    ) -> None:
        super().__init__()
        self.denoiser, self.shape = validate.module("denoiser", denoiser), tuple(shape)
        self.levels = tuple(float(validate.positive("levels", level)) for level in levels)
        if len(self.levels) < 2 or any(after >= before for before, after in pairwise(levels)):
            raise ValueError(f"levels must be two or more and fall, got {self.levels}: use noise_ladder")

    def forward(self, x: Float[Tensor, "batch ..."], level: Tensor) -> Float[Tensor, "batch ..."]:
        sigma = self._sigma_of(x, level)
        return -self._noise_in(x, level, sigma) / sigma

    def _noise_in(self, x: Tensor, level: Tensor, sigma: Tensor) -> Tensor:
        time = 1 - level.to(x) / (len(self.levels) - 1)  # (batch,)
        found = self.denoiser(x / (1 + sigma**2).sqrt(), time)
        if found.shape != x.shape:
            shapes = f"{tuple(x.shape)}, got {tuple(found.shape)}"
            raise ValueError(f"denoiser must answer with the shape of its input, {shapes}")
        return found

    def _sigma_of(self, x: Tensor, level: Tensor) -> Tensor:
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if tuple(x.shape[1:]) != self.shape:
            raise ValueError(f"x must be (batch, {', '.join(map(str, self.shape))}), got {tuple(x.shape)}")
        if validate.tensor("level", level).ndim != 1 or level.shape[0] != x.shape[0]:
            raise ValueError(f"level must hold one for each of {x.shape[0]} examples, got {tuple(level.shape)}")
        if level.is_floating_point():
            raise TypeError(f"level must hold integers from 0 to {len(self.levels) - 1}, got {level.dtype}")
        ladder = torch.tensor(self.levels, dtype=x.dtype, device=x.device)
        return ladder[level].reshape(-1, *[1] * (x.ndim - 1))

    def loss(self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """The mean squared error of the noise, each example at a level of its own."""
        place = validate.tensor("x", x).device if generator is None else generator.device
        level = torch.randint(len(self.levels), (len(x),), generator=generator, device=place).to(x.device)
        sigma, noise = self._sigma_of(x, level), noise_like(x, generator)
        return (self._noise_in(x + sigma * noise, level, sigma) - noise).square().mean()

    def sample(
        self, n: int, *, generator: torch.Generator | None = None, steps: int = 60, step: float = 0.5
    ) -> Float[Tensor, "n ..."]:
        """n new examples, by so many Langevin steps on each level, each of `step` times the variance of its noise."""
        validate.positive("step", step)
        weight = next(self.parameters(), torch.zeros(()))
        x = self.levels[0] * noise_like(weight.new_empty(validate.count("n", n), *self.shape), generator)
        with evaluating(self):
            for number, sigma in enumerate(self.levels):
                level = torch.full((n,), number, device=x.device)
                for _ in range(validate.count("steps", steps)):
                    size = step * sigma**2
                    x = x + size / 2 * self(x, level) + size**0.5 * noise_like(x, generator)
            return finite_samples(x + sigma**2 * self(x, level))  # the mean of the data, by Tweedie's formula
