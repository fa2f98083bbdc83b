"""Risk: what the mean loss on examples says of the expected loss, and what it does not say after fitting to them."""

import math

import torch

from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.feedforward.risk import empirical_risk
from lemmata.judge import all_of, claim, lie, mean_is, probability_is, slope_is

SLOPE, NOISE = 2.0, 0.5


def fixed(x, y):
    """A slope that was chosen before the examples were seen."""
    return torch.full((len(x), 1), 1.5, dtype=x.dtype)


def fitted(x, y):
    """The slope with the least loss on these very examples."""
    return (x * y).sum(1, keepdim=True) / x.square().sum(1, keepdim=True)


@claim("risk.expected_empirical")
@lie("the empirical risk is unbiased for a function fitted to the examples", choose=fitted)
@lie("its deviation falls like 1/s", power=-1.0)
@lie("half of the interval suffices", width=0.5)
def the_empirical_risk_is_unbiased(draw, choose=fixed, power=-0.5, width=1.0, estimate=empirical_risk):
    """Noisy points on a line and half the squared error, whose expected risk is known for every slope; its spread for
    4 to 256 examples; and how often intervals contain the mean of normal losses, and the probability of an error."""

    def excess(n, examples=8):
        x = draw.normal(n, examples)
        y = SLOPE * x + NOISE * draw.normal(n, examples)
        slope = choose(x, y)  # (n, 1)
        found = estimate((y - slope * x).square() / 2).risk
        return found - ((SLOPE - slope[:, 0]) ** 2 + NOISE**2) / 2

    sizes = [4, 16, 64, 256]
    spreads = [excess(16_000, size).std() for size in sizes]

    def covered(losses, risk, bounds=None):
        found = estimate(losses, confidence=0.9, bounds=bounds)
        below, above = found.risk - found.low, found.high - found.risk
        return (found.risk - risk <= width * below) & (risk - found.risk <= width * above)

    def normal(n):
        return covered(3 + draw.normal(n, 8), 3.0)

    def wrong(n):
        return covered((draw.uniform(n, 50) < 0.3).double(), 0.3, bounds=(0, 1))

    return all_of(
        mean_is(torch.clone, excess, 0.0, effect=0.01, alpha=3e-10),
        # 16,000 values know their deviation to 1 %, which is 0.0025 of the slope over these sizes.
        slope_is(sizes, spreads, power, within=0.018),
        # With 8 examples, two hundredths of the width change the probability by 0.006.
        probability_is(normal, 0.9, effect=0.006, alpha=3e-10),
        probability_is(wrong, 0.9, effect=0.05, side="at_least", alpha=3e-10),
    )


def unit_moments(covariance):
    """Those of standard normal inputs."""
    return torch.eye(len(covariance), dtype=covariance.dtype)


@claim("risk.validation")
@lie("the training error is the variance of the noise", factor=0.0)
@lie("training and validation error are equal in the mean", gap=0.0)
@lie("so it is whatever the law of the new examples", moments=unit_moments)
def the_training_error_is_too_small(draw, factor=1.0, gap=1.0, moments=torch.clone, model=LinearRegression):
    """Least squares with 10 weights on 20 examples, for many draws of the noise at once: the mean error on the
    training examples, and on one new example for each."""
    points, features = 20, 10
    x, w = draw.normal(points, features), draw.normal(features, 1)
    # An error of the weights is the noise through the inverse of the data: given x, its mean square is known.
    covariance = 4 * draw.covariance(features)  # of the new examples: not that of these
    spread = float((torch.linalg.inv(x.T @ x) @ moments(covariance)).trace())
    mixing = torch.linalg.cholesky(covariance)

    def learnt(n):
        y = x @ w + draw.normal(points, n)
        return model(bias=False).fit(x, y), y

    def training_errors(n):
        found, y = learnt(n)
        return (found.predict(x) - y).square().mean(0)

    def validation_errors(n):
        new = draw.normal(n, features) @ mixing.T
        answer = (new * learnt(n)[0].weight_.T).sum(1)
        return (answer - (new @ w)[:, 0] - draw.normal(n)).square()

    training = 1 - factor * features / points
    validation = training + gap * (features / points + spread)
    deviation = math.sqrt(2) * (1 + float((torch.linalg.inv(x.T @ x) @ covariance).trace()))
    return all_of(
        mean_is(torch.clone, training_errors, training, effect=0.007, alpha=5e-10),
        mean_is(torch.clone, validation_errors, validation, effect=0.016 * deviation, alpha=5e-10),
    )
