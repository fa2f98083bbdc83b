"""Heterogeneous dropout: units that earlier tasks used often are dropped, so that new tasks recruit others."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["HeterogeneousDropout"]


@system(
    "heterogeneous_dropout",
    title="Heterogeneous dropout",
    kind="module",
    example="HeterogeneousDropout(7)(torch.randn(5, 7))",
)
class HeterogeneousDropout(nn.Module):
    r"""Keep each unit with a probability that falls with how often it was active in earlier tasks.

    $$ \pi_j = \exp\!\Big(-\alpha\,\frac{a_j}{\max_i a_i}\Big) $$

    While it trains, the layer counts how often each unit is not zero; `end_task()` adds these counts to $a$, and from
    then on units are dropped by them. Before the first such call nothing is dropped, and in evaluation nothing ever is.
    Kept values are not scaled up: a unit that is dropped often is not to be heard louder when it is not.

    Shapes:
        x: (batch, units)    returns: (batch, units)

    Claims: continual.heterogeneous_dropout
    Source: Abbasi, Nooralinejad, Braverman, Pirsiavash and Kolouri, Sparsity and heterogeneous dropout for continual
        learning in the null space of neural activations (2022).

    >>> layer = HeterogeneousDropout(3, alpha=2.0)
    >>> _ = layer(torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    >>> layer.end_task()
    >>> layer.keep_probability
    tensor([0.1353, 1.0000, 0.3679])
    """

    active: Tensor
    counted: Tensor

    def __init__(
        self, units: int, alpha: float = 1.0, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.units, self.alpha = validate.count("units", units), validate.number("alpha", alpha, least=0)
        self.register_buffer("active", torch.zeros(units, device=device, dtype=dtype))  # in earlier tasks
        self.register_buffer("counted", torch.zeros(units, device=device, dtype=dtype))  # in the task at hand

    @property
    def keep_probability(self) -> Float[Tensor, " units"]:
        """How likely each unit is kept; one for all where nothing was active yet."""
        return torch.exp(-self.alpha * self.active / self.active.amax().clamp(min=1e-12))

    def forward(self, x: Float[Tensor, "batch units"]) -> Float[Tensor, "batch units"]:
        x = validate.examples("x", x, self.units)
        if not self.training:
            return x
        with torch.no_grad():
            self.counted += (x != 0).to(self.counted).mean(0)  # (units,): one update counts as one
            kept = torch.rand_like(x) < self.keep_probability  # (batch, units)
        return x * kept

    def end_task(self) -> None:
        """What was active in the task at hand belongs to the earlier ones from now on."""
        self.active += self.counted
        self.counted.zero_()

    def extra_repr(self) -> str:
        return f"{self.units}, alpha={self.alpha:g}"
