r"""Linear autoregression AR(K): each value is a weighted sum of the K before it, and noise."""

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["LinearAutoregression", "autocovariances", "levinson_durbin"]

Own = TypeVar("Own", bound="LinearAutoregression")

METHODS = ("least_squares", "yule_walker")


def autocovariances(x: Float[Tensor, "series time"], lags: int) -> Float[Tensor, " lags_and_zero"]:
    r"""The sample autocovariances at lags 0 to `lags`, of all series together; their Toeplitz matrix is semidefinite.

    $$ \hat\gamma_k = \frac1{nT} \sum_{i=1}^n \sum_{t=k+1}^T x_{i,t}\, x_{i,t-k} $$

    >>> autocovariances(torch.tensor([[1.0, 2.0, 3.0]]), lags=1)
    tensor([4.6667, 2.6667])
    """
    validate.matrix("x", x, "series, time")
    validate.count("lags", lags, least=0, most=x.shape[1] - 1)
    return torch.stack([(x[:, k:] * x[:, : x.shape[1] - k]).sum() / x.numel() for k in range(lags + 1)])


def levinson_durbin(gamma: Float[Tensor, " lags_and_zero"]) -> tuple[list[Tensor], Float[Tensor, " lags_and_zero"]]:
    r"""The best linear predictors from 0, 1, ..., K values before, and the variance that each leaves.

    Solves the Yule-Walker equations $\sum_j \theta_j \gamma_{|k-j|} = \gamma_k$ of every order up to K, each from the
    one before, in $K^2$ operations.

    >>> predictors, left = levinson_durbin(torch.tensor([1.0, 0.5, 0.25]))
    >>> predictors[-1], left
    (tensor([0.5000, 0.0000]), tensor([1.0000, 0.7500, 0.7500]))
    """
    validate.vector("gamma", gamma)
    predictors, left = [gamma[:0]], [gamma[0]]
    for order in range(1, len(gamma)):
        before = predictors[-1]
        reflection = (gamma[order] - (before * gamma[1:order].flip(0)).sum()) / left[-1]
        predictors.append(torch.cat([before - reflection * before.flip(0), reflection[None]]))
        left.append(left[-1] * (1 - reflection**2))
    return predictors, torch.stack(left)


