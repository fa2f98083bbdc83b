r"""A scale and a shift for each feature, which may begin as those of a batch (ActNorm)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.generative.flows.transform import Transform
from lemmata.marks import system

__all__ = ["ActNorm"]


@system("actnorm", title="Activation normalisation", kind="module", example="ActNorm(3)(torch.randn(5, 3))")
class ActNorm(Transform):
    r"""A learnt scale and shift of each feature: $x = \mu + e^{s}\odot z$, with log-determinant $\sum_j s_j$.

    $$ x = \mu + e^{s} \odot z, \qquad \log|\det| = \sum_j s_j $$

    It begins as the identity. `standardize(x)` sets it by a batch, so that this batch comes out with mean 0 and
    variance 1; from then on it is learnt like any other layer. Nothing happens by itself at a first call, so that a
    model means the same before and after it was looked at.

    Shapes:
        z: (batch, features)    returns: x (batch, features), log_det (batch,)

    Claims: flow.change_of_variables, flow.log_density
    Source: D. P. Kingma and P. Dhariwal, Glow: generative flow with invertible 1x1 convolutions (2018).
    Differs: it is set by `standardize`, not by the first batch that comes.

    >>> layer, x = ActNorm(2), torch.tensor([[1.0, 5.0], [3.0, 9.0]])
    >>> layer.standardize(x)
    >>> layer.inverse(x)[0]
    tensor([[-1., -1.],
            [ 1.,  1.]], grad_fn=<MulBackward0>)
    """

    def __init__(
        self, features: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.features = validate.count("features", features)
        self.log_scale = nn.Parameter(torch.zeros(features, device=device, dtype=dtype))
        self.shift = nn.Parameter(torch.zeros(features, device=device, dtype=dtype))

    @torch.no_grad()
    def standardize(self, x: Float[Tensor, "batch features"]) -> None:
        """Set scale and shift to deviation and mean of a batch; features that do not vary keep scale 1."""
        validate.floating("x", self.checked("x", x))
        deviation = x.std(0, correction=0)
        self.shift.copy_(x.mean(0))
        self.log_scale.copy_(torch.where(deviation > 0, deviation, torch.ones_like(deviation)).log())

    def forward(self, z: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        x = torch.addcmul(self.shift, self.checked("z", z), self.log_scale.exp())  # (batch, features)
        return x, self.log_scale.sum().expand(x.shape[0])

    def inverse(self, x: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        z = (self.checked("x", x) - self.shift) * (-self.log_scale).exp()  # (batch, features)
        return z, -self.log_scale.sum().expand(z.shape[0])

    def extra_repr(self) -> str:
        return f"features={self.features}"
