"""What linear models of images do: `lemmata train factor_analysis`, `probabilistic_pca`, `pca`, `linear_autoencoder`.

Densities are those of grey levels to which noise of one level was added, in nats for a whole image: an upper bound on
what the levels themselves cost. A test digit (seed 0) costs independent Gaussians 149.8 nats and factor analysis 132.4
with 20 factors. Probabilistic PCA, whose noise is as strong at the rim, where nothing is written, as in the middle,
needs 50 factors for 131.1. A Gaussian with a full covariance, and no factors to look at, takes 131.0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from scipy import fft
from torch import Tensor, nn

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.feedforward.recipes_regression import ONCE, AllAtOnce
from lemmata.figure import Figure, Image
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian
from lemmata.generative.autoencoders.factor_analysis import FactorAnalysis
from lemmata.generative.autoencoders.linear_autoencoder import LinearAutoencoder
from lemmata.generative.autoencoders.linear_gaussian_model import LinearGaussianModel
from lemmata.generative.autoencoders.pca import PCA
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA
from lemmata.generative.sample_figures import image_grid
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built
from lemmata.train.options import Options

__all__ = ["CodeConfig", "FactorConfig", "copy_digits", "factors_of_digits", "project_digits"]

LEVELS = 16  # a grey value is so many sixteenths
SHOWN = 20  # images in a figure


@dataclass(frozen=True)
class FactorConfig:
    """What can be chosen of a model with factors."""

    factors: int = 20
    """Common causes of all pixels."""

    def __post_init__(self) -> None:
        validate.count("factors", self.factors, most=64)


@dataclass(frozen=True)
class CodeConfig:
    """What can be chosen of a projection."""

    code_size: int = 10
    """Numbers that an image becomes."""

    def __post_init__(self) -> None:
        validate.count("code_size", self.code_size, most=64)


# --- Densities ---

FACTORS = {"factor_analysis": FactorConfig(20), "probabilistic_pca": FactorConfig(50)}
KINDS: dict[str, type[LinearGaussianModel]] = {
    "factor_analysis": FactorAnalysis,
    "probabilistic_pca": ProbabilisticPCA,
}


@recipe("factor_analysis", "probabilistic_pca", data="digits", metric="nll")
def factors_of_digits(
    data: str = "digits",
    config: FactorConfig = FACTORS,  # type: ignore[assignment] - each system has its own
    options: Options = ONCE,
    system: str = "factor_analysis",
) -> Experiment:
    """Handwritten digits as a few strokes that come and go together, and noise of each pixel."""
    factors = config.factors
    train, test = _noisy_levels(load(data), options.seed)
    arguments = {"features": train.x.shape[1], "factors": factors}
    model: Any = built(KINDS[system], arguments, options)

    def measure(model: LinearGaussianModel, examples: Examples) -> dict[str, float]:
        nll = float(model.loss(examples.x).detach())
        error = (model(examples.x) - examples.x).square().sum(1).mean() / LEVELS**2
        return {"nll": nll, "error": float(error.detach()), "loss": nll}

    def picture(model: LinearGaussianModel) -> Figure:
        x = test.x[:SHOWN].to(model.mean)
        return _strokes_and_copies(model.loadings.mT, _grey_images(x), _grey_images(model(x)), "factors")

    def sample(model: LinearGaussianModel, count: int, generator: torch.Generator) -> Figure:
        return image_grid(_grey_images(model.sample(count, generator=generator)), f"Digits of {factors} factors")

    def predict(model: LinearGaussianModel, examples: Examples) -> dict[str, Tensor]:
        x = examples.x.flatten(1).to(model.mean) * LEVELS + 0.5
        factors = {f"factor {k + 1}": values for k, values in enumerate(model.encode(x).mT)}
        return {"nll": -model.log_prob(x), **factors}

    wide = train.x.double()
    independent = DiagonalGaussian(wide.mean(0), wide.var(0, correction=0)).nll(test.x.double()).mean()
    notes = {"baselines": {"independent Gaussians": float(independent)}, "how": "nats for a test image"}
    learner = AllAtOnce(_Unlabelled(model), lambda _, part: measure(model, part))
    return Experiment(
        model, arguments, train, test, options, learner=learner, metric="nll", picture=_in_evaluation(picture),
        sample=_in_evaluation(sample), predict=predict, notes=notes,
    )  # fmt: skip


def _noisy_levels(found: Dataset, seed: int) -> tuple[Examples, Examples]:
    """Grey levels from 0 to 16 with uniform noise of one level, without which integers have no density."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for part in (found.train, found.test):
        levels = part.x.flatten(1) * LEVELS
        parts.append(Examples(x=levels + torch.rand(levels.shape, generator=generator), y=part.y))
    return parts[0], parts[1]


def _grey_images(levels: Tensor) -> Tensor:
    """Levels with their noise as images in [0, 1]."""
    return ((levels.detach() - 0.5) / LEVELS).reshape(-1, 8, 8)


# --- Projections ---


