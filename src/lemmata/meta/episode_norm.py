"""Batch normalisation for episodes: the statistics are those of the task's own support, or of the query by name."""

import contextlib
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["EpisodeNorm"]

STATISTICS = ("support", "query")


@system(
    "episode_norm",
    title="Normalisation by an episode's support",
    kind="module",
    example="EpisodeNorm(3)(torch.randn(5, 3, 4, 4))",
)
class EpisodeNorm(nn.Module):
    r"""Normalise each channel by the mean and variance of a task's support, so that no query sees another.

    $$ y = \gamma\,\frac{x - \mathbb E_A[x]}{\sqrt{\operatorname{Var}_A[x] + \epsilon}} + \beta $$

    The usual batch normalisation in few-shot learning takes the query's own statistics: answers then depend on what
    else is asked, and results are *transductive*. That is `statistics="query"` here, which reproduces the literature.
    There are no running statistics: those of one task would be wrong for every other.

    Shapes:
        x: (batch, channels, ...)    returns: as x

    Source: Ioffe and Szegedy, Batch normalization (2015); Bronskill et al., TaskNorm (2020), on what the choice costs.
    Differs: a row depends on the support's others: does not pass `batch_of_one`.

    >>> layer = EpisodeNorm(2)
    >>> layer(torch.tensor([[1.0, 5.0], [3.0, 5.0]])).detach().round(decimals=3)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """

    def __init__(
        self,
        channels: int,
        statistics: str = "support",
        eps: float = 1e-5,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.channels, self.eps = validate.count("channels", channels), validate.positive("eps", eps)
        self.statistics = validate.one_of("statistics", statistics, STATISTICS)
        self.weight = nn.Parameter(torch.ones(channels, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(channels, device=device, dtype=dtype))
        self.rows: int | None = None  # of the batch that are the support; all of them where there is no query

    def forward(self, x: Float[Tensor, "batch channels ..."]) -> Float[Tensor, "batch channels ..."]:
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if x.ndim < 2 or x.shape[1] != self.channels:
            raise ValueError(f"x must be (batch, channels, ...) with {self.channels} channels, got {tuple(x.shape)}")
        axes = (0, *range(2, x.ndim))
        variance, mean = torch.var_mean(x[: self.rows], axes, correction=0, keepdim=True)  # (1, channels, ...)
        shape = (1, self.channels, *[1] * (x.ndim - 2))
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight.reshape(shape) + self.bias.reshape(shape)

    def extra_repr(self) -> str:
        return f"{self.channels}, statistics={self.statistics}"


@contextlib.contextmanager
def support_statistics(model: nn.Module, rows: int) -> Iterator[None]:
    """For a while the first rows of every batch are its support."""
    layers = [part for part in model.modules() if isinstance(part, EpisodeNorm)]
    for layer in layers:
        layer.rows = rows
    try:
        yield
    finally:
        for layer in layers:
            layer.rows = None


def check_normalization(model: nn.Module) -> None:
    """ValueError for running statistics, which belong to no task."""
    for name, part in model.named_modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            kind, cure = type(part).__name__, "use lemmata.meta.EpisodeNorm, or GroupNorm"
            raise ValueError(f"model must normalise by the task, but {name or 'model'} is a {kind}: {cure}")
