"""What a denoiser learns: exact conditional means of Gaussian mixtures, and one small network that comes near them."""

from typing import Any

import torch
from torch import nn

from lemmata.generative.diffusion.ddpm import DDPM
from lemmata.generative.diffusion.ddpm_networks import PointDDPM
from lemmata.judge import ALPHA, all_of, at_most, claim, close, exactly, lie, mean_is, reaches
from lemmata.measure.sample_distances import energy_distance
from lemmata.optim.averaging import PolyakAverage
from lemmata.train.loop import fit

T = 50  # steps of the chain of the trained network


class Mixture(nn.Module):
    """Three normal clouds in the plane; what is expected of the noise in a state, by Bayes' rule. No parameters."""

    steps: Any  # of the model that it belongs to

    def __init__(self, steps=None):
        super().__init__()
        self.means = torch.tensor([[-1.2, -0.6], [1.2, -0.6], [0.0, 1.2]]).double()
        self.variance, self.steps = 0.09, steps

    def draws(self, n, generator):
        which = torch.randint(3, (n,), generator=generator)
        return self.means[which] + self.variance**0.5 * torch.randn(n, 2, generator=generator, dtype=torch.float64)

    def log_density(self, x, signal):
        """Of noisy data, up to a constant of the time; the signal that is left is one number for each point."""
        variance = signal * self.variance + 1 - signal
        apart = (x[:, None] - signal.sqrt()[:, None, None] * self.means).square().sum(-1)  # (points, clouds)
        return torch.logsumexp(-apart / (2 * variance[:, None]), dim=1) - variance.log()

    def forward(self, x, time):
        """The expected noise: the state less what is expected of the data, by each cloud's posterior."""
        signal = self.steps.signal[(time * len(self.steps)).round().long()]  # (points,)
        variance = signal * self.variance + 1 - signal
        apart = (x[:, None] - signal.sqrt()[:, None, None] * self.means).square().sum(-1)
        weights = (-apart / (2 * variance[:, None])).softmax(1)
        centre = weights @ self.means
        gain = (signal.sqrt() * self.variance / variance)[:, None]
        data = centre + gain * (x - signal.sqrt()[:, None] * centre)  # E[x_0 | x_t]
        return (x - signal.sqrt()[:, None] * data) / (1 - signal).sqrt()[:, None]


def exact_model(steps=T, **changed):
    """A diffusion model whose denoiser is exact, in float64; it reads the schedule from the model."""
    model = DDPM(Mixture(), (2,), noising_steps=steps, noise_schedule="linear", **changed)
    model.denoiser.steps = model.steps
    return model


def plane_model():
    return PointDDPM(2, widths=(96, 96), time_width=16, noising_steps=T, noise_schedule="linear")


def learn_mixture(model, generator, steps=3000):
    """By the model's own loss; the average of the last weights is kept."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    average = PolyakAverage(model.parameters(), ema_decay=0.99)
    data = Mixture()
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - step / steps)
        optimizer.zero_grad()
        model.loss(data.draws(256, generator).float(), generator=generator).backward()
        optimizer.step()
        average.update()
    average.copy_to_parameters()


def trained_model(draw):
    """The one network that these claims share."""
    return draw.trained(plane_model, learn_mixture).double()


def untrained_model(draw):
    return draw.trained(plane_model, learn_mixture, steps=1).double()


def noisy(draw, n, t):
    """Data of the mixture at one time of the chain, with the noise that is in them."""
    steps = exact_model().steps
    noise = draw.normal(n, 2)
    x0 = Mixture().draws(n, draw.generator)
    return steps.signal[t].sqrt() * x0 + (1 - steps.signal[t]).sqrt() * noise, noise


def explained(found, wanted):
    """The part of the variance that is found: 1 where both are equal."""
    return float(1 - (found - wanted).square().mean() / (wanted - wanted.mean(0)).square().mean())


@claim("diffusion.score_model")
@lie("divided by the variance of the noise instead of its deviation", power=1.0)
@lie("the noise itself, with its sign", sign=1.0)
@lie("an untrained network does as well", trained=untrained_model)
def the_score_is_noise_by_its_deviation(draw, power=0.5, sign=-1.0, trained=trained_model):
    """The gradient of the mixture's exact log-density, beside an exact denoiser's score and a trained network's."""
    exact, network, checks, fits = exact_model(), trained(draw), [], []
    for t in (1, 5, 15, 25, 40, T):
        x = noisy(draw, 2000, t)[0].requires_grad_()
        signal, time = exact.steps.signal[t].expand(len(x)), torch.full((len(x),), t / T).double()
        (score,) = torch.autograd.grad(exact.denoiser.log_density(x, signal).sum(), x)
        with torch.no_grad():
            x = x.detach()
            printed = sign * exact.noise(x, time) / (1 - signal[0]) ** power
            checks.append(close(printed, score, ulps=1e5, detail=f"noise and score at t = {t} of {T}"))
            if 10 < t <= 40:
                scaled = sign * network.noise(x, time) / (1 - signal[0]) ** power
                fits += [explained(scaled, score), explained(network.score(x, time), score)]
    return all_of(*checks[:6], reaches(min(fits), 0.9, detail="variance of the score that the network explains"))


