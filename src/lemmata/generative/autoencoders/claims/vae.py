"""Variational autoencoders: linear ones, whose optimum is known, and one of perceptrons that learns digits."""

import math

import torch
from torch import distributions, nn

from lemmata.data.registry import load
from lemmata.generative.autoencoders.elbo import importance_weighted_bound, linear_gaussian_gap
from lemmata.generative.autoencoders.linear_vae import LinearVAE
from lemmata.generative.autoencoders.vae import MLPVAE
from lemmata.judge import all_of, always, at_least, at_most, claim, close, law_is, lie, mean_is, reaches
from lemmata.measure.sample_distances import energy_distance

# --- Linear ones ---

NOISE = 0.5  # variance that the decoder assumes
AXES = (4.0, 2.2, 1.2, 0.4, 0.3, 0.2)  # variances of the data along their principal axes


def points_along_axes(generator, count=200):
    """Points whose sample covariance has exactly these eigenvalues, along random axes: (points, 6), (6, 6)."""
    noise = torch.randn(count, len(AXES), generator=generator, dtype=torch.float64)
    axes, _ = torch.linalg.qr(torch.randn(len(AXES), len(AXES), generator=generator, dtype=torch.float64))
    white, _ = torch.linalg.qr(noise - noise.mean(0))  # columns of length 1
    return white * count**0.5 * torch.tensor(AXES).double().sqrt() @ axes.T + 1.0, axes


def at_its_optimum(model, x, frozen=()):
    """The same model, moved to the minimum of its exact loss."""
    parameters = [value for name, value in model.named_parameters() if not name.startswith(frozen or "-")]
    words = {"max_iter": 1000, "tolerance_grad": 1e-10, "tolerance_change": 1e-15, "history_size": 50}
    optimizer = torch.optim.LBFGS(parameters, line_search_fn="strong_wolfe", **words)

    def closure():
        optimizer.zero_grad()
        loss = model.exact_loss(x)
        loss.backward()
        return loss

    optimizer.step(closure)
    return model.requires_grad_(False)


def drawn_linear(draw, latents=3, model=LinearVAE, **settings):
    """A linear model with weights from this draw."""
    made = model(len(AXES), latents, **{"variance": NOISE, **settings}).double()
    with torch.no_grad():
        for values in made.parameters():
            values.copy_(0.5 * draw.normal(*values.shape))
    return made


def inverse_of_the_diagonal(precision):
    """What the precision says of each latent with the others known."""
    return 1 / precision.diagonal()


def diagonal_of_the_inverse(precision):
    """Each latent's own variance."""
    return torch.linalg.inv(precision).diagonal()


@claim("vae.gaussian_encoder")
@lie("a diagonal covariance closes the gap for every decoder", closing="diagonal")
@lie("the diagonal is that of the posterior's covariance", variances=diagonal_of_the_inverse)
@lie("codes are the pseudo-inverse of the decoder", shrinkage=0.0)
def an_encoder_learns_the_posterior(draw, closing="full", variances=inverse_of_the_diagonal, shrinkage=1.0):
    """Affine encoders trained for a fixed affine decoder: their means, their spreads, and what gap they leave."""
    x, _ = points_along_axes(draw.generator)
    eye, within = torch.eye(3).double(), {"within": 1e-5}
    weight = draw.until(lambda: draw.normal(len(AXES), 3), lambda weight: gap_of_diagonal(weight) > 0.1)
    precision = eye + weight.T @ weight / NOISE
    left = -(variances(precision).log().sum() + torch.logdet(precision)) / 2
    evidence = []
    for covariance, expected in ((closing, 0 * left), ("diagonal", left)):
        model = drawn_linear(draw, covariance=covariance)
        with torch.no_grad():
            model.weight.copy_(weight)
        mean, scale = at_its_optimum(model, x, frozen="decoder").encode(x)
        code = torch.linalg.solve(weight.T @ weight + shrinkage * NOISE * eye, weight.T @ (x - model.bias).T).T
        gap = linear_gaussian_gap(x, mean, scale, weight, model.bias, NOISE)
        evidence.append(close(mean, code, **within, detail="means of the codes"))
        evidence.append(close(gap, expected.expand_as(gap), within=1e-8, detail="gap"))
    spread = scale.square()
    return all_of(*evidence, close(spread, variances(precision).expand_as(spread), **within, detail="variances"))


