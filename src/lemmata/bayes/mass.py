r"""The mass of momenta: how they are drawn, and how fast they move a position."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = ["Mass"]


class Mass:
    r"""The covariance $M$ of the momenta $v\sim\mathcal N(0,M)$: the identity, a diagonal, or a whole matrix.

    $$ v=Lz,\quad M=LL^\top,\qquad \dot\theta=M^{-1}v,\qquad K(v)=\tfrac12v^\top M^{-1}v $$

    Good masses are the *inverse* of the target's covariance: all directions then take equally long.

    Shapes:
        mass: None, (dimension,) or (dimension, dimension)    momentum, noise: (chains, dimension)

    >>> mass = Mass(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
    >>> mass.velocity(torch.ones(1, 2))
    tensor([[0.2500, 1.0000]])
    """

    def __init__(self, mass: Float[Tensor, "*shape"] | None = None) -> None:
        self.matrix = mass
        if mass is None:
            return
        validate.floating("mass", mass)
        if mass.ndim == 1:
            if not (mass > 0).all():
                raise ValueError(f"mass must be > 0 in every entry, got {mass.min().item():g}")
            self._root, self._inverse = mass.sqrt(), 1 / mass
            return
        if mass.ndim != 2:
            raise ValueError(f"mass must be a (dimension,) or (dimension, dimension) tensor, got {tuple(mass.shape)}")
        root, failed = torch.linalg.cholesky_ex(validate.symmetric("mass", mass))
        if failed:
            raise ValueError(
                "mass must be positive definite, its Cholesky factor does not exist: use mass + c * identity"
            )
        self._root, self._inverse = root, torch.cholesky_inverse(root)

    def fitting(self, position: Float[Tensor, "chains dimension"]) -> "Mass":
        """Itself, or a ValueError where its dimension is not that of the positions."""
        if self.matrix is not None and self.matrix.shape[-1] != position.shape[1]:
            size = self.matrix.shape[-1]
            raise ValueError(f"mass is that of {size} dimensions, but position has {position.shape[1]}")
        return self

    def momentum(self, noise: Float[Tensor, "chains dimension"]) -> Float[Tensor, "chains dimension"]:
        """Momenta with covariance M from standard normal numbers."""
        if self.matrix is None:
            return noise
        return noise * self._root if self._root.ndim == 1 else noise @ self._root.mT

    def velocity(self, momentum: Float[Tensor, "chains dimension"]) -> Float[Tensor, "chains dimension"]:
        """How fast these momenta move a position."""
        if self.matrix is None:
            return momentum
        return momentum * self._inverse if self._inverse.ndim == 1 else momentum @ self._inverse

    def kinetic(self, momentum: Float[Tensor, "chains dimension"]) -> Float[Tensor, " chains"]:
        """Kinetic energy of each chain."""
        return 0.5 * (momentum * self.velocity(momentum)).sum(1)

    def square_length(self, position: Float[Tensor, "chains dimension"]) -> Float[Tensor, " chains"]:
        """Squared lengths in the coordinates in which this mass is the identity."""
        if self.matrix is None:
            return position.square().sum(1)
        return (position * (position * self.matrix if self.matrix.ndim == 1 else position @ self.matrix)).sum(1)