def no_shift(x, t):
    return torch.zeros_like(x)


@claim("ddpm.simple_loss")
@lie("a loss of zero can be reached", least=0.0)
@lie("the noise itself is the best answer", itself=1.0)
@lie("times from 0 to T - 1", first=0)
def the_best_answer_is_the_expected_noise(draw, least=1.0, itself=0.0, first=1, trained=trained_model):
    """Losses of an exact denoiser against integrals on a grid, what another answer loses, and a trained network."""
    steps = 12
    exact = exact_model(steps)
    grid = torch.linspace(-6, 6, 241, dtype=torch.float64)
    points, cell = torch.cartesian_prod(grid, grid), float(grid[1] - grid[0]) ** 2
    errors, shifts = torch.ones(steps + 1).double(), torch.zeros(steps + 1).double()  # of data nothing says the noise
    for t in range(1, steps + 1):  # E|noise|^2 = 1 a feature, and of it what is expected in a state is known
        signal = exact.steps.signal[t].expand(len(points))
        density = exact.denoiser.log_density(points, signal).exp()
        density = density / (density.sum() * cell)
        expected = exact.denoiser(points, torch.full((len(points),), t / steps).double())
        errors[t] = 1 - (density * expected.square().mean(1)).sum() * cell
        shifts[t] = (density * points.square().mean(1)).sum() * cell
    told = least * errors[first : first + steps].mean()

    def losses(n):
        return exact.losses(exact.denoiser.draws(n, draw.generator), generator=draw.generator)

    def excess(n):  # of an answer that is off by a quarter of the state, with the same times and noise
        x, seed = exact.denoiser.draws(n, draw.generator), int(draw.integers(0, 2**31, 1))
        wrong = exact_model(steps)
        wrong.denoiser.register_forward_hook(lambda module, given, found: found + given[0] / 4)
        pair = [m.losses(x, generator=torch.Generator().manual_seed(seed)) for m in (wrong, exact)]
        return pair[0] - pair[1]

    x, noise = noisy(draw, 4000, 20)
    with torch.no_grad():
        wanted = (1 - itself) * exact_model()(x, torch.full((len(x),), 20)) + itself * noise
        fit_of_network = explained(trained(draw)(x, torch.full((len(x),), 20)), wanted)
    return all_of(
        mean_is(lambda x: x, losses, told, effect=0.015, alpha=ALPHA / 2),
        mean_is(lambda x: x, excess, shifts[1:].mean() / 16, effect=0.01, alpha=ALPHA / 2),
        reaches(fit_of_network, 0.95, detail="variance of the best answer that the network explains"),
    )


class SlopeAtEachTime(nn.Module):
    """The simplest denoiser: at each time a multiple of the state, all zero at first."""

    def __init__(self, steps):
        super().__init__()
        self.slopes = nn.Parameter(torch.zeros(steps + 1, dtype=torch.float64))

    def forward(self, x, time):
        return self.slopes[(time * (len(self.slopes) - 1)).round().long()][:, None] * x


