r"""Layer normalisation: every example has mean zero and variance one over its features, whatever its batch."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.tricks.normalization import standardize

__all__ = ["LayerNorm"]


@system("layer_norm", title="Layer normalisation", kind="module", example="LayerNorm(5)(torch.randn(4, 5))")
class LayerNorm(nn.Module):
    r"""Each example minus its mean over the features, over its deviation, with a learnt scale and shift.

    $$ \tilde f_i = \frac{f_i - \mathbb E[f]}{\sqrt{\mathrm{Var}[f] + \varepsilon}}, \qquad
       \mathbb E[f] = \frac1d\sum_{i=1}^d f_i(x), \quad \mathrm{Var}[f] = \frac1d\sum_{i=1}^d (f_i(x)-\mathbb E[f])^2,
       \qquad \mu_i + \gamma_i\tilde f_i $$

    Before scale and shift the output lies on the sphere of radius $\sqrt d$, in the hyperplane orthogonal to
    $\mathbf 1$. `weight` is $\gamma$ and `bias` is $\mu$: names and shapes are those of torch.nn.LayerNorm.

    Shapes:
        x: (..., *shape), where `shape` is a number of features or several axes    returns: the same

    Claims: norm.layer, norm.layer.vs_batch
    Source: J. Lei Ba, J. Kiros and G. Hinton, Layer normalization (2016).

    >>> LayerNorm(4)(torch.tensor([[1.0, 2.0, 3.0, 6.0]])).detach()
    tensor([[-1.0690, -0.5345,  0.0000,  1.6036]])
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: int | float = 1e-5,
        affine: bool = True,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if not sizes:
            raise ValueError("shape must name at least one axis, got ()")
        self.shape = tuple(validate.count("shape", size) for size in sizes)
        self.eps, self.affine = validate.number("eps", eps, least=0), validate.flag("affine", affine)
        for name, wanted in (("weight", affine), ("bias", affine and validate.flag("bias", bias))):
            values = nn.Parameter(torch.empty(self.shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale one, shift zero."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """By torch's kernel."""
        self._check_shape(x)
        return functional.layer_norm(x, self.shape, self.weight, self.bias, self.eps)

    def by_formula(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The same, written out."""
        self._check_shape(x)
        values = standardize(x, range(-len(self.shape), 0), self.eps).values  # (..., *shape)
        values = values if self.weight is None else values * self.weight
        return values if self.bias is None else values + self.bias

    def _check_shape(self, x: Tensor) -> None:
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if x.shape[-len(self.shape) :] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ValueError(f"x must be a (..., {wanted}) tensor, got shape {tuple(x.shape)}")

    def extra_repr(self) -> str:
        return f"{self.shape}, eps={self.eps}, affine={self.affine}"
