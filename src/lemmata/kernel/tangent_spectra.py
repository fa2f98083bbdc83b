r"""What the spectrum of a tangent kernel says: how many directions are learnt, which labels, and how it moves."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["TangentSpectrum", "kernel_drift", "tangent_spectrum"]


@dataclass(frozen=True)
class TangentSpectrum:
    """Eigenvalues of a kernel, and how labels lie to them."""

    eigenvalues: Float[Tensor, "modes"]
    """From the largest on; rates at which errors along the eigenvectors decay."""
    effective_rank: float
    """Of how many equal eigenvalues the spectrum has the entropy: from 1 to the number of modes."""
    condition: float
    """Largest over smallest eigenvalue: how much longer the slowest direction takes."""
    alignment: float | None
    """The cosine of the kernel with the labels' own, from 0 to 1."""
    energy: Float[Tensor, "modes"] | None
    """Fraction of the squared labels along each eigenvector."""


@system("tangent_spectrum", title="Spectrum of a tangent kernel", kind="function")
def tangent_spectrum(kernel: Float[Tensor, "n _ ..."], y: Float[Tensor, "_ ..."] | None = None) -> TangentSpectrum:
    r"""Eigenvalues, effective rank and alignment with labels of a kernel.

    $$ r = e^{-\sum_i p_i \ln p_i}, \quad p_i = \frac{\lambda_i}{\sum_j\lambda_j}, \qquad
       a = \frac{y^\top K y}{\|K\|_F\,\|y\|^2} $$

    Labels along directions of large eigenvalues are learnt first (`ntk.exp_solution`); a kernel that is aligned with
    them learns them soon, and generalises.

    Shapes:
        kernel: (n, n), or (n, n, outputs, outputs) as `ntk` gives it    y: (n,), or (n, outputs) beside that

    Source: O. Roy and M. Vetterli 2007 (effective rank); N. Cristianini et al. 2001 (alignment).

    >>> found = tangent_spectrum(torch.diag(torch.tensor([3.0, 3.0, 0.0])), torch.tensor([1.0, 0.0, 0.0]))
    >>> round(found.effective_rank, 6), round(found.alignment, 4)
    (2.0, 0.7071)
    """
    matrix = validate.symmetric("kernel", _as_matrix(kernel)).double()
    values, vectors = torch.linalg.eigh(matrix)
    values, vectors = values.flip(0), vectors.flip(1)
    room = 10 * len(values) * torch.finfo(kernel.dtype).eps * float(values[0].abs())
    if float(values[-1]) < -room or float(values[0]) <= 0:
        raise ValueError(
            f"kernel must be positive semidefinite and not zero, got the eigenvalue {float(values[-1]):.3g}"
        )
    values = values.clamp(min=0.0)
    fractions = values / values.sum()
    rank = float(torch.exp(torch.special.entr(fractions).sum()))
    condition = float(values[0] / values[-1]) if float(values[-1]) > room else float("inf")
    if y is None:
        return TangentSpectrum(values, rank, condition, None, None)
    labels = validate.floating("y", y).double().flatten()
    if len(labels) != len(values) or not bool(labels.any()):
        raise ValueError(f"y must hold {len(values)} labels that are not all zero, got shape {tuple(y.shape)}")
    along = (vectors.mT @ labels).square()
    alignment = float((values * along).sum() / (matrix.norm() * labels.square().sum()))
    return TangentSpectrum(values, rank, condition, alignment, along / along.sum())


def kernel_drift(before: Float[Tensor, "n n ..."], after: Float[Tensor, "_ _ ..."]) -> float:
    r"""How far a kernel has moved, $\|K_t - K_0\|_F / \|K_0\|_F$: near zero, training is that of a linear model.

    >>> round(kernel_drift(torch.eye(2), 1.5 * torch.eye(2)), 6)
    0.5
    """
    validate.fits("after", after, tuple(validate.floating("before", before).shape), before, "before")
    if not bool(before.any()):
        raise ValueError("before must not be zero everywhere, got norm 0")
    return float((after.double() - before.double()).norm() / before.double().norm())


def _as_matrix(kernel: Tensor) -> Tensor:
    validate.floating("kernel", kernel)
    if kernel.ndim == 4 and kernel.shape[2] == kernel.shape[3]:
        kernel = kernel.transpose(1, 2).flatten(2).flatten(0, 1)  # (n * outputs, n * outputs)
    return kernel
