"""What can be trained in this room: flows that learn the density of points in the plane.

What the defaults of real_nvp reach (seed 0) in nats per held-out point: moons 1.07 (the best Gaussian 1.93), rings 1.04
(1.68), mixture 3.04 (3.33; the true density 2.98).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.generative.flows.masked_affine import MaskedAutoregressiveFlow, MaskedAutoregressiveFlowConfig
from lemmata.generative.flows.real_nvp import RealNVP, RealNVPConfig
from lemmata.generative.sample_figures import point_cloud
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import built, chosen
from lemmata.train.options import Options

__all__ = ["gaussian_nll", "learn_density", "learn_density_in_order", "true_log_density"]

PIXELS = 96  # along each side of a picture of a density
# Without warm-up and clipping one of the first steps may fold the plane in a way that is not unlearnt.
GENTLE = Options(epochs=150, batch_size=100, lr=4e-3, schedule="cosine", warmup=100, clip=5.0, evaluate=30)


@recipe("real_nvp", data="moons rings mixture", metric="nll")
def learn_density(
    data: str = "moons",
    config: RealNVPConfig = RealNVPConfig(),  # noqa: B008 - frozen
    options: Options = GENTLE,
) -> Experiment:
    """Points in the plane: how dense they lie, and more of them."""
    return _density_experiment(data, RealNVP, config, options)


@recipe("masked_autoregressive_flow", data="moons rings mixture", metric="nll")
def learn_density_in_order(
    data: str = "moons",
    config: MaskedAutoregressiveFlowConfig = MaskedAutoregressiveFlowConfig(layers=6),  # noqa: B008
    options: Options = GENTLE,
) -> Experiment:
    """The same, one coordinate given the other."""
    return _density_experiment(data, MaskedAutoregressiveFlow, config, options)


def _density_experiment(data: str, kind: Any, config: Any, options: Options) -> Experiment:
    found = load(data)
    train, test = (Examples(x=part.x) for part in (found.train, found.test))
    arguments = {"features": train.x.shape[1], **chosen(config)}
    flow = built(kind, arguments, options)
    flow.standardize(train.x)

    def loss(model: Any, batch: Examples) -> dict[str, Tensor]:
        nll = model.loss(batch.x)
        return {"loss": nll, "nll": nll.detach()}

    def sample(model: Any, count: int, generator: torch.Generator) -> Figure:
        with evaluating(model), torch.no_grad():
            return point_cloud(model.sample(count, generator=generator), test.x, "Drawn beside the data")

    baselines = {"the best Gaussian": gaussian_nll(train.x, test.x)}
    if (true := true_log_density(found)) is not None:
        baselines["the true density"] = -float(true(test.x.double()).mean())
    return Experiment(
        flow, arguments, train, test, options, loss=loss, metric="nll", sample=sample,
        picture=_density_pictures(found, true), notes={"baselines": baselines, "how": "nats of a held-out point"},
    )  # fmt: skip


def gaussian_nll(train: Tensor, test: Tensor) -> float:
    """The nats of a test point under the Gaussian with mean and covariance of the training points."""
    train, test = train.double(), test.double()
    gaussian = MultivariateNormal(train.mean(0), torch.cov(train.mT, correction=0))
    return -float(gaussian.log_prob(test).mean())


def true_log_density(data: Dataset) -> Callable[[Tensor], Tensor] | None:
    """The density that points were drawn from, where it is known: that of a mixture of Gaussians."""
    if "weights" not in data.extra:
        return None
    parts = MultivariateNormal(data.extra["means"], data.extra["covariances"])
    return MixtureSameFamily(Categorical(data.extra["weights"]), parts).log_prob


def _density_pictures(data: Dataset, true: Callable[[Tensor], Tensor] | None) -> Callable[[Any], Figure]:
    """The learnt density beside the true one, or beside where held-out points lie if nobody knows it."""
    low, high = data.test.x.amin(0), data.test.x.amax(0)
    margin = 0.1 * (high - low)
    low, high = low - margin, high + margin
    steps = (torch.arange(PIXELS) + 0.5) / PIXELS
    across, up = (low[k] + (high[k] - low[k]) * steps for k in (0, 1))
    plane = torch.cartesian_prod(up.flip(0), across).flip(1)  # rows of an image from the top

    def picture(model: Any) -> Figure:
        place = next(model.parameters())
        with evaluating(model), torch.no_grad():
            learnt = model.log_prob(plane.to(place)).cpu().double().exp()
            drawn = model.sample(len(data.test.x), generator=torch.Generator(place.device).manual_seed(0)).cpu()
        beside = true(plane.double()).exp() if true else None
        panels = [(learnt, "learnt density")] + ([(beside, "true density")] if beside is not None else [])
        marks = [Image(_density_heat(values.view(PIXELS, PIXELS), learnt.max()), label) for values, label in panels]
        marks += [
            Image(_point_marks(points, low, high), label) for points, label in ((drawn, "drawn"), (data.test.x, "data"))
        ]
        return Figure("How dense points lie", marks=marks)

    return picture


def _density_heat(values: Tensor, most: Tensor) -> Tensor:
    """Dense is black; the root shows what is thin as well."""
    return 1 - (values / most).clamp(0, 1).sqrt().mul(1000).round().div(1000)


def _point_marks(points: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """How many points fall into each pixel."""
    cell = ((points - low) / (high - low) * PIXELS).floor().long()
    cell = cell[((cell >= 0) & (cell < PIXELS)).all(1)]
    counts = torch.bincount((PIXELS - 1 - cell[:, 1]) * PIXELS + cell[:, 0], minlength=PIXELS**2)
    return 1 - (counts.view(PIXELS, PIXELS) / 2).clamp(max=1)
