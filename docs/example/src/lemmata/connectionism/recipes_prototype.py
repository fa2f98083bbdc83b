"""What `lemmata train nearest_prototype` does."""

from dataclasses import dataclass

from lemmata.connectionism.nearest_prototype import NearestPrototype
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification
from lemmata.train.options import Options

__all__ = ["PrototypeConfig", "classify_by_prototypes"]

# The means of the classes as prototypes, on the same examples: what learning must beat.
BASELINES = {"class means": 0.897}


@dataclass(frozen=True)
class PrototypeConfig:
    """Configuration of a nearest prototype: nothing to choose yet."""


@recipe("nearest_prototype", data="digits", metric="accuracy")
def classify_by_prototypes(
    data: str = "digits",
    config: PrototypeConfig = PrototypeConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=20, batch_size=64, lr=0.02, schedule="cosine"),  # noqa: B008
) -> Experiment:
    """Ten digits, one learned picture of each."""
    found = load(data)
    arguments = {"inputs": found.train.x[0].numel(), "classes": len(found.classes)}

    def picture(system: NearestPrototype) -> Figure:
        pictures = system.prototypes.detach().reshape(-1, *found.train.x.shape[1:]).clamp(0, 1)
        return Figure("What was learned of each class", marks=[*map(Image, pictures, found.classes)])

    return Classification(lambda system, batch: system(batch.x.flatten(1))).experiment(
        NearestPrototype, arguments, found.train, found.test, options, classes=found.classes, picture=picture,
        notes={"baselines": BASELINES},
    )  # fmt: skip