def gap_of_diagonal(weight):
    """What the best diagonal covariance misses, in nats: nothing where the columns are orthogonal."""
    precision = torch.eye(weight.shape[1]).double() + weight.T @ weight / NOISE
    return (precision.diagonal().log().sum() - torch.logdet(precision)) / 2


@claim("vae.factors")
@lie("a full covariance aligns them as well", covariance="full")
@lie(
    "so do codes without a divergence",
    regime="every positive weight aligns them",
    loose="larger ones too, until latents collapse",
    kl_weight=0.0,
)
def columns_are_principal_axes(draw, covariance="diagonal", kl_weight=1.0):
    """Decoders of linear models at their optimum, from random weights, against the axes of the data."""
    x, axes = points_along_axes(draw.generator)
    model = at_its_optimum(drawn_linear(draw, covariance=covariance, kl_weight=kl_weight), x)
    columns = nn.functional.normalize(model.weight, dim=0)  # (features, latents)
    against = (axes.T @ columns).abs()  # cosines with the principal axes
    order = against[:3].argmax(0)
    variances = model.encode(x)[1][0].square()
    aligned = [
        at_most((columns.T @ columns - torch.eye(3)).abs(), 0.01, detail="cosines between columns"),
        at_least(against.amax(0), 0.9999, detail="cosines with principal axes"),
        always([sorted(order.tolist()) == [0, 1, 2]]),
    ]
    if covariance == "diagonal":
        own = torch.tensor(AXES).double()[order]
        aligned += [
            close(model.weight.square().sum(0), own - kl_weight * NOISE, within=1e-3),
            close(variances, kl_weight * NOISE / own, within=1e-3, detail="variances of the codes"),
        ]
    return all_of(*aligned)


class AveragedDivergence(LinearVAE):
    """Its reconstruction is summed over the features, its divergence averaged over the latents."""

    def terms(self, x, samples=1, generator=None):
        found = super().terms(x, samples, generator)
        return found._replace(kl=found.kl / self.latents)


class SummedWeights(LinearVAE):
    """The logarithm of the sum of the importance weights, not of their mean."""

    def log_prob(self, x, samples=100, generator=None):
        return super().log_prob(x, samples, generator) + math.log(samples)


class AcrossExamples(LinearVAE):
    """Weights are averaged over the wrong axis: that of the examples."""

    def log_prob(self, x, samples=100, generator=None):
        one = torch.stack([super(AcrossExamples, self).log_prob(x, 1, generator) for _ in range(samples)])
        return importance_weighted_bound(one, dim=1).mean().expand(len(x))


def given_points():
    """The same at every training."""
    return points_along_axes(torch.Generator().manual_seed(0))[0]


def small_linear():
    return LinearVAE(len(AXES), 3, variance=NOISE, dtype=torch.float64)


def descend(model, generator):
    """Stochastic gradients of one sampled code for each example."""
    x = given_points()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(1500):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / 1500)
        optimizer.zero_grad()
        model.loss(x[torch.randint(len(x), (64,), generator=generator)], generator=generator).backward()
        optimizer.step()


def likeliest(count=3, noise=NOISE):
    """The mean log-likelihood of the data under the best model of these latents: probabilistic PCA."""
    axes = torch.tensor(AXES).double()
    own = torch.where(torch.arange(len(AXES)) < count, axes.clamp(min=noise), noise)
    return -(math.log(2 * math.pi) + own.log() + axes / own).sum() / 2


def binary_digits(part="train"):
    """Digits of 64 pixels, black or white."""
    return (getattr(load("digits"), part).x > 0.5).float().flatten(1)


def small_network():
    return MLPVAE(64, latents=8, widths=(128,))


def learn_digits(model, generator):
    x = binary_digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(60):
        for batch in torch.randperm(len(x), generator=generator).split(64):
            optimizer.zero_grad()
            model.loss(x[batch], generator=generator).backward()
            optimizer.step()


