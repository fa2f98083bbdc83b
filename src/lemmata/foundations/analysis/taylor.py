r"""Taylor's formula: the polynomial, the remainder as an integral, and the second-order model in many variables."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.analysis.function_values import Function, batch_gradients, batch_hessians, batch_values
from lemmata.marks import system

__all__ = ["nth_derivative", "second_order_model", "taylor_polynomial", "taylor_remainder"]

NODES = 24  # of Gauss and Legendre, exact for polynomials of degree 47


def nth_derivative(f: Function, x: Float[Tensor, "..."], order: int) -> Float[Tensor, "..."]:
    r"""The derivative of some order of an elementwise function, by autograd applied to itself.

    $$ f^{(k)}(x) $$

    Shapes:
        f: (...) to (...), entry by entry; x: (...)    returns: (...)

    Claims: analysis.taylor

    >>> nth_derivative(torch.sin, torch.zeros(1), order=3)
    tensor([-1.])
    """
    validate.floating("x", x)
    point = x.detach().requires_grad_()
    found = f(point)
    for _ in range(validate.count("order", order, least=0)):
        if not found.requires_grad:  # a constant
            return torch.zeros_like(x)
        (found,) = torch.autograd.grad(found.sum(), point, create_graph=True, materialize_grads=True)
    return found.detach()


@system("taylor_polynomial", title="Taylor polynomial", kind="function")
def taylor_polynomial(
    f: Function, at: Float[Tensor, "..."], x: Float[Tensor, "..."], degree: int
) -> Float[Tensor, "..."]:
    r"""The polynomial that has the value and the first derivatives of a function at one point.

    $$ \sum_{k=0}^n \frac{f^{(k)}(x_0)}{k!}\,(x - x_0)^k $$

    Shapes:
        f: (...) to (...), entry by entry; at, x: (...) that broadcast    returns: (...)

    Claims: analysis.taylor

    >>> taylor_polynomial(torch.exp, torch.zeros(1), torch.ones(1), degree=2)
    tensor([2.5000])
    """
    orders = range(validate.count("degree", degree, least=0) + 1)
    terms = [nth_derivative(f, at, k) / math.factorial(k) * (x - at) ** k for k in orders]
    return torch.stack(torch.broadcast_tensors(*terms)).sum(0)


@system("taylor_remainder", title="Remainder of Taylor's formula", kind="function")
def taylor_remainder(
    f: Function, at: Float[Tensor, "..."], x: Float[Tensor, "..."], degree: int
) -> Float[Tensor, "..."]:
    r"""What Taylor's polynomial leaves, as an integral over the next derivative, by Gauss's quadrature.

    $$ f(x) - P_n(x) = \int_{x_0}^x \frac{f^{(n+1)}(t)}{n!}\,(x - t)^n\,dt
       = \frac{f^{(n+1)}(\xi)}{(n+1)!}\,(x - x_0)^{n+1} $$

    Shapes:
        f: (...) to (...), entry by entry; at, x: (...) that broadcast    returns: (...)

    Claims: analysis.taylor

    >>> taylor_remainder(torch.exp, torch.zeros(1), torch.ones(1), degree=2)
    tensor([0.2183])
    """
    validate.count("degree", degree, least=0)
    at, x = torch.broadcast_tensors(validate.floating("at", at), validate.floating("x", x))
    nodes, weights = (torch.as_tensor(part).to(x) for part in np.polynomial.legendre.leggauss(NODES))
    half = (x - at)[..., None] / 2
    t = at[..., None] + half * (1 + nodes)
    integrand = nth_derivative(f, t, degree + 1) / math.factorial(degree) * (x[..., None] - t) ** degree
    return (weights * half * integrand).sum(-1)


@system("second_order_model", title="Second-order Taylor model", kind="function")
def second_order_model(f: Function, at: Float[Tensor, "n"], x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    r"""The quadratic function that has the value, gradient and Hessian of $f$ at one point; exact for quadratics.

    $$ f(w_t) + (w - w_t)^\top g + \tfrac12 (w - w_t)^\top H (w - w_t), \qquad
       [H]_{ij} = \frac{\partial^2 f}{\partial w_i\,\partial w_j} $$

    Shapes:
        at: (n,), x: (..., n)    returns: (...)

    Claims: analysis.taylor_second_order

    >>> second_order_model(lambda x: torch.exp(x).sum(), torch.zeros(1), torch.ones(1))
    tensor(2.5000)
    """
    step = x - validate.vector("at", at)
    bend = torch.einsum("...i,ij,...j->...", step, batch_hessians(f, at), step)
    return batch_values(f, at) + step @ batch_gradients(f, at) + bend / 2