@system("linear_autoregression", title="Linear autoregression AR(K)", kind="estimator")
class LinearAutoregression(nn.Module):
    r"""A series whose next value is normal around a weighted sum of the K before it.

    $$ p(x_i \mid x_{<i}) = \mathcal N\Big(x_i;\; \mu + \sum_{k=1}^K \theta_k\,(x_{i-k} - \mu),\; \sigma^2\Big) $$

    Given the first K values, the likelihood is greatest at the least squares of the errors: `fit` solves them, or the
    Yule-Walker equations, whose model is always stationary. `log_prob` is the density of the whole stationary series,
    that of its first K values too, which are predicted from the fewer that stand before them. Its parameters can also
    be learnt by gradients.

    Shapes:
        x: (series, time)    forward: forecasts (series, time - order) of x[:, order:]    log_prob: (series,)

    Claims: ar.linear
    Source: G. Yule 1927, G. Walker 1931; the recursions: N. Levinson 1947, J. Durbin 1960.
    Differs: statsmodels' AutoReg with a constant estimates it along with the weights; here the mean is taken first.

    >>> model = LinearAutoregression(order=2)
    >>> series = torch.sin(torch.arange(200.0))[None] + 0.01 * torch.randn(1, 200)
    >>> model.fit(series).coefficients.round(decimals=1)  # x' = 2 cos(1) x - x''
    tensor([ 1.1000, -1.0000])
    """

    def __init__(self, order: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.order = validate.count("order", order)
        place = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(order, **place))
        self.mean = nn.Parameter(torch.empty((), **place))
        self.log_variance = nn.Parameter(torch.empty((), **place))
        self.reset_parameters()

    @classmethod
    def of(cls: type[Own], coefficients: Tensor | Sequence[float], variance: float = 1.0, mean: float = 0.0) -> Own:
        """The model with these numbers; `coefficients` are of the value before, the one before that, and so on."""
        values = validate.vector("coefficients", torch.as_tensor(coefficients).detach())
        model = cls(len(values), device=values.device, dtype=values.dtype)
        model._set_coefficients(values, validate.positive("variance", variance), validate.finite_number("mean", mean))
        return model

    def reset_parameters(self) -> None:
        """White noise of variance 1 around zero."""
        for values in self.parameters():
            nn.init.zeros_(values)

    @property
    def coefficients(self) -> Float[Tensor, " order"]:
        """The weights of the value before, of the one before that, and so on."""
        return self.weight.detach()

    @property
    def variance(self) -> float:
        """The variance of what is new in each value."""
        return float(self.log_variance.detach().exp())

    def forward(self, x: Float[Tensor, "series time"]) -> Float[Tensor, "series later"]:
        self._check_series(x, self.order + 1)
        past = (x - self.mean).unfold(1, self.order, 1)[:, :-1]  # (series, time - order, order), oldest first
        return self.mean + past @ self.weight.flip(0)  # (series, time - order)

    # --- Fitting ---

    @torch.no_grad()
    def fit(self: Own, x: Float[Tensor, "series time"], method: str = "least_squares") -> Own:
        """Take mean, weights and variance from one series or several; by least squares a fit may be explosive."""
        validate.one_of("method", method, METHODS)
        validate.matrix("x", self._check_series(x, 2 * self.order + 1), "series, time")
        mean = x.mean()
        centred = x - mean
        if method == "yule_walker":
            predictors, left = levinson_durbin(autocovariances(centred, self.order))
            self._set_coefficients(predictors[-1], float(left[-1]), float(mean))
            return self
        past = centred.unfold(1, self.order, 1)[:, :-1].flip(2).flatten(0, 1)  # (values, order), latest first
        target = centred[:, self.order :].flatten()
        weight = torch.linalg.lstsq(past, target[:, None]).solution[:, 0]
        self._set_coefficients(weight, float((target - past @ weight).square().mean()), float(mean))
        return self

    def loss(self, x: Float[Tensor, "series time"]) -> Float[Tensor, ""]:
        """The negative log-likelihood of a value given those before it, without the first `order`; defined always."""
        return -self.conditional_log_prob(x).mean() / (x.shape[1] - self.order)

    # --- Densities ---

    def conditional_log_prob(self, x: Float[Tensor, "series time"]) -> Float[Tensor, " series"]:
        """The log density of each series given its first `order` values."""
        error = x[:, self.order :] - self(x)
        return _normal_log_density(error, self.log_variance.exp()).sum(1)

    def log_prob(self, x: Float[Tensor, "series time"]) -> Float[Tensor, " series"]:
        """The log density of each whole series under the stationary law."""
        self._check_series(x, 1)
        predictors, variances = self._shorter_predictors()
        centred, total = x - self.mean, x.new_zeros(len(x))
        for place in range(min(self.order, x.shape[1])):
            guess = centred[:, :place].flip(1) @ predictors[place]
            total = total + _normal_log_density(centred[:, place] - guess, variances[place])
        return total if x.shape[1] <= self.order else total + self.conditional_log_prob(x)

    @torch.no_grad()
    def sample(self, n: int, *, length: int, generator: torch.Generator | None = None) -> Float[Tensor, "n length"]:
        """So many series from the stationary law, from their first value on."""
        validate.count("length", length)
        predictors, variances = self._shorter_predictors()
        values = torch.randn(
            validate.count("n", n), length, generator=generator, dtype=self.weight.dtype, device=self.weight.device
        )
        for place in range(length):
            known = min(place, self.order)
            past = values[:, place - known : place].flip(1)  # (n, known), latest first
            values[:, place] = past @ predictors[known] + variances[known].sqrt() * values[:, place]
        return values + self.mean

    # --- What the weights mean ---

    @property
    def reflections(self) -> Float[Tensor, " order"]:
        """The partial autocorrelations: the last weight of the best predictor of each order up to this one."""
        return torch.stack([each[-1] for each in self._step_down()[1:]]).detach()

    @property
    def stationary(self) -> bool:
        """Whether all solutions of the recursion without noise die out: no reflection reaches 1."""
        return bool((self.reflections.abs() < 1).all())

    def spectrum(self, frequency: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        r"""The spectral density, $\sigma^2/|1-\sum_k\theta_k e^{-2\pi ikf}|^2$; its integral over one unit of frequency
        (cycles per step) is the variance of the series."""
        lags = torch.arange(1, self.order + 1, dtype=frequency.dtype, device=frequency.device)
        turned = torch.exp(-2j * math.pi * frequency[..., None] * lags)  # (..., order)
        filtered = 1 - (turned * self.weight).sum(-1)
        return self.log_variance.exp() / filtered.abs().square()

    def extra_repr(self) -> str:
        return f"order={self.order}"

    def _check_series(self, x: Tensor, least: int) -> Tensor:
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if x.ndim != 2 or x.shape[1] < least:
            raise ValueError(f"x must be (series, time) with at least {least} steps, got shape {tuple(x.shape)}")
        return x

    def _step_down(self) -> list[Tensor]:
        """The best predictors of order 0 to K under this model: Durbin's recursion backwards."""
        predictors: list[Tensor] = [self.weight]
        while len(predictors[0]):
            weight, reflection = predictors[0][:-1], predictors[0][-1]
            predictors.insert(0, (weight + reflection * weight.flip(0)) / (1 - reflection**2))
        return predictors

    def _shorter_predictors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Predictors of order 0 to K, and the variance that each leaves: each reflection takes its part away."""
        if not self.stationary:
            raise ValueError(
                f"coefficients must be stationary, got reflections {self.reflections.tolist()}: fit by "
                f"method='yule_walker', or use conditional_log_prob"
            )
        predictors, variances = self._step_down(), [self.log_variance.exp()]
        for each in predictors[:0:-1]:
            variances.insert(0, variances[0] / (1 - each[-1] ** 2))
        return predictors, variances

    @torch.no_grad()
    def _set_coefficients(self, weight: Tensor, variance: float, mean: float) -> None:
        if not variance > 0:
            raise ValueError("x must not be foretold without error: a variance of zero has no density")
        self.weight.copy_(weight)
        self.mean.fill_(mean)
        self.log_variance.fill_(math.log(variance))


def _normal_log_density(error: Tensor, variance: Tensor) -> Tensor:
    return -0.5 * (error.square() / variance + variance.log() + math.log(2 * math.pi))
