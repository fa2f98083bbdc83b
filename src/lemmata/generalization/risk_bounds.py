r"""Bounds on the risk of a classifier on new data: from its class, from the number of classifiers, or from a test set.

Each holds with a stated confidence over the draw of n independent examples, for losses between 0 and 1, and answers
with a `RiskBound`. One that is not below 1 says nothing, and says that it says nothing.
"""

import math
from dataclasses import dataclass, field

from scipy.special import betaincinv

from lemmata import validate
from lemmata.marks import system

__all__ = ["RiskBound", "dkw_bound", "finite_class_bound", "sauer_bound", "test_set_bound", "vc_bound"]

# Sums, roots and logarithms of a few numbers, rounded upwards: forty times what they may be off by.
UPWARDS = 1 + 2.0**-46


@dataclass(frozen=True)
class RiskBound:
    r"""What is guaranteed of a risk between 0 and 1: at most `value`, except with probability 1 - `confidence`.

    $$ P(\text{risk} \le \text{value}) \ge 1 - \epsilon = \text{confidence}; \qquad
       \text{vacuous} \iff \text{value} \ge 1 $$

    The value is not cut off at 1: how far it is above says how far a bound is from saying something.

    >>> print(RiskBound(0.12, 0.95, "test set of 500"))
    risk at most 0.12, confidence 0.95 (test set of 500)
    >>> print(RiskBound(37.0, 0.95, "McAllester"))
    vacuous: 37 is no bound below 1, confidence 0.95 (McAllester)
    """

    value: float
    vacuous: bool = field(init=False)
    confidence: float
    what: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "vacuous", not self.value < 1)

    def __str__(self) -> str:
        said = f"vacuous: {self.value:.4g} is no bound below 1" if self.vacuous else f"risk at most {self.value:.4g}"
        return f"{said}, confidence {self.confidence:g} ({self.what})"


@system("vc_bound", title="Vapnik-Chervonenkis bound", kind="function")
def vc_bound(error: float, growth: int, n: int, confidence: float = 0.95) -> RiskBound:
    r"""The risk of any classifier of a class, from its error on n examples and the growth function of the class.

    $$ \hat e + \sqrt{\frac{32}{n} \ln\frac{8\,\mathcal F(n)}{\epsilon}}, \qquad \epsilon = 1 - \text{confidence} $$

    For all classifiers at once, hence also for the one that was chosen by these examples; with `error=0` it bounds the
    largest gap between risk and error. A class that gives the points all $2^n$ labellings leaves nothing to say:
    $32 \ln 2 > 1$. The growth function may be as large an integer as it is; `sauer_bound` has one for a VC dimension.

    Claims: slt.vc_inequality
    Source: Vapnik and Chervonenkis 1971; constants of Devroye, Györfi and Lugosi 1996.

    >>> vc_bound(error=0.02, growth=100_001, n=100_000)
    RiskBound(value=0.0928..., vacuous=False, confidence=0.95, what='VC bound')
    >>> vc_bound(error=0.02, growth=2**100_000, n=100_000).vacuous
    True
    """
    error, n, failure = _checked_arguments(error, n, confidence)
    logarithm = math.log(8 * validate.count("growth", growth)) - math.log(failure)
    return _risk_bound(error + math.sqrt(32 / n * logarithm), confidence, "VC bound")


@system("finite_class_bound", title="Bound for a finite class", kind="function")
def finite_class_bound(error: float, classifiers: int, n: int, confidence: float = 0.95) -> RiskBound:
    r"""The risk of any of so many classifiers, from its error on n examples: Hoeffding's inequality for each of them.

    $$ \hat e + \sqrt{\frac{1}{2n}\ln\frac{2|\mathcal F|}{\epsilon}} $$

    For all of them at once, and on both sides: with `error=0` it bounds the largest distance of risk and error.

    Claims: error.statistical

    >>> print(finite_class_bound(error=0.1, classifiers=1000, n=5000))
    risk at most 0.1326, confidence 0.95 (1,000 classifiers)
    """
    error, n, failure = _checked_arguments(error, n, confidence)
    logarithm = math.log(2 * validate.count("classifiers", classifiers)) - math.log(failure)
    what = f"{classifiers:,} classifier{'s' if classifiers > 1 else ''}"
    return _risk_bound(error + math.sqrt(logarithm / (2 * n)), confidence, what)


