r"""Moment generating functions: of the usual distributions, of sums, and the moments that they generate."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.probability import parameters
from lemmata.foundations.probability.parameters import Real
from lemmata.marks import system

__all__ = [
    "bernoulli_mgf",
    "binomial_mgf",
    "gamma_mgf",
    "mgf_of_sum",
    "moments_from_mgf",
    "normal_mgf",
    "poisson_mgf",
]


@system("bernoulli_mgf", title="Generating function: Bernoulli", kind="function")
def bernoulli_mgf(t: Real, probability: Real) -> Tensor:
    r"""The moment generating function of a variable that is 1 with probability p, else 0.

    $$ \mathbb E[e^{tX}] = p\,e^t + 1 - p $$

    Shapes:
        t, probability: numbers or tensors that broadcast    returns: a tensor

    Claims: mgf.bernoulli, mgf.definition, mgf.binomial

    >>> bernoulli_mgf(0.0, 0.3)
    tensor(1., dtype=torch.float64)
    """
    p = parameters.probability("probability", probability, t)
    return 1 + p * torch.expm1(parameters.real("t", t, p))


@system("binomial_mgf", title="Generating function: binomial", kind="function")
def binomial_mgf(t: Real, trials: int, probability: Real) -> Tensor:
    r"""The moment generating function of the number of successes in n trials.

    $$ \mathbb E[e^{tX}] = (p\,e^t + 1 - p)^n $$

    Shapes:
        t, probability: numbers or tensors that broadcast    returns: a tensor

    Claims: mgf.binomial, mgf.definition

    >>> binomial_mgf(math.log(2), 3, 0.5)
    tensor(3.3750, dtype=torch.float64)
    """
    return bernoulli_mgf(t, probability) ** validate.count("trials", trials, least=0)


@system("normal_mgf", title="Generating function: normal", kind="function")
def normal_mgf(t: Real, mean: Real, variance: Real) -> Tensor:
    r"""The moment generating function of a normal variable; its second parameter is the variance.

    $$ \mathbb E[e^{tX}] = \exp\big(\mu t + \tfrac12 \sigma^2 t^2\big) $$

    Shapes:
        t, mean, variance: numbers or tensors that broadcast    returns: a tensor

    Claims: mgf.normal, mgf.definition

    >>> normal_mgf(1.0, 0.0, 4.0).log()
    tensor(2., dtype=torch.float64)
    """
    t = parameters.real("t", t, mean, variance)
    variance = parameters.at_least_zero("variance", variance, t)
    return torch.exp(parameters.real("mean", mean, t) * t + variance * t.square() / 2)


@system("gamma_mgf", title="Generating function: gamma", kind="function")
def gamma_mgf(t: Real, shape: Real, scale: Real) -> Tensor:
    r"""The moment generating function of a gamma variable with the mean shape times scale.

    $$ \mathbb E[e^{tX}] = (1 - \beta t)^{-\alpha}, \qquad t < 1/\beta $$

    From $t = 1/\beta$ on it is infinite. With the rate $b = 1/\beta$ it reads $(1 - t/b)^{-\alpha}$.

    Shapes:
        t, shape, scale: numbers or tensors that broadcast    returns: a tensor

    Claims: mgf.gamma, mgf.definition

    >>> gamma_mgf(torch.tensor([0.0, 0.25, 0.5]), shape=2.0, scale=2.0)
    tensor([1., 4., inf])
    """
    t = parameters.real("t", t, shape, scale)
    base = 1 - parameters.above_zero("scale", scale, t) * t
    finite = base > 0
    # Where it is infinite the power is taken of 1, so that no NaN reaches a gradient.
    safe = torch.where(finite, base, 1.0)
    power = safe ** -parameters.above_zero("shape", shape, t)
    return torch.where(finite, power, math.inf)


@system("poisson_mgf", title="Generating function: Poisson", kind="function")
def poisson_mgf(t: Real, rate: Real) -> Tensor:
    r"""The moment generating function of a Poisson variable.

    $$ \mathbb E[e^{tX}] = \exp\big(\lambda(e^t - 1)\big) $$

    Shapes:
        t, rate: numbers or tensors that broadcast    returns: a tensor

    Claims: mgf.poisson, mgf.definition

    >>> poisson_mgf(0.0, 1.7)
    tensor(1., dtype=torch.float64)
    """
    t = parameters.real("t", t, rate)
    return torch.exp(parameters.at_least_zero("rate", rate, t) * torch.expm1(t))


@system("mgf_of_sum", title="Generating function of a sum", kind="function")
def mgf_of_sum(
    mgfs: Sequence[Callable[[Tensor], Tensor]], coefficients: Float[Tensor, "terms"] | Sequence[float]
) -> Callable[[Tensor], Tensor]:
    r"""The moment generating function of a weighted sum of independent variables, from theirs.

    $$ M_{\sum_i a_iX_i}(t) = \prod_i M_{X_i}(a_i t) $$

    Claims: mgf.linear_combination

    >>> coin = lambda t: bernoulli_mgf(t, 0.5)
    >>> two = mgf_of_sum([coin, coin], [1.0, 1.0])
    >>> two(torch.tensor(0.7)).allclose(binomial_mgf(torch.tensor(0.7), 2, 0.5))
    True
    """
    if len(mgfs) != len(coefficients) or not mgfs:
        raise ValueError(f"coefficients must hold one number for each of {len(mgfs)} functions, got {coefficients}")

    def mgf(t: Tensor) -> Tensor:
        product = torch.ones_like(t)
        for function, coefficient in zip(mgfs, coefficients, strict=True):
            product = product * function(coefficient * t)
        return product

    return mgf


@system("moments_from_mgf", title="Moments from a generating function", kind="function")
def moments_from_mgf(mgf: Callable[[Tensor], Tensor], order: int) -> Float[Tensor, "moments"]:
    r"""The moments of a variable, by differentiating its moment generating function at 0.

    $$ \psi^{(k)}(0) = \mathbb E[X^k], \qquad k = 0, \dots, n $$

    Shapes:
        mgf: from a float64 scalar to a scalar    returns: (order + 1,), beginning with $\psi(0) = 1$

    Claims: mgf.definition

    >>> moments_from_mgf(lambda t: poisson_mgf(t, 2.0), order=3)
    tensor([ 1.,  2.,  6., 22.], dtype=torch.float64)
    """
    validate.count("order", order, least=0)
    with torch.enable_grad():
        t = torch.zeros((), dtype=torch.float64, requires_grad=True)
        derivatives = [mgf(t)]
        for _ in range(order):
            attached = derivatives[-1] + t * 0  # so that autograd finds t in a constant as well
            (slope,) = torch.autograd.grad(attached, t, create_graph=True)
            derivatives.append(slope)
    return torch.stack([derivative.detach() for derivative in derivatives])