@recipe("pca", data="digits", metric="error")
def project_digits(
    data: str = "digits",
    config: CodeConfig = CodeConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Handwritten digits as a few numbers each, by the directions in which they vary most."""
    found = load(data)
    train, test = _flat_examples(found.train), _flat_examples(found.test)
    arguments = {"features": train.x.shape[1], "components": config.code_size}
    model = PCA(train.x.shape[1], config.code_size)
    learner = AllAtOnce(_Unlabelled(model), lambda _, part: _copy_error(model, part))

    def predict(model: PCA, examples: Examples) -> dict[str, Tensor]:
        codes = model.transform(examples.x.flatten(1).to(model.mean))
        return {f"component {k + 1}": values for k, values in enumerate(codes.mT)}

    return Experiment(
        model, arguments, train, test, options, learner=learner, metric="error", predict=predict,
        picture=_copy_figure(test, lambda model: model.axes), notes=_other_projections(train, test, config.code_size),
    )  # fmt: skip


@recipe("linear_autoencoder", data="digits", metric="error")
def copy_digits(
    data: str = "digits",
    config: CodeConfig = CodeConfig(),  # noqa: B008
    options: Options = Options(epochs=100, batch_size=64, lr=1e-2, schedule="cosine", evaluate=20),  # noqa: B008
) -> Experiment:
    """The same, learnt by gradient descent: other numbers that say as much."""
    found = load(data)
    train, test = _flat_examples(found.train), _flat_examples(found.test)
    arguments = {"inputs": train.x.shape[1], "code_size": config.code_size, "bias": True}
    model = built(LinearAutoencoder, arguments, options)

    def loss(model: LinearAutoencoder, batch: Examples) -> Tensor:
        return model.loss(batch.x)

    def predict(model: LinearAutoencoder, examples: Examples) -> dict[str, Tensor]:
        codes = model.encode(examples.x.flatten(1).to(model.encoder.weight))
        return {f"code {k + 1}": values for k, values in enumerate(codes.mT)}

    return Experiment(
        model, arguments, train, test, options, loss=loss, metrics=_copy_error, metric="error", predict=predict,
        picture=_copy_figure(test, lambda model: model.decoder.weight.mT),
        notes=_other_projections(train, test, config.code_size),
    )  # fmt: skip


def _flat_examples(part: Examples) -> Examples:
    return Examples(x=part.x.flatten(1), y=part.y)


def _copy_error(model: nn.Module, examples: Examples) -> dict[str, float]:
    """The squared error of an image, summed over its pixels."""
    error = float((model(examples.x) - examples.x).detach().square().sum(1).mean())
    return {"error": error, "loss": error / 2}


def _other_projections(train: Examples, test: Examples, size: int) -> Mapping[str, Any]:
    """The mean image, and as many cosines of the lowest frequencies, the mean among them."""
    x = test.x.double()
    waves = torch.from_numpy(fft.dctn(x.reshape(-1, 8, 8).numpy(), axes=(1, 2), norm="ortho")).flatten(1)
    frequency = torch.cartesian_prod(torch.arange(8), torch.arange(8)).double()
    order = (frequency.sum(1) + frequency.square().sum(1) / 1000).argsort(stable=True)  # from slow to fast
    baselines = {
        "the mean image": float((x - train.x.double().mean(0)).square().sum(1).mean()),
        "cosines of the lowest frequencies": float(waves[:, order[size:]].square().sum(1).mean()),
    }
    return {"baselines": baselines, "how": f"squared error of a test image, of {size} numbers"}


def _copy_figure(test: Examples, strokes: Callable[[Any], Tensor]) -> Callable[[Any], Figure]:
    def picture(model: Any) -> Figure:
        x = test.x[:SHOWN].to(strokes(model))
        return _strokes_and_copies(
            strokes(model), x.reshape(-1, 8, 8), model(x).detach().reshape(-1, 8, 8), "directions"
        )

    return _in_evaluation(picture)


# --- Both ---


class _Unlabelled:
    """A model whose `fit` is not shown the classes."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, x: Tensor, y: Tensor) -> None:
        self.model.fit(x)


def _strokes_and_copies(strokes: Tensor, images: Tensor, copies: Tensor, name: str) -> Figure:
    """Directions in which images differ, grey where they do nothing; some images, and what is left of them."""
    strokes = strokes.detach()[:SHOWN]
    strokes = 0.5 + strokes / (2 * strokes.abs().amax(1, keepdim=True).clamp(min=1e-12))
    parts = {name: strokes.reshape(-1, 8, 8), "digits": images, "copies": copies}
    tiles = {label: image_grid(part, columns=5).marks[0].to_json()["pixels"] for label, part in parts.items()}
    return Figure(f"Digits from a few {name}", marks=[Image(pixels, label) for label, pixels in tiles.items()])


def _in_evaluation(show: Callable[..., Figure]) -> Callable[..., Figure]:
    def shown(model: nn.Module, *more: Any) -> Figure:
        with evaluating(model):
            return show(model, *more)

    return shown
