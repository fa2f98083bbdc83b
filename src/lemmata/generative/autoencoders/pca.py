r"""Principal component analysis: the projection on the directions in which data vary most."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.principal_axes import principal_axes

__all__ = ["PCA"]


@system("pca", title="Principal component analysis", kind="module", example="PCA(5, 2)(torch.randn(4, 5))")
class PCA(nn.Module):
    r"""The projection on the directions of greatest variance, from one singular value decomposition.

    $$ X - \mathbf 1\bar x^\top = U S V^\top, \qquad z = V_m^\top(x - \bar x), \qquad \hat x = \bar x + V_m z $$

    Of all linear maps through so few numbers none comes nearer to the data. `fit` learns; before it, the projection is
    that on the first features.

    Shapes:
        x: (points, features) in fit, else (..., features)    transform: (..., components)

    Learnt: buffers `mean` (features,), `axes` (components, features), orthonormal, largest variance first, each so
    turned that its longest entry is positive, and `variances` (components,); `total_variance` of all features.

    Claims: ae.linear_pca, ppca.pca_limit
    Differs: scikit-learn's `explained_variance_` divides by the number of points less one.

    >>> line = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> pca = PCA(2, 1).fit(line)
    >>> torch.allclose(pca(line), line, atol=1e-5), bool(pca.explained > 0.99)
    (True, True)
    """

    mean: Tensor
    axes: Tensor
    variances: Tensor
    total_variance: Tensor

    def __init__(self, features: int, components: int, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.features = validate.count("features", features)
        self.components = validate.count("components", components, most=features)
        place = {"device": device, "dtype": dtype}
        self.register_buffer("mean", torch.zeros(features, **place))
        self.register_buffer("axes", torch.eye(components, features, **place))
        self.register_buffer("variances", torch.ones(components, **place))
        self.register_buffer("total_variance", torch.full((), float(features), **place))

    @torch.no_grad()
    def fit(self, x: Float[Tensor, "points features"]) -> "PCA":
        """Learn mean, axes and variances, in float64."""
        validate.last_axis("x", validate.matrix("x", x), self.features)
        if len(x) <= self.components:
            raise ValueError(f"x must hold more points than the {self.components} components, got {len(x)}: take more")
        wide = x.to(self.mean.device, torch.float64)
        mean = wide.mean(0)
        axes, variances = principal_axes(wide - mean)
        for name, value in (("mean", mean), ("axes", axes), ("variances", variances)):
            getattr(self, name).copy_(value if name == "mean" else value[: self.components])
        self.total_variance.copy_(variances.sum())
        return self

    def transform(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch components"]:
        """The coordinates along the axes."""
        return (validate.inputs("x", x, self.features) - self.mean) @ self.axes.mT

    def inverse_transform(self, z: Float[Tensor, "*batch components"]) -> Float[Tensor, "*batch features"]:
        """The point with these coordinates."""
        return self.mean + validate.inputs("z", z, self.components) @ self.axes

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        return self.inverse_transform(self.transform(x))  # (..., features) -> (..., components) -> (..., features)

    @property
    def explained(self) -> Tensor:
        """The part of all variance that lies along the axes."""
        return self.variances.sum() / self.total_variance

    def extra_repr(self) -> str:
        return f"features={self.features}, components={self.components}"