@system("dkw_bound", title="Bound for all thresholds (Dvoretzky, Kiefer, Wolfowitz; Massart)", kind="function")
def dkw_bound(error: float, n: int, confidence: float = 0.95) -> RiskBound:
    r"""The probability that a number is at most t, for all thresholds t at once, from its frequency among n.

    $$ P\Big(\sup_t|\hat F_n(t)-F(t)| > \epsilon\Big) \le 2e^{-2n\epsilon^2} $$

    The growth function of the thresholds, n + 1, is gone, and both constants are the best possible.

    Claims: slt.vc_inequality
    Source: Massart 1990.

    >>> print(dkw_bound(error=0.1, n=5000))
    risk at most 0.1192, confidence 0.95 (all thresholds)
    """
    error, n, failure = _checked_arguments(error, n, confidence)
    return _risk_bound(error + math.sqrt(math.log(2 / failure) / (2 * n)), confidence, "all thresholds")


@system("test_set_bound", title="Test-set bound (Clopper-Pearson)", kind="function")
def test_set_bound(errors: int, n: int, confidence: float = 0.95) -> RiskBound:  # noqa: PT028 (no test)
    r"""The risk of one classifier, from its errors among n examples that had no part in choosing it.

    $$ \max\Big\{r : \sum_{k\le\text{errors}}\binom nk r^k(1-r)^{n-k} \ge \epsilon\Big\} $$

    The exact end of the binomial distribution: no bound from the same count is smaller. What any other certificate must
    be compared with, for it costs nothing but the examples that are kept apart.

    Source: Clopper and Pearson 1934; Langford 2005.

    >>> print(test_set_bound(errors=36, n=719))
    risk at most 0.06559, confidence 0.95 (test set of 719)
    """
    _, n, failure = _checked_arguments(0.0, n, confidence)
    validate.count("errors", errors, least=0, most=n)
    end = 1.0 if errors == n else float(betaincinv(errors + 1, n - errors, 1 - failure))
    # SciPy's inverse is good to thirteen digits.
    return RiskBound(min(end * (1 + 1e-11), 1.0), confidence, f"test set of {n:,}")


test_set_bound.__test__ = False  # it begins like a test of pytest's, and is none


@system("sauer_bound", title="Sauer's lemma", kind="function")
def sauer_bound(n: int, dimension: int) -> int:
    r"""The most labellings that a class of this VC dimension can give n points.

    $$ \mathcal F(n) \le \sum_{i=0}^{d}\binom ni $$

    An exact integer: $2^n$ up to $n = d$, and a polynomial of degree d beyond.

    Claims: slt.vc_dim
    Source: Sauer 1972; Shelah 1972; Vapnik and Chervonenkis 1971.

    >>> sauer_bound(3, 3), sauer_bound(10, 3), sauer_bound(100, 3)
    (8, 176, 166751)
    """
    n, dimension = validate.count("n", n, least=0), validate.count("dimension", dimension, least=0)
    return sum(math.comb(n, i) for i in range(min(n, dimension) + 1))


def checked_confidence(confidence: float) -> float:
    """A confidence above 0 and below 1, as what is left to fail."""
    return 1 - validate.number("confidence", confidence, above=0.0, below=1.0)


def checked_error(error: float) -> float:
    """A mean loss between 0 and 1."""
    if not 0 <= validate.finite_number("error", error) <= 1:
        raise ValueError(f"error must lie between 0 and 1, got {error:g}: clip or rescale the loss")
    return float(error)


def _checked_arguments(error: float, n: int, confidence: float) -> tuple[float, int, float]:
    return checked_error(error), validate.count("n", n), checked_confidence(confidence)


def _risk_bound(value: float, confidence: float, what: str) -> RiskBound:
    return RiskBound(value * UPWARDS, confidence, what)
