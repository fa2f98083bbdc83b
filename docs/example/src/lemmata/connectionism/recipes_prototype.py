"""What `lemmata train nearest_prototype` does."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from lemmata.connectionism.nearest_prototype import NearestPrototype
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded

__all__ = ["PrototypeConfig", "classify_by_prototypes"]

# The means of the classes as prototypes, on the same examples: what learning must beat.
BASELINES = {"class means": 0.897}


@dataclass(frozen=True)
class PrototypeConfig:
    """What can be chosen of a nearest prototype: nothing yet."""


@recipe("nearest_prototype", data="digits", metric="accuracy")
def classify_by_prototypes(
    data: str = "digits",
    config: PrototypeConfig = PrototypeConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=20, batch_size=64, lr=0.02, schedule="cosine"),  # noqa: B008
) -> Experiment:
    """Ten digits, one learned picture of each."""
    found = load(data)
    inputs = found.train.x[0].numel()
    with seeded(options.seed):
        system = NearestPrototype(inputs, len(found.classes))

    def logits(system: NearestPrototype, batch: Examples) -> Tensor:
        return system(batch.x.flatten(1))  # (batch, classes)

    def loss(system: NearestPrototype, batch: Examples) -> Tensor:
        return functional.cross_entropy(logits(system, batch), batch.y)

    def metrics(system: NearestPrototype, batch: Examples) -> dict[str, float]:
        return {"accuracy": (logits(system, batch).argmax(1) == batch.y).double().mean().item()}

    def picture(system: NearestPrototype) -> Figure:
        pictures = system.prototypes.detach().reshape(-1, *found.train.x.shape[1:]).clamp(0, 1)
        return Figure("What was learned of each class", marks=[*map(Image, pictures, found.classes)])

    def predict(system: NearestPrototype, examples: Examples) -> dict[str, Tensor]:
        return {"class": logits(system, examples).argmax(1)}

    return Experiment(
        system, {"inputs": inputs, "classes": len(found.classes)}, found.train, found.test, options, loss=loss,
        metrics=metrics, metric="accuracy", largest=True, classes=found.classes, picture=picture, predict=predict,
        notes={"baselines": BASELINES},
    )  # fmt: skip
