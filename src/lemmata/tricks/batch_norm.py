r"""Batch normalisation: every feature has mean zero and variance one over the batch, and then a scale of its own."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.tricks.normalization import standardize

__all__ = ["BatchNorm"]


@system("batch_norm", title="Batch normalisation", kind="module", example="BatchNorm(3)(torch.randn(8, 3))")
class BatchNorm(nn.Module):
    r"""Each feature minus its mean over the batch, over its deviation, with a learnt scale and shift.

    $$ \bar f(x) = \frac{f(x) - \mathbb E[f]}{\sqrt{\mathrm{Var}[f] + \varepsilon}}, \qquad
       \mathbb E[f] = \frac1{|B|}\sum_{x\in B} f(x), \quad
       \mathrm{Var}[f] = \frac1{|B|}\sum_{x\in B}(f(x)-\mathbb E[f])^2, \qquad \mu + \gamma\bar f $$

    In training the mean and the variance are those of the batch, and running averages of them are kept: the new one
    counts `momentum`, or with `momentum=None` all batches count alike. In evaluation the running averages take their
    place, so that an example no longer depends on its batch. The variance that is kept is divided by $|B|-1$. With
    `track_running_stats=False` nothing is kept, and the statistics are always those of the batch.

    `weight` is $\gamma$ and `bias` is $\mu$. Names and shapes are those of torch.nn.BatchNorm1d, 2d and 3d, in one
    class: weights load both ways.

    Shapes:
        x: (batch, features, ...), statistics over all axes but the second    returns: the same

    Claims: norm.batch, norm.batch.gradient, norm.batch.weight_view, norm.batch.scale_invariance, norm.layer.vs_batch,
        norm.effectiveness
    Source: S. Ioffe and C. Szegedy, Batch normalization (2015).

    >>> layer = BatchNorm(3)
    >>> y = layer(5 + 2 * torch.randn(1000, 3))
    >>> y.mean(0).abs().max() < 1e-5, (y.var(0, correction=0) - 1).abs().max() < 1e-4
    (tensor(True), tensor(True))
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _version = 2  # of state dicts, counted as torch counts those of its own layer

    def __init__(
        self,
        features: int,
        eps: int | float = 1e-5,
        momentum: int | float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.features, self.eps = validate.count("features", features), validate.positive("eps", eps)
        self.momentum = None if momentum is None else validate.number("momentum", momentum, least=0, most=1)
        self.affine = validate.flag("affine", affine)
        self.track_running_stats = validate.flag("track_running_stats", track_running_stats)
        for name in ("weight", "bias"):
            values = nn.Parameter(torch.empty(features, device=device, dtype=dtype)) if affine else None
            self.register_parameter(name, values)
        for name in ("running_mean", "running_var"):
            self.register_buffer(
                name, torch.empty(features, device=device, dtype=dtype) if track_running_stats else None
            )
        count = torch.tensor(0, dtype=torch.long, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen."""
        if self.track_running_stats:
            self.get_buffer("running_mean").zero_()
            self.get_buffer("running_var").fill_(1)
            self.get_buffer("num_batches_tracked").zero_()

    def reset_parameters(self) -> None:
        """Scale one, shift zero, and no batch seen."""
        self.reset_running_stats()
        if self.affine:
            nn.init.ones_(self.get_parameter("weight"))
            nn.init.zeros_(self.get_parameter("bias"))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, *rest: Any) -> None:
        """As torch: a state dict from before batches were counted leaves their number as it is."""
        key = prefix + "num_batches_tracked"
        if local_metadata.get("version", 1) < 2 and self.track_running_stats and key not in state_dict:
            count = self.get_buffer("num_batches_tracked")
            state_dict[key] = torch.zeros((), dtype=torch.long) if count.is_meta else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def forward(self, x: Float[Tensor, "batch features *rest"]) -> Float[Tensor, "batch features *rest"]:
        """By torch's kernel."""
        factor, of_batch = self._about_to_see(x)
        kept = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        return functional.batch_norm(x, *kept, self.weight, self.bias, of_batch, factor, self.eps)

    def by_formula(self, x: Float[Tensor, "batch features *rest"]) -> Float[Tensor, "batch features *rest"]:
        """The same, written out; running averages included."""
        factor, of_batch = self._about_to_see(x)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]  # (1, features, 1, ...)
        if of_batch:
            values = standardize(x, axes, self.eps).values
        else:
            deviation = (self.get_buffer("running_var") + self.eps).sqrt()  # (features,)
            values = (x - self.get_buffer("running_mean").view(shape)) / deviation.view(shape)
        if factor:
            found = {"running_mean": x.detach().mean(axes), "running_var": x.detach().var(axes, correction=1)}
            for name, batch in found.items():  # (features,)
                kept = self.get_buffer(name)
                kept.lerp_(batch.to(kept), factor)
        if not self.affine:
            return values
        return values * self.get_parameter("weight").view(shape) + self.get_parameter("bias").view(shape)

    def _about_to_see(self, x: Tensor) -> tuple[float, bool]:
        """How much the next batch counts in the running averages, and whether its statistics are used."""
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if x.ndim < 2 or x.shape[1] != self.features:
            wanted = f"(batch, {self.features}, ...)"
            raise ValueError(f"x must be a {wanted} tensor, got shape {tuple(x.shape)}")
        of_batch = self.training or not self.track_running_stats
        if of_batch and x.numel() == self.features:
            raise ValueError("a batch of one value for each feature has no variance: use a larger one, or eval()")
        if not (self.training and self.track_running_stats):
            return 0.0, of_batch
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        return (1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum), True

    def extra_repr(self) -> str:
        return (
            f"{self.features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )
