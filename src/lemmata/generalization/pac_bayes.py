r"""PAC-Bayes bounds: the risk of a random classifier, from its error and from how far it went from where it began.

A posterior over classifiers may depend on the n examples in any way, the prior must not. Then, with probability
at least $1 - \epsilon$, for all posteriors at once,

$$ \mathrm{kl}\big(\hat e\,\|\,e\big) \le c = \frac1n\Big(D_{KL}(q\|p) + \ln\frac{2\sqrt n}{\epsilon}\Big) $$

and each form solves it for the risk e: "kl" exactly, "quadratic" and "mcallester" with something given away.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generalization.binary_kl import kl_inverse
from lemmata.generalization.risk_bounds import UPWARDS, RiskBound, checked_confidence, checked_error
from lemmata.marks import system

__all__ = ["pac_bayes_bound", "pac_bayes_objective"]

NAMES = {
    "kl": "PAC-Bayes, kl inverted",
    "quadratic": "PAC-Bayes, quadratic",
    "mcallester": "PAC-Bayes, McAllester",
    "catoni": "PAC-Bayes, Catoni",
}


@system("pac_bayes_bound", title="PAC-Bayes bound", kind="function")
def pac_bayes_bound(
    error: float, kl: float, n: int, confidence: float = 0.95, form: str = "kl", beta: float = 1.0
) -> RiskBound:
    r"""The risk of a classifier drawn from the posterior, from its mean error on n examples and its divergence.

    With $c = (D_{KL}(q\|p) + \ln(2\sqrt n/\epsilon))/n$ the forms are, each below the next,

    $$ \mathrm{kl}^{-1}(\hat e\mid c) \ \le\ \Big(\sqrt{\hat e + \tfrac c2} + \sqrt{\tfrac c2}\Big)^2, \qquad
       \mathrm{kl}^{-1}(\hat e\mid c) \ \le\ \hat e + \sqrt{\tfrac c2} $$

    "kl", "quadratic" and "mcallester" (the last two cross). "catoni" is another theorem, for a `beta` that was fixed
    before the data, without the $2\sqrt n$:

    $$ \frac{1 - e^{-\beta\hat e - (D_{KL}(q\|p) + \ln(1/\epsilon))/n}}{1 - e^{-\beta}} $$

    `error` is the mean over the posterior, neither that of its mean nor that of a few draws, of a loss between 0 and 1.

    Claims: pac.bound
    Source: McAllester 1999; Seeger 2002; Maurer 2004; Catoni 2007; Thiemann et al. 2017, Pérez-Ortiz et al. 2021
    (quadratic).

    >>> print(pac_bayes_bound(error=0.05, kl=3.0, n=719))
    risk at most 0.09475, confidence 0.95 (PAC-Bayes, kl inverted)
    >>> print(pac_bayes_bound(error=0.597, kl=2.85e6, n=1000))
    vacuous: 1 is no bound below 1, confidence 0.95 (PAC-Bayes, kl inverted)
    """
    checked_error(error)
    _check_choices(kl, n, confidence, form, beta)
    mean, distance = (torch.tensor(float(part), dtype=torch.float64) for part in (error, kl))
    value = float(_bound_form(mean, distance, n, confidence, form, beta))
    # The inverse is rounded upwards by itself, from a divergence that was.
    return RiskBound(value if form == "kl" else value * UPWARDS, confidence, NAMES[form])


@system("pac_bayes_objective", title="PAC-Bayes objective", kind="function")
def pac_bayes_objective(
    error: Float[Tensor, "*batch"],
    kl: Float[Tensor, "*batch"],
    n: int,
    confidence: float = 0.95,
    form: str = "mcallester",
    beta: float = 1.0,
) -> Float[Tensor, "*batch"]:
    r"""The same bounds as a loss: differentiable in the error and in the divergence, and no certificate by itself.

    $$ \ell_{PAC}(q) = \mathbb E_q[\hat\ell] + \sqrt{\frac1{2n}\Big(D_{KL}(q\|p)+\ln\frac{2\sqrt n}\epsilon\Big)} $$

    for "mcallester"; the other forms are those of `pac_bayes_bound`. The error is that of a loss between 0 and 1, such
    as a cross-entropy that is cut off and rescaled; its values are not looked at.

    Shapes:
        error, kl: (batch)    returns: (batch)

    Claims: pac.objective

    >>> error, kl = torch.tensor(0.1, requires_grad=True), torch.tensor(20.0, requires_grad=True)
    >>> loss = pac_bayes_objective(error, kl, n=1000)
    >>> loss.backward()
    >>> loss.detach(), error.grad, kl.grad
    (tensor(0.2165), tensor(1.), tensor(0.0021))
    """
    _check_choices(0.0, n, confidence, form, beta)
    return _bound_form(validate.tensor("error", error), validate.tensor("kl", kl), n, confidence, form, beta)


def _bound_form(error: Tensor, kl: Tensor, n: int, confidence: float, form: str, beta: float) -> Tensor:
    """The bound as tensors."""
    failure = 1 - confidence
    if form == "catoni":
        return _catoni_bound(error, (kl - math.log(failure)) / n, beta)
    divergence = (kl + math.log(2 * math.sqrt(n) / failure)) / n * UPWARDS
    if form == "kl":
        return kl_inverse(error, divergence)
    if form == "quadratic":
        return ((error + divergence / 2).sqrt() + (divergence / 2).sqrt()) ** 2
    return error + (divergence / 2).sqrt()


def _catoni_bound(error: Tensor, divergence: Tensor, beta: float) -> Tensor:
    """Catoni's form; at one divergence its least value over beta is the inverse of the binary divergence."""
    return -torch.expm1(-beta * error - divergence) / -math.expm1(-beta)


def _check_choices(kl: float, n: int, confidence: float, form: str, beta: float) -> None:
    validate.number("kl", kl, 0)
    validate.count("n", n)
    checked_confidence(confidence)
    validate.one_of("form", form, NAMES)
    validate.positive("beta", beta)
