r"""The linear autoencoder: two matrices, of which the best are those of principal component analysis."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["LinearAutoencoder"]


@system(
    "linear_autoencoder",
    title="Linear autoencoder",
    kind="module",
    example="LinearAutoencoder(5, 2)(torch.randn(4, 5))",
)
class LinearAutoencoder(nn.Module):
    r"""A linear encoder into few numbers and a linear decoder back.

    $$ z = Cx, \qquad \hat x = Dz, \qquad E(C, D) = \tfrac12\,\mathbb E\,\|x - DCx\|^2 $$

    On centred data the least loss is half of the variance outside the first principal axes, and $DC$ is the projection
    on them. $C$ and $D$ themselves stay undetermined: $AC$ and $DA^{-1}$ do as well, for any invertible $A$. With
    `bias=True` the decoder adds an offset, and data need not be centred.

    Shapes:
        x: (..., inputs)    encode: (..., code_size)    forward, decode: (..., inputs)

    Claims: ae.linear, ae.linear_pca, ae.linear_landscape
    Source: Baldi and Hornik 1989.

    >>> autoencoder = LinearAutoencoder(64, 10)
    >>> autoencoder.encode(torch.rand(3, 64)).shape, autoencoder.loss(torch.zeros(3, 64)).item()
    (torch.Size([3, 10]), 0.0)
    """

    def __init__(
        self,
        inputs: int,
        code_size: int,
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs = validate.count("inputs", inputs)
        self.code_size = validate.count("code_size", code_size)
        validate.flag("bias", bias)
        self.encoder = nn.Linear(inputs, code_size, bias=False, device=device, dtype=dtype)
        self.decoder = nn.Linear(code_size, inputs, bias=bias, device=device, dtype=dtype)

    def encode(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch code_size"]:
        r"""The code $z = Cx$."""
        return self.encoder(validate.inputs("x", x, self.inputs))

    def decode(self, z: Float[Tensor, "*batch code_size"]) -> Float[Tensor, "*batch inputs"]:
        r"""What a code stands for, $\hat x = Dz$."""
        return self.decoder(validate.inputs("z", z, self.code_size))

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch inputs"]:
        return self.decode(self.encode(x))  # (..., inputs) -> (..., code_size) -> (..., inputs)

    def loss(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, ""]:
        r"""Half of the squared error of an example, $\frac12\|x - \hat x\|^2$, averaged over the examples."""
        return (x - self(x)).square().sum(-1).mean() / 2

    @property
    def matrix(self) -> Float[Tensor, "inputs inputs"]:
        r"""The whole map $DC$, which no choice of coordinates for the code changes."""
        return self.decoder.weight @ self.encoder.weight

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, code_size={self.code_size}"
