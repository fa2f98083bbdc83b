r"""One hidden layer with random weights that stay, and a readout fitted by least squares."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system

__all__ = ["RandomFeatures"]


@system(
    "random_features",
    title="Random features",
    kind="module",
    example="RandomFeatures(3, hidden=8, outputs=2)(torch.randn(5, 3))",
)
class RandomFeatures(nn.Module):
    r"""A network of random ridge functions: only its readout is learnt, and that by solving a linear system.

    $$ g(x) = c + \sum_{i=1}^m v_i\,\phi\big(w_i^\top x - \|w_i\|\,t_i\big), \qquad w_i \sim \mathcal N(0, s^2 I), \quad
       t_i \sim \mathcal U(-r, r) $$

    Every unit turns at a distance $|t_i| \le r$ from the origin, in a random direction and with a random steepness, of
    the size $s$. The hidden layer is frozen.

    Shapes:
        x: (..., inputs)    returns: (..., outputs)

    Claims: approx.leshno, approx.lifting, approx.universal_mlp
    Source: A. Rahimi, B. Recht, Random features for large-scale kernel machines (2007); Weighted sums of random kitchen
        sinks (2008).

    >>> x = torch.linspace(-1, 1, 201, dtype=torch.float64)[:, None]
    >>> net = RandomFeatures(1, hidden=64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> bool((net.fit(x, x.sin())(x) - x.sin()).abs().max() < 0.01)
    True
    """

    def __init__(
        self,
        inputs: int,
        hidden: int = 256,
        outputs: int = 1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        scale: int | float = 4.0,
        radius: int | float = 1.0,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.count("inputs", inputs)
        validate.count("hidden", hidden)
        validate.count("outputs", outputs)
        validate.positive("scale", scale)
        validate.positive("radius", radius)
        self.activation = activation if callable(activation) else known_activation(activation).value
        self.hidden = nn.Linear(inputs, hidden, device=device, dtype=dtype).requires_grad_(False)
        self.readout = nn.Linear(hidden, outputs, device=device, dtype=dtype)
        # In double precision, so that the same generator draws the same network in every dtype
        like = {"dtype": torch.float64, "device": device if generator is None else generator.device}
        with torch.no_grad():
            weight = scale * torch.randn(hidden, inputs, generator=generator, **like)
            places = radius * (2 * torch.rand(hidden, generator=generator, **like) - 1)
            self.hidden.weight.copy_(weight)
            self.hidden.bias.copy_(-weight.norm(dim=1) * places)
            self.readout.weight.zero_()
            self.readout.bias.zero_()

    def features(self, x: Float[Tensor, "*points inputs"]) -> Float[Tensor, "*points hidden"]:
        """The values of the hidden units."""
        return self.activation(self.hidden(validate.inputs("x", x, self.hidden.in_features)))

    def forward(self, x: Float[Tensor, "*points inputs"]) -> Float[Tensor, "*points outputs"]:
        return self.readout(self.features(x))

    @torch.no_grad()
    def fit(self, x: Float[Tensor, "points inputs"], y: Tensor, ridge: int | float = 1e-10) -> "RandomFeatures":
        r"""Set the readout to the least squares over the points.

        $$ \min_{v, c}\ \frac1n \sum_i \|y_i - g(x_i)\|^2 + \mathrm{ridge} \cdot \big(\|v\|^2 + \|c\|^2\big) $$

        By a QR decomposition in double precision: features that nearly agree cost no more digits than they must.

        Shapes:
            x: (points, inputs); y: (points,) or (points, outputs)
        """
        validate.last_axis("x", validate.matrix("x", x), self.hidden.in_features, "input")
        validate.positive("ridge", ridge)
        targets = y[:, None] if validate.tensor("y", y).ndim == 1 else y
        if targets.shape != (len(x), self.readout.out_features):
            wanted = f"({len(x)}, {self.readout.out_features})"
            raise ValueError(f"y must be a {wanted} tensor, one row for each of x, got shape {tuple(y.shape)}")
        validate.floating("y", y)
        units = self.features(x.to(self.hidden.weight)).double()
        units = torch.cat([units, units.new_ones(len(x), 1)], dim=1)  # (points, hidden + 1)
        # Ridge regression is least squares with rows of its own that ask for weights of 0.
        penalty = (ridge * len(x)) ** 0.5 * torch.eye(units.shape[1], dtype=units.dtype, device=units.device)
        q, r = torch.linalg.qr(torch.cat([units, penalty]))
        weights = torch.linalg.solve_triangular(
            r, q[: len(x)].mT @ targets.to(units), upper=True
        )  # (hidden + 1, outputs)
        self.readout.weight.copy_(weights[:-1].mT)
        self.readout.bias.copy_(weights[-1])
        return self
