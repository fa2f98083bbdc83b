r"""Orthogonal projections: onto a hyperplane in normal form, and onto the span of any set of vectors."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.norms import p_norm
from lemmata.validate import broadcast, fits, matrices

__all__ = ["Hyperplane", "projection_matrix", "project_onto_span"]


@system("hyperplane", title="Hyperplane in normal form", kind="function")
class Hyperplane:
    r"""A hyperplane, given by a normal and an offset, or by a normal and one of its points.

    $$ H = \{x : \langle w, x\rangle = b\} = \{x : \langle w, x - p\rangle = 0\}, \qquad b = \langle w, p\rangle $$

    In Hesse's form the normal has length 1, $n = w/\|w\|$, and the offset $d = b/\|w\|$ is the signed distance of the
    plane from the origin.

    Shapes:
        normal: (features,), offset: scalar, x: (..., features)

    Claims: geometry.hyperplane

    >>> plane = Hyperplane(torch.tensor([3.0, 4.0]), 10.0)
    >>> plane.unit_normal, plane.unit_offset
    (tensor([0.6000, 0.8000]), tensor(2.))
    >>> plane.signed_distance(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([-2.,  3.])
    """

    def __init__(self, normal: Float[Tensor, "features"], offset: int | float | Tensor) -> None:
        self.normal = validate.vector("normal", normal)
        if not normal.any():
            raise ValueError("normal must not be zero: a plane without a normal has no direction")
        self.offset = _scalar(offset, like=normal)

    @classmethod
    def through(cls, point: Float[Tensor, "features"], normal: Float[Tensor, "features"]) -> "Hyperplane":
        """The plane with this normal that contains this point."""
        validate.vector("normal", normal)
        fits("point", validate.vector("point", point), (len(normal),), like=normal, whose="normal")
        return cls(normal, normal @ point)

    @property
    def unit_normal(self) -> Float[Tensor, "features"]:
        r"""Hesse's normal $n = w/\|w\|$."""
        return self.normal / p_norm(self.normal)

    @property
    def unit_offset(self) -> Float[Tensor, ""]:
        r"""Hesse's offset $d = b/\|w\|$: the signed distance of the plane from the origin, along the normal."""
        return self.offset / p_norm(self.normal)

    def signed_distance(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        r"""$n^\top x - d$: positive on the side the normal points to, zero on the plane."""
        fits("x", x, (len(self.normal),), like=self.normal, whose="normal")
        return x @ self.unit_normal - self.unit_offset

    def project(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        """The nearest point of the plane."""
        return x - self.signed_distance(x)[..., None] * self.unit_normal

    def reflect(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        """The mirror image: as far behind the plane as the point is before it."""
        return x - 2 * self.signed_distance(x)[..., None] * self.unit_normal

    def __repr__(self) -> str:
        return f"Hyperplane(normal={self.normal.tolist()}, offset={self.offset.item():g})"


def projection_matrix(vectors: Float[Tensor, "*batch features count"]) -> Float[Tensor, "*batch features features"]:
    r"""The orthogonal projection onto the span of the columns, independent or not.

    $$ P = B B^{+}, \qquad P^2 = P = P^\top $$

    Shapes:
        vectors: (..., features, count), one vector a column    returns: (..., features, features)

    Claims: geometry.hyperplane

    >>> projection_matrix(torch.tensor([[1.0], [1.0]]))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    matrices("vectors", vectors, "features, count")
    return vectors @ torch.linalg.pinv(vectors)


def project_onto_span(
    x: Float[Tensor, "*#batch features"], vectors: Float[Tensor, "*#batch features count"]
) -> Float[Tensor, "*#batch features"]:
    r"""The point of the span of the columns that is nearest to $x$.

    $$ \hat x = B B^{+} x, \qquad B^\top (x - \hat x) = 0 $$

    Shapes:
        x: (..., features), vectors: (..., features, count)    returns: (..., features)

    Claims: geometry.hyperplane

    >>> project_onto_span(torch.tensor([1.0, 2.0, 3.0]), torch.eye(3)[:, :2])
    tensor([1., 2., 0.])
    """
    matrices("vectors", vectors, "features, count")
    fits("x", x, (vectors.shape[-2],), like=vectors, whose="vectors")
    broadcast(x=tuple(x.shape[:-1]), vectors=tuple(vectors.shape[:-2]))
    return (vectors @ (torch.linalg.pinv(vectors) @ x[..., None]))[..., 0]


def _scalar(value: int | float | Tensor, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"offset must be one number, got shape {tuple(value.shape)}")
        validate.finite_number("offset", value.item())
        return value.reshape(()).to(like)  # keeps its gradient
    return like.new_tensor(validate.finite_number("offset", value))
