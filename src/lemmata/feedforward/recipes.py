"""What can be trained in this chapter: the multilayer perceptron on pictures, points in the plane and own files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP, MLPConfig
from lemmata.figure import Figure
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification, chosen
from lemmata.train.options import Options
from lemmata.train.own_data import sizes, supervised
from lemmata.train.pictures import decision_map, labelled_pictures
from lemmata.train.shifted_images import shifted

__all__ = ["FileConfig", "PictureConfig", "classify_clothing", "classify_digits", "classify_points", "learn_file"]

# The defaults of the recipes for pictures were chosen by 5-fold cross-validation on the training examples, too.
HOW = (
    "scikit-learn 1.9.1 on the same training and test examples; MLPClassifier: mean over seeds 0 to 4; tuned: the best "
    "of 18 settings (layers, alpha, batch size) in 3-fold cross-validation on the training examples"
)
FASHION = {"MLPClassifier": 0.819, "MLPClassifier, tuned": 0.823, "RBF SVM, C = 10": 0.852}
DIGITS = {"MLPClassifier": 0.975, "MLPClassifier, tuned": 0.974, "logistic regression": 0.958}
STRAIGHT = {"moons": 0.889, "rings": 0.500, "spirals": 0.510, "xor": 0.496}


@dataclass(frozen=True)
class PictureConfig(MLPConfig):
    """What can be chosen of a multilayer perceptron for pictures, and of how its pictures are varied."""

    shift: int = 0
    """Pixels by which a training picture is moved at most, each way."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("shift", self.shift, least=0)


@recipe("mlp", data="fashion", metric="accuracy")
def classify_clothing(
    data: str = "fashion",
    config: PictureConfig = PictureConfig(widths=(512,), dropout=0.3, shift=1),  # noqa: B008 - frozen
    options: Options = Options(epochs=160, batch_size=128, lr=2e-3, weight_decay=0.01, schedule="cosine", evaluate=8),  # noqa: B008
) -> Experiment:
    """Ten kinds of clothing, from 2,000 small pictures."""
    return classification(load(data), config, options, {"baselines": FASHION, "how": HOW})


@recipe("mlp", data="digits", metric="accuracy")
def classify_digits(
    data: str = "digits",
    config: PictureConfig = PictureConfig(widths=(512, 512), dropout=0.3),  # noqa: B008
    options: Options = Options(epochs=60, lr=2e-3, weight_decay=0.01, schedule="cosine", evaluate=3),  # noqa: B008
) -> Experiment:
    """Ten handwritten digits, from 1,438 pictures of 8 by 8 pixels."""
    return classification(load(data), config, options, {"baselines": DIGITS, "how": HOW})


@recipe("mlp", data="moons rings spirals xor", metric="accuracy")
def classify_points(
    data: str = "moons",
    config: MLPConfig = MLPConfig(widths=(64, 64)),  # noqa: B008
    options: Options = Options(epochs=60, lr=5e-3, schedule="cosine", evaluate=3),  # noqa: B008
) -> Experiment:
    """Classes of points in the plane that no straight line separates, with a map of what is learnt."""
    return classification(load(data), config, options, straight_line(data))


def straight_line(data: str) -> dict[str, Any]:
    """How well a straight line tells the classes of points in the plane apart."""
    how = "logistic regression by scikit-learn 1.9.1 with its defaults on the same training and test points"
    return {"baselines": {"logistic regression": STRAIGHT[data]}, "how": how} if data in STRAIGHT else {}


@dataclass(frozen=True)
class FileConfig(MLPConfig, FileChoices):
    """What can be chosen of a multilayer perceptron, and of the data of one's own that it learns from."""


OWN = Options(epochs=100, batch_size=32, lr=5e-3, weight_decay=0.01, schedule="cosine", evaluate=5)


@recipe("mlp", data="file", metric="accuracy")
def learn_file(
    data: str | Dataset,
    config: FileConfig = FileConfig(widths=(64, 64), dropout=0.1),  # noqa: B008
    options: Options = OWN,
) -> Experiment:
    """A table, arrays or a folder of images of one's own: classes, or a number."""
    found = load_file(data, config, options.seed)
    arguments = {**sizes(found), **chosen(config, MLPConfig)}
    grey = found.extra["preparation"].kind == "pictures" and found.train.x.ndim == 3
    drawn = found.classes and (grey or arguments["inputs"] == 2)
    return supervised(MLP, arguments, found, options, picture=_prediction_figure(found) if drawn else None)


def classification(
    data: Dataset,
    config: Any,
    options: Options,
    notes: Mapping[str, Any],
    network: type[nn.Module] = MLP,
    choices: type = MLPConfig,
) -> Experiment:
    """A network that learns the classes of a data set; of a config, `choices` names what the network itself takes."""
    arguments = {"inputs": data.train.x[0].numel(), "outputs": len(data.classes), **chosen(config, choices)}
    return Classification(varied=shifted(getattr(config, "shift", 0))).experiment(
        network,
        arguments,
        data.train,
        data.test,
        options,
        classes=data.classes,
        picture=_prediction_figure(data),
        notes=notes,
    )


def _prediction_figure(data: Dataset) -> Callable[[nn.Module], Figure]:
    test = data.test

    def plane(system: nn.Module) -> Figure:
        return decision_map(lambda x: _evaluated_logits(system, x).softmax(1), test, data.classes)

    def examples(system: nn.Module) -> Figure:
        predicted = _evaluated_logits(system, test.x).argmax(1).cpu()
        wrong = (predicted != test.y).nonzero()[:5, 0]
        shown = torch.cat([torch.arange(min(10, len(test))), wrong])
        note = "The first ten test pictures, and five that are taken for something else."
        return labelled_pictures(test.x[shown], predicted[shown], test.y[shown], data.classes, note=note)

    return plane if test.x[0].numel() == 2 else examples


@torch.no_grad()
def _evaluated_logits(system: nn.Module, x: Tensor) -> Tensor:
    """The outputs in evaluation mode, wherever and in whatever mode the system is."""
    training = system.training
    weight = next(system.parameters())
    logits = system.eval()(x.to(weight))
    system.train(training)
    return logits
