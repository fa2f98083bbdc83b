r"""Linear recurrences in the basis of their eigenvectors, where every channel evolves on its own."""

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.fast.scan import linear_scan
from lemmata.recurrent.linear_state_space import check_system

__all__ = ["Diagonalisation", "diagonalise", "impulse_response"]


@dataclass(frozen=True)
class Diagonalisation:
    r"""A linear system seen in the basis of its eigenvectors.

    $$ A = P\Lambda P^{-1}, \quad \zeta_t = P^{-1}z_t, \quad C = P^{-1}B \quad\Rightarrow\quad
       \zeta_{t+1} = \Lambda\zeta_t + Cx_t $$

    Shapes:
        eigenvalues: complex (state,), basis P: complex (state, state), inputs C: complex (state, inputs)
        condition: the condition number of P, by which rounding errors may grow

    Claims: rnn.linear.diagonalisation
    """

    eigenvalues: Complex[Tensor, " state"]
    basis: Complex[Tensor, "state state"]
    inputs: Complex[Tensor, "state inputs"]
    condition: float

    @property
    def matrix(self) -> Complex[Tensor, "state state"]:
        r"""The matrix $P\Lambda P^{-1}$; its imaginary part is rounding if the system was real."""
        return torch.linalg.solve(self.basis, self.basis * self.eigenvalues, left=False)

    def coordinates(self, z: Tensor) -> Complex[Tensor, "*batch state"]:
        r"""From states to channels: $\zeta = P^{-1}z$."""
        return torch.linalg.solve(self.basis, z.to(self.basis.dtype)[..., None])[..., 0]

    def states(self, zeta: Complex[Tensor, "*batch state"]) -> Complex[Tensor, "*batch state"]:
        r"""From channels to states: $z = P\zeta$."""
        return zeta @ self.basis.mT

    def evolve(
        self, x: Float[Tensor, "batch time inputs"], z0: Float[Tensor, "batch state"] | None = None
    ) -> Complex[Tensor, "batch steps state"]:
        r"""The channels $\zeta_0, \dots, \zeta_T$ under an input, by one scan: entry t is $\zeta_t$."""
        if x.ndim != 3 or x.shape[-1] != self.inputs.shape[1]:
            raise ValueError(f"x must be (batch, time, {self.inputs.shape[1]}), got shape {tuple(x.shape)}")
        start = self.inputs.new_zeros(len(x), len(self.inputs)) if z0 is None else self.coordinates(z0)
        driven = x.to(self.inputs.dtype) @ self.inputs.mT
        return torch.cat([start[:, None], linear_scan(self.eigenvalues, driven, start)], dim=1)


def diagonalise(
    A: Float[Tensor, "state state"],
    B: Float[Tensor, "state inputs"] | None = None,
    limit: float = 1e7,
) -> Diagonalisation:
    r"""The eigenvectors of a linear system as its new basis; an error if they do not clearly span the space.

    $$ A = P\Lambda P^{-1}, \qquad C = P^{-1}B $$

    Almost every matrix has such a basis. A Jordan block has none: rounding then leaves eigenvectors so nearly
    dependent that the condition of P exceeds $1/\sqrt\epsilon \approx 7\cdot10^7$; `limit` is drawn below that. Some
    matrices that have a basis exceed it too: of `[[1, 1e9], [0, 2]]` the condition is $2\cdot10^9$, and that many
    digits are lost; a larger `limit` takes them.

    Shapes:
        A: (state, state), B: (state, inputs), the identity if it is not given    returns: complex128 throughout

    Claims: rnn.linear.diagonalisation

    >>> turn = diagonalise(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> turn.eigenvalues
    tensor([0.+1.j, 0.-1.j], dtype=torch.complex128)
    >>> diagonalise(torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    Traceback (most recent call last):
    ValueError: the eigenvectors of A must be independent, got a condition of 9.0e+15 > 1.0e+07: ...
    """
    identity = torch.eye(len(A), dtype=A.dtype, device=A.device) if A.ndim else A
    check_system(A, identity if B is None else B)
    validate.positive("limit", limit)
    eigenvalues, basis = torch.linalg.eig(A.double())
    condition = float(torch.linalg.cond(basis))
    if not condition <= limit:
        raise ValueError(
            f"the eigenvectors of A must be independent, got a condition of {condition:.1e} > {limit:.1e}: as far as "
            "double precision tells they are not; perturb A slightly, raise limit, or use evolve, which needs none"
        )
    inputs = torch.linalg.solve(basis, (identity if B is None else B).to(basis.dtype))
    return Diagonalisation(eigenvalues, basis, inputs, condition)


def impulse_response(
    eigenvalues: Shaped[Tensor, "*batch channels"],
    steps: int,
    weights: Shaped[Tensor, "*batch channels"] | None = None,
) -> Float[Tensor, "*batch steps"]:
    r"""What a diagonal system answers to a single one at its input, step after step.

    $$ h_k = \mathrm{Re}\sum_i w_i\lambda_i^k, \qquad k = 0, \dots, \text{steps} - 1 $$

    A weight is the product of a channel's entries in input and readout, $w_i = g_ic_i$. To see the channels apart,
    give each a row: `impulse_response(eigenvalues[:, None], steps)`.

    Shapes:
        eigenvalues: (..., channels), real or complex; weights: (..., channels), one each if not given
        returns: (..., steps)

    Claims: rnn.linear.stability

    >>> impulse_response(torch.tensor([0.5]), 4)
    tensor([1.0000, 0.5000, 0.2500, 0.1250])
    >>> impulse_response(torch.tensor([1j]), 4).round() + 0
    tensor([ 1.,  0., -1.,  0.])
    """
    validate.count("steps", steps)
    if eigenvalues.ndim == 0:
        raise ValueError("eigenvalues must be a (..., channels) tensor, got a single number: use eigenvalues[None]")
    ratios = eigenvalues[..., None, :].expand(*eigenvalues.shape[:-1], steps - 1, -1)
    powers = torch.cat([torch.ones_like(eigenvalues[..., None, :]), ratios], dim=-2).cumprod(dim=-2)
    total = (powers if weights is None else powers * weights[..., None, :]).sum(-1)
    return total.real
