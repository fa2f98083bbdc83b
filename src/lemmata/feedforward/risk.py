r"""The empirical risk, with an interval that contains the expected risk."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from scipy import special
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["RiskEstimate", "empirical_risk"]


@dataclass(frozen=True, eq=False)
class RiskEstimate:
    """A mean loss and the interval around it, each a scalar or (...) as the losses were."""

    risk: Tensor
    low: Tensor
    high: Tensor
    examples: int

    def __repr__(self) -> str:
        if self.risk.ndim:
            return f"RiskEstimate(shape={tuple(self.risk.shape)}, examples={self.examples})"
        return f"RiskEstimate({self.risk:.4g}, from {self.low:.4g} to {self.high:.4g}, examples={self.examples})"


@system("empirical_risk", title="Empirical risk with an interval", kind="function")
def empirical_risk(
    losses: Float[Tensor, "*batch examples"],
    confidence: float = 0.95,
    bounds: tuple[int | float, int | float] | None = None,
) -> RiskEstimate:
    r"""The mean loss on independent examples, and where the expected loss lies with the given confidence.

    $$ \hat R = \frac1s\sum_{i=1}^s \ell(y_i, f(x_i)), \qquad \mathbb E\hat R = R = \mathbb E\,\ell(y, f(x)) $$

    for a function that was chosen without these examples: of training examples the mean loss is too small. Without
    `bounds` the interval is Student's, $\hat R \pm t\,\hat\sigma/\sqrt s$, exact for normal losses and right in the
    limit for others. With `bounds` on the loss it is that of the empirical Bernstein inequality, which holds for every
    distribution and number of examples,

    $$ |R - \hat R| \le \hat\sigma\sqrt{2\log(4/\delta)/s} + \frac{7(b-a)\log(4/\delta)}{3(s-1)}, \qquad
       \delta = 1 - \text{confidence} $$

    Shapes:
        losses: (..., examples)    returns: risk, low and high (...)

    Claims: risk.expected_empirical
    Source: Student 1908; Maurer and Pontil 2009, theorem 4.

    >>> empirical_risk(torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]))
    RiskEstimate(0.5, from 0.05313 to 0.9469, examples=8)
    >>> empirical_risk(torch.tensor([0.0, 1.0] * 500), bounds=(0, 1))
    RiskEstimate(0.5, from 0.4429 to 0.5571, examples=1000)
    """
    losses = validate.floating("losses", losses).detach()
    validate.number("confidence", confidence, above=0.0, below=1.0)
    examples = losses.shape[-1] if losses.ndim else 0
    if examples < 2:
        raise ValueError(f"losses must hold two examples or more on their last axis, got shape {tuple(losses.shape)}")
    risk, deviation = losses.mean(-1), losses.std(-1)
    if bounds is None:
        quantile = float(special.stdtrit(examples - 1, (1 + confidence) / 2))
        reach = quantile * deviation / math.sqrt(examples)
        return RiskEstimate(risk, risk - reach, risk + reach, examples)
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(f"bounds must be (least, most) of any loss, got {bounds!r}: use (0, 1) for errors")
    least, most = (validate.finite_number("bounds", bound) for bound in bounds)
    if not least < most or bool((losses < least).any() | (losses > most).any()):
        told = f"the losses lie from {float(losses.min()):.4g} to {float(losses.max()):.4g}"
        raise ValueError(f"bounds must be (least, most) of any loss, got {bounds}: {told}")
    log = math.log(4 / (1 - confidence))
    reach = deviation * math.sqrt(2 * log / examples) + 7 * (most - least) * log / (3 * (examples - 1))
    return RiskEstimate(risk, (risk - reach).clamp(min=least), (risk + reach).clamp(max=most), examples)