class WithoutBar(DDPM):
    """Noises the data by the last step alone."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.steps = type(self.steps)(
            self.steps.noise_rates, self.steps.kept, self.steps.kept, self.steps.noise_rates, self.steps.noise_rates
        )


@claim("ddpm.training")
@lie("ascent on the error", printed="004/1", sign=1.0)
@lie("the data noised by one step alone", model=WithoutBar)
@lie("the target left out", wanted=0.0)
def descent_on_the_squared_error(draw, sign=-1.0, wanted=1.0, model=DDPM):
    """One step against finite differences; and normal data, of which the best slope at each time is known."""
    steps, spread = 6, 2.0  # so wide that the best slopes at different times are far from each other
    ddpm = model(SlopeAtEachTime(steps), (1,), noising_steps=steps, noise_schedule="linear")
    data = spread * draw.normal(4096, 1)
    seed, start = draw.seed, 0.3 * draw.normal(steps + 1)

    def loss_at(slopes):
        with torch.no_grad():
            ddpm.denoiser.slopes.copy_(slopes)
            return ddpm.loss(data, generator=torch.Generator().manual_seed(seed))

    h, units = 1e-4, torch.eye(steps + 1).double()
    slope = torch.stack([(loss_at(start + h * e) - loss_at(start - h * e)) / (2 * h) for e in units])
    loss_at(start)
    descent = torch.optim.SGD(ddpm.parameters(), lr=0.1, maximize=sign > 0)
    ddpm.loss(data, generator=torch.Generator().manual_seed(seed)).backward()
    descent.step()
    one_step = ddpm.denoiser.slopes.detach() - start
    loss_at(torch.zeros(steps + 1).double())
    descend = torch.optim.SGD(ddpm.parameters(), lr=0.5, maximize=sign > 0)
    options = {"epochs": 40, "batch_size": 512, "seed": seed, "device": "cpu", "progress": False}
    rates = ddpm.schedule.steps(steps).noise_rates[1:]
    signal = torch.cumprod(1 - rates, 0)
    best = wanted * (1 - signal).sqrt() / (signal * spread**2 + 1 - signal)
    fit(
        ddpm,
        data,
        optimizer=descend,
        clip=10.0,
        scheduler=lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.02, 40),
        **options,
    )
    return all_of(
        close(one_step, -0.1 * slope, within=1e-7, detail="one step, against central differences"),
        at_most((ddpm.denoiser.slopes.detach()[1:] - best).abs(), 0.03, detail="slopes after training, from the best"),
        exactly(one_step[0], torch.zeros(()).double()),
    )


@claim("ddpm.system")
@lie("an untrained network does as well", trained=untrained_model)
@lie("a Gaussian with the right covariance would do", gaussian=True)
def samples_like_the_data(draw, trained=trained_model, gaussian=False):
    """Samples by three samplers from a network that was trained on a mixture, by their energy distance from data."""
    data, network, n = Mixture(), trained(draw), 2000
    fresh = data.draws(n, draw.generator)
    factor = torch.linalg.cholesky(torch.cov(data.draws(20_000, draw.generator).mT))
    scores = []
    for sampler, steps in (("ancestral", T), ("ddim", 20), ("ode", 15)):
        found = network.sample(n, generator=draw.generator, sampler=sampler, steps=steps)
        if gaussian:
            found = draw.normal(n, 2) @ factor.mT
        scores.append(float(energy_distance(found, fresh, unbiased=True)))
    back = network.decode(network.encode(fresh[:200], steps=40), steps=40)
    return all_of(
        *(
            reaches(score, 0.012, at_most=True, detail=name)
            for score, name in zip(scores, ("ancestral", "DDIM", "flow"), strict=True)
        ),
        at_most((back - fresh[:200]).abs().mean(), 0.05, detail="after a way to noise and back"),
        reaches(float(network.log_prob(fresh[:200], steps=40).mean()), -1.9, detail="mean log-density of data"),
    )
