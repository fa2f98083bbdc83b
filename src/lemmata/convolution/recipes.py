"""What `lemmata train lenet` does: a convolutional network learns to tell small pictures apart."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.lenet import LeNet5, LeNet5Config
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.recipes import moved
from lemmata.figure import Figure
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.pictures import labelled_pictures
from lemmata.train.randomness import seeded

__all__ = ["LeNet5PictureConfig", "classify_clothing_by_lenet"]

# Each class is the mean of its pictures, and a picture has the class of the nearest one: what learning must beat.
BASELINES = {"nearest class mean": 0.675}


@dataclass(frozen=True)
class LeNet5PictureConfig(LeNet5Config):
    """What can be chosen of a LeNet-5, and of how its pictures are shown to it."""

    shift: int = 0
    """Pixels by which pictures are moved at random while it trains."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("shift", self.shift, least=0, most=8)


@recipe("lenet", data="fashion", metric="accuracy")
def classify_clothing_by_lenet(
    data: str = "fashion",
    config: LeNet5PictureConfig = LeNet5PictureConfig(activation="relu", padding=2),  # noqa: B008 - frozen
    options: Options = Options(epochs=20, batch_size=64, lr=3e-3, schedule="cosine", evaluate=4),  # noqa: B008
) -> Experiment:
    """Ten kinds of clothing, by two convolutions and three fully connected layers."""
    found = load(data)
    chosen = asdict(config)
    shift = chosen.pop("shift")
    arguments = {"channels": 1, "classes": len(found.classes), **chosen}
    with seeded(options.seed):
        system = LeNet5(**arguments)

    def loss(system: nn.Module, batch: Examples) -> Tensor:
        x = moved(batch.x, shift) if system.training else batch.x
        return functional.cross_entropy(system(x[:, None]), batch.y)

    def metrics(system: nn.Module, batch: Examples) -> dict[str, float]:
        return {"accuracy": (system(batch.x[:, None]).argmax(1) == batch.y).double().mean().item()}

    def picture(system: nn.Module) -> Figure:
        weight = next(system.parameters())
        with evaluating(system):
            predicted = system(found.test.x[:, None].to(weight)).argmax(1).cpu()
        wrong = (predicted != found.test.y).nonzero()[:5, 0]
        shown = torch.cat([torch.arange(min(10, len(found.test))), wrong])
        note = "The first ten test pictures, and five that are taken for something else."
        return labelled_pictures(found.test.x[shown], predicted[shown], found.test.y[shown], found.classes, note=note)

    def predict(system: nn.Module, examples: Examples) -> dict[str, Tensor]:
        probability = system(examples.x[:, None]).softmax(1)
        return {"class": probability.argmax(1), "probability": probability.amax(1)}

    return Experiment(
        system, arguments, found.train, found.test, options, loss=loss, metrics=metrics, metric="accuracy",
        largest=True, classes=found.classes, picture=picture, predict=predict, notes={"baselines": BASELINES},
    )  # fmt: skip