@claim("vae.system")
@lie("the weight of the divergence moves nothing", power=0.0)
@lie("codes without a divergence are as standard normal", kl_weight=0.0)
@lie("the divergence is averaged over the latents", model=AveragedDivergence)
@lie("importance weights are summed", model=SummedWeights)
@lie("importance weights are averaged over the examples", model=AcrossExamples)
def an_autoencoder_that_maximises_its_bound(draw, power=1.0, kl_weight=1.0, model=LinearVAE):
    """Linear ones at their optimum and by stochastic gradients, against probabilistic PCA; digits held out."""
    x, _ = points_along_axes(draw.generator)
    axes, squares = torch.tensor(AXES).double(), []
    for weight in (0.4, 1.0, 3.0):  # at the largest the third latent collapses
        squares.append(torch.linalg.svdvals(at_its_optimum(drawn_linear(draw, kl_weight=weight), x).weight).square())
    expected = [(axes[:3] - weight**power * NOISE).clamp(min=0) for weight in (0.4, 1.0, 3.0)]
    coded = at_its_optimum(drawn_linear(draw, kl_weight=kl_weight), x)
    mean, scale = coded.encode(x)
    drawn = at_its_optimum(drawn_linear(draw, model=model, kl_weight=2.0), x)  # whose codes are too wide
    rows, generator = x[:20], draw.generator
    with torch.no_grad():
        exact, evidence = drawn.exact_terms(rows).value, drawn.exact_log_prob(rows)
        many = torch.stack([drawn.log_prob(rows, 100, generator) for _ in range(60)]).mean(0)
        reached = draw.trained(small_linear, descend).exact_terms(given_points()).value.mean()
        network, held_out = draw.trained(small_network, learn_digits), binary_digits("test")
        terms = network.terms(held_out, 20, generator)
        pixels = distributions.Bernoulli(binary_digits().mean(0).clamp(0.01, 0.99)).log_prob(held_out).sum(1)
        tight = network.log_prob(held_out, 100, generator)
    unbiased = mean_is(
        lambda repeated: drawn.elbo(repeated, generator=generator).detach(), lambda n: rows[:1].expand(n, -1),
        exact[0], effect=0.2,
    )  # fmt: skip
    return all_of(
        close(torch.stack(squares), torch.stack(expected), within=1e-3, detail="squared singular values"),
        close(mean.T @ mean / len(x) + scale[0].square().diag(), torch.eye(3).double(), within=1e-3),
        unbiased,
        close(many, evidence, within=0.1, detail="bound of many samples, evidence"),
        reaches(reached, 1.01 * likeliest(), detail="by stochastic gradients"),
        reaches((terms.value - pixels).mean(), 5.0, detail="nats above independent pixels"),
        reaches((tight - terms.value).mean(), 0.3, detail="nats that many samples gain"),
        reaches(terms.kl.mean(), 5.0, detail="nats in a code"),
    )


def from_the_prior(vae, n, generator):
    return vae.sample(n, generator=generator)


def from_wide_codes(vae, n, generator):
    """Codes of five times the deviation."""
    return vae.output.sample(vae.decoder(5 * vae.sample_prior(n, generator)), generator)


def from_the_middle(vae, n, generator):
    """One code for all, in the middle of the prior."""
    return vae.output.sample(vae.decoder(0 * vae.sample_prior(n, generator)), generator)


def without_noise(vae, n, generator):
    """The decoder's mean, given out as a sample."""
    return vae.decode(vae.sample_prior(n, generator))


@claim("vae.generation")
@lie("codes of deviation 5 do as well", sampled=from_wide_codes)
@lie("the code in the middle does as well", sampled=from_the_middle)
@lie("the decoder's mean is a sample", sampled=without_noise)
@lie("codes have another variance", spread=1.7)
@torch.no_grad()
def codes_are_drawn_and_decoded(draw, sampled=from_the_prior, spread=1.0):
    """The law of a linear model's samples; digits beside held-out ones, against independent pixels."""
    model, direction, generator = drawn_linear(draw, latents=2), draw.unit(len(AXES)), draw.generator
    variance = spread * (model.weight.T @ direction).square().sum() + NOISE
    normal = distributions.Normal(model.bias @ direction, variance.sqrt())
    law = law_is(lambda n: sampled(model, n, generator) @ direction, normal.cdf, effect=0.02)
    network, held_out = draw.trained(small_network, learn_digits), binary_digits("test")
    pixels = binary_digits().mean(0)
    apart = [
        energy_distance(each, held_out, unbiased=True)
        for each in (sampled(network, 2000, generator), torch.bernoulli(pixels.expand(2000, -1), generator=generator))
    ]
    return all_of(
        law,
        reaches(apart[1] / apart[0], 1.3, detail="times nearer to held-out digits than independent pixels"),
    )
