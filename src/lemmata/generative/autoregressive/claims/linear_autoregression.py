"""Linear autoregression: its density is that of one large Gaussian, and its best weights those of least squares."""

import torch
from torch.distributions import MultivariateNormal

from lemmata.generative.autoregressive.linear_autoregression import LinearAutoregression
from lemmata.judge import all_of, at_least, claim, close, lie, mean_is


def stationary_weights(reflections):
    """The weights whose partial autocorrelations these are: from 0.3 to 0.8 in size, every recursion dies out."""
    weights = reflections[:0]
    for each in reflections:
        weights = torch.cat([weights - each * weights.flip(0), each[None]])
    return weights


def series_covariance(weights, variance, time):
    """Of a stationary series, from the fixed point of its companion matrix, by one linear system."""
    order = len(weights)
    companion = torch.cat([weights[None], torch.eye(order, dtype=weights.dtype)[:-1]])
    noise = torch.zeros(order * order, dtype=weights.dtype)
    noise[0] = variance
    state = torch.linalg.solve(torch.eye(order * order) - torch.kron(companion, companion), noise)
    state, gamma = state.view(order, order), []
    for _ in range(time):
        gamma.append(state[0, 0])
        state = companion @ state
    lags = (torch.arange(time)[:, None] - torch.arange(time)).abs()
    return torch.stack(gamma)[lags]


class FirstOnesGiven(LinearAutoregression):
    def log_prob(self, x):
        return self.conditional_log_prob(x) if x.shape[1] > self.order else x.new_zeros(len(x))


class OldestFirst(LinearAutoregression):
    def forward(self, x):
        past = (x - self.mean).unfold(1, self.order, 1)[:, :-1]
        return self.mean + past @ self.weight


@claim("ar.linear")
@lie("the first values are taken as given", model=FirstOnesGiven)
@lie("the weights in the reverse order", model=OldestFirst)
@lie("half the noise", noise=0.5)
@lie("one weight less explains the series as well", fewer=1)
@lie("the best weights are shrunk by a ridge", ridge=0.02)
def least_squares_of_one_large_gaussian(draw, noise=1.0, fewer=0, ridge=0.0, model=LinearAutoregression):
    """Three weights: short and long series against their covariance; least squares; what is left; and samples."""
    weights = stationary_weights(draw.signs(3) * draw.uniform(3, low=0.3, high=0.8))
    ar, mean = model.of(weights, 1.7, mean=0.5), torch.tensor(0.5).double()
    evidence = []
    for time in (1, 2, 3, 12):
        law = MultivariateNormal(mean.expand(time), series_covariance(weights, noise * 1.7, time))
        x = mean + draw.normal(5, time)
        evidence.append(close(ar.log_prob(x), law.log_prob(x), ulps=1e4, detail=f"density of {time} values"))
    x = ar.sample(4, length=500, generator=draw.generator)
    fitted, centred = model(3 - fewer, dtype=torch.float64).fit(x), x - x.mean()
    lags = centred.unfold(1, 4, 1).flatten(0, 1)  # (values, 4), the value itself last
    gram = lags.mT @ lags
    solved = torch.linalg.solve(gram[:3, :3] + ridge * gram[0, 0] * torch.eye(3), gram[:3, 3]).flip(0)
    found = torch.cat([fitted.coefficients, torch.zeros(fewer).double()])
    tried = [model.of(found + 0.05 * draw.unit(3), fitted.variance, float(fitted.mean.detach())) for _ in range(5)]
    best = model.of(found, fitted.variance, float(fitted.mean.detach())).conditional_log_prob(x).sum()
    covariance = series_covariance(weights, noise * 1.7, 6)
    return all_of(
        *evidence,
        close(found, solved, ulps=1e6, detail="fitted weights"),
        at_least(best - torch.stack([each.conditional_log_prob(x).sum() for each in tried]), 0.0),
        mean_is(
            lambda s: (s[:, 0] - mean) * (s[:, 5] - mean),
            lambda n: ar.sample(n, length=6, generator=draw.generator),
            covariance[0, 5],
            effect=0.05 * float(covariance[0, 0]),
        ),
    )
