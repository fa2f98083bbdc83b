r"""Predictions by many models: the mixture of what each says, its bands, and how much of it is doubt or noise."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.calibration import CalibrationError, calibration_error, reliability_curve

__all__ = ["ClassificationPredictive", "Coverage", "RegressionPredictive", "gaussian_nll"]

HALVINGS = 60  # of the interval in which a quantile lies: to the last bit of a double


class Coverage(NamedTuple):
    """The fraction of examples that lie inside their bands, and Wilson's interval around it."""

    value: float
    low: float
    high: float


@system("regression_predictive", title="Bayesian predictive distribution of numbers", kind="estimator")
class RegressionPredictive:
    r"""Numbers as several models predict them with normal noise: a mixture, whose variance is split in two.

    $$ p(y|x) = \sum_i w_i\,\mathcal N(y;\mu_i, \gamma_i^2), \qquad
       \mathrm{Var}[y|x] = \underbrace{\mathrm{Var}_i[\mu_i]}_{\text{model}} +
       \underbrace{\mathbb E_i[\gamma_i^2]}_{\text{noise}} $$

    The variance of the model is that of the members' means: more data make it smaller. The noise stays. With draws
    from the posterior as members this estimates the predictive distribution; without `weights` they count alike.

    Shapes:
        means: (members, batch), variances: the same, or anything that broadcasts to it, such as one number
        mean, variance, model_variance, noise_variance, nll, cdf: (batch,); band: two of (batch,)

    Claims: bayes.predictive
    Source: S. Depeweg et al., Decomposition of uncertainty in Bayesian deep learning (2018).

    >>> predictive = RegressionPredictive(torch.tensor([[0.0], [2.0]]), 0.5)
    >>> predictive.mean, predictive.model_variance, predictive.noise_variance, predictive.variance
    (tensor([1.]), tensor([1.]), tensor([0.5000]), tensor([1.5000]))
    >>> low, high = predictive.band(0.9)
    >>> f"{low.item():.3f} {high.item():.3f}"
    '-0.906 2.906'
    """

    def __init__(
        self,
        means: Float[Tensor, "members batch"],
        variances: Float[Tensor, "members batch"] | float,
        weights: Float[Tensor, " members"] | None = None,
    ) -> None:
        self.means = validate.matrix("means", means, "members, batch")
        given = torch.as_tensor(variances, dtype=means.dtype, device=means.device)
        if not bool((given > 0).all()) or not bool(given.isfinite().all()):
            raise ValueError(f"variances must be finite and > 0, got {float(given.min()):g} as the least")
        validate.broadcast(means=tuple(means.shape), variances=tuple(given.shape))
        self.variances = given.broadcast_to(means.shape)
        self.weights = _member_weights(weights, means)

    @property
    def mean(self) -> Float[Tensor, " batch"]:
        """The mean of the mixture."""
        return self.weights @ self.means

    @property
    def model_variance(self) -> Float[Tensor, " batch"]:
        """How far the models differ: the variance of their means."""
        return self.weights @ (self.means - self.mean).square()

    @property
    def noise_variance(self) -> Float[Tensor, " batch"]:
        """The noise that the models expect, on average."""
        return self.weights @ self.variances

    @property
    def variance(self) -> Float[Tensor, " batch"]:
        """The variance of the mixture: both together."""
        return self.model_variance + self.noise_variance

    def nll(self, y: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """Minus the log score of each number: its negative log-likelihood under the mixture."""
        each = gaussian_nll(
            torch.stack([self.means, self.variances.log()], -1), self._checked_targets(y)
        )  # (members, batch)
        return -(self.weights.log()[:, None] - each).logsumexp(0)

    def cdf(self, y: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """The probability of at most y: uniform on [0, 1] for numbers that the mixture describes."""
        return self.weights @ torch.special.ndtr((y - self.means) / self.variances.sqrt())

    def quantile(self, p: float) -> Float[Tensor, " batch"]:
        """Where the probability of less is p."""
        validate.number("p", p, above=0, below=1)
        z = torch.special.ndtri(torch.tensor(p, dtype=torch.float64)).item()
        each = self.means + z * self.variances.sqrt()  # (members, batch): the mixture's lies between theirs
        low, high = each.amin(0), each.amax(0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = self.cdf(middle) < p
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2

    def band(self, level: float = 0.9) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """The central interval that a number lies in with this probability: its ends cut off as much on either side."""
        validate.number("level", level, above=0, below=1)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def coverage(self, y: Float[Tensor, " batch"], level: float = 0.9) -> Coverage:
        """The fraction of numbers inside their bands: `level`, if the predictive distribution is right."""
        low, high = self.band(level)
        inside = (low <= self._checked_targets(y)) & (y <= high)
        curve = reliability_curve(torch.full_like(low, level), inside, bins=1)
        return Coverage(curve.accuracy.item(), curve.low.item(), curve.high.item())

    def _checked_targets(self, y: Tensor) -> Tensor:
        validate.vector("y", y, self.means.shape[1])
        return y


@system("classification_predictive", title="Bayesian predictive distribution of classes", kind="estimator")
class ClassificationPredictive:
    r"""Classes as several models predict them: the mean of their probabilities, whose entropy is split in two.

    $$ p(y|x) = \sum_i w_i\,p(y|x,\theta_i), \qquad \mathbb H[p] =
       \underbrace{\mathbb H[p] - \mathbb E_i\,\mathbb H[p_i]}_{\text{model}} +
       \underbrace{\mathbb E_i\,\mathbb H[p_i]}_{\text{noise}} $$

    The part of the model is the mutual information of class and parameters: 0 where all members agree.

    Shapes:
        logits: (members, batch, classes)    probability: (batch, classes)
        entropy, model_entropy, noise_entropy, nll: (batch,), in nats

    Source: S. Depeweg et al. 2018; N. Houlsby et al., Bayesian active learning (2011).

    >>> sure = torch.tensor([[[200.0, 0.0]], [[0.0, 200.0]]])  # two members, each sure of another class
    >>> predictive = ClassificationPredictive(sure)
    >>> predictive.probability, predictive.model_entropy, predictive.noise_entropy  # log 2
    (tensor([[0.5000, 0.5000]]), tensor([0.6931]), tensor([0.]))
    """

    def __init__(
        self, logits: Float[Tensor, "members batch classes"], weights: Float[Tensor, " members"] | None = None
    ) -> None:
        if validate.tensor("logits", logits).ndim != 3:
            raise ValueError(f"logits must be (members, batch, classes), got shape {tuple(logits.shape)}")
        self.each = validate.floating("logits", logits).log_softmax(-1)  # (members, batch, classes)
        self.weights = _member_weights(weights, logits)
        self.log_probability = (self.weights.log()[:, None, None] + self.each).logsumexp(0)  # (batch, classes)

    @property
    def probability(self) -> Float[Tensor, "batch classes"]:
        """The mean of the members' probabilities."""
        return self.log_probability.exp()

    @property
    def entropy(self) -> Float[Tensor, " batch"]:
        """Of the mean probabilities: all doubt there is."""
        return torch.special.entr(self.probability).sum(-1)

    @property
    def noise_entropy(self) -> Float[Tensor, " batch"]:
        """The doubt of each member, on average."""
        return self.weights @ torch.special.entr(self.each.exp()).sum(-1)

    @property
    def model_entropy(self) -> Float[Tensor, " batch"]:
        """The doubt between the members: what more data could remove."""
        return (self.entropy - self.noise_entropy).clamp(min=0)  # rounding of two equal numbers

    def nll(self, y: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """Minus the log score of each class: its negative log-likelihood under the mean probabilities."""
        return -self.log_probability.gather(1, self._checked_targets(y)[:, None])[:, 0]

    def calibration_error(self, y: Int[Tensor, " batch"], bins: int = 15) -> CalibrationError:
        """Whether the likeliest class is right as often as its probability says."""
        likeliest = self.probability.max(-1)
        return calibration_error(likeliest.values.clamp(max=1), likeliest.indices == self._checked_targets(y), bins)

    def _checked_targets(self, y: Tensor) -> Tensor:
        if validate.tensor("y", y).shape != self.log_probability.shape[:1]:
            raise ValueError(
                f"y must hold one class for each of {len(self.log_probability)} examples, got {tuple(y.shape)}"
            )
        return validate.tokens("y", y, self.log_probability.shape[1])


def gaussian_nll(output: Float[Tensor, "*#batch 2"], target: Float[Tensor, "*#batch"]) -> Float[Tensor, "*#batch"]:
    r"""The negative log-likelihood of numbers under normal noise; outputs are the mean and the log of the variance.

    >>> gaussian_nll(torch.tensor([[1.0, 0.0]]), torch.tensor([3.0]))  # 2 + log(2 pi) / 2
    tensor([2.9189])
    """
    mean, log_variance = validate.last_axis("output", output, 2, "number").unbind(-1)
    return ((target - mean).square() * (-log_variance).exp() + log_variance + LOG_TWO_PI) / 2


LOG_TWO_PI = 1.8378770664093453


def _member_weights(weights: Any, like: Tensor) -> Tensor:
    """As many weights as there are members, which sum to 1; equal ones if none are given."""
    members = len(like)
    if weights is None:
        return torch.full((members,), 1 / members, dtype=like.dtype, device=like.device)
    validate.vector("weights", weights, members)
    if bool((weights < 0).any()) or abs(float(weights.sum()) - 1) > 1e-5:
        raise ValueError(f"weights must be >= 0 and sum to 1, got a sum of {float(weights.sum()):g}")
    return weights.to(like)
