"""What can be trained of the networks for pictures: LeNet-5, ResNet and DenseNet tell small grey pictures apart.

What is reached (seed 0): DenseNet 84 % of 1,000 test pictures after 2,000; ResNet-18 in full width 91.5 % of the 10,000
of Fashion-MNIST after four passes over 60,000, in a quarter of an hour of one core: `lemmata train resnet18 --data
fashion_mnist --no-small --shift 1 --epochs 4 --lr 0.04 --warmup 250`; and 93.5 % after five passes in 26 seconds of an
H200, by `--device cuda --precision bfloat16 --epochs 5` alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.densenet import DenseNet, DenseNetConfig
from lemmata.convolution.lenet import LeNet5, LeNet5Config
from lemmata.convolution.resnet import ResNet, ResNetConfig
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.figure import Figure
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification
from lemmata.train.options import Options
from lemmata.train.pictures import confusion_matrix, filter_pictures, labelled_pictures
from lemmata.train.shifted_images import shifted

__all__ = [
    "DenseNetPictureConfig", "LeNet5PictureConfig", "ResNetPictureConfig", "classify_all_pictures",
    "classify_few_pictures", "nearest_class_mean", "picture_classification",
]  # fmt: skip

HOW = "Each class is the mean of its pictures, and a picture has the class of the nearest one: no weights, no learning"
AT_ONCE = 250  # pictures: those of a wide network would not fit into memory all together


@dataclass(frozen=True)
class Shown:
    """What can be chosen of how pictures are shown to a network."""

    shift: int = 0
    """Pixels by which pictures are moved at random while it trains."""

    def __post_init__(self) -> None:
        validate.count("shift", self.shift, least=0, most=8)


@dataclass(frozen=True)
class LeNet5PictureConfig(Shown, LeNet5Config):
    """What can be chosen of a LeNet-5, and of how its pictures are shown to it."""

    def __post_init__(self) -> None:
        Shown.__post_init__(self)
        LeNet5Config.__post_init__(self)


@dataclass(frozen=True)
class ResNetPictureConfig(Shown, ResNetConfig):
    """What can be chosen of a residual network, and of how its pictures are shown to it."""

    def __post_init__(self) -> None:
        Shown.__post_init__(self)
        ResNetConfig.__post_init__(self)


@dataclass(frozen=True)
class DenseNetPictureConfig(Shown, DenseNetConfig):
    """What can be chosen of a DenseNet, and of how its pictures are shown to it."""

    def __post_init__(self) -> None:
        Shown.__post_init__(self)
        DenseNetConfig.__post_init__(self)


PictureConfig = LeNet5PictureConfig | ResNetPictureConfig | DenseNetPictureConfig
NETWORKS = {"lenet": LeNet5, "resnet": ResNet, "densenet": DenseNet}
FEW: Mapping[str, PictureConfig] = {
    "lenet": LeNet5PictureConfig(activation="relu", padding=2),
    "resnet": ResNetPictureConfig(width=16, small=True, shift=1),
    "densenet": DenseNetPictureConfig(growth=4, small=True, shift=1),
}
FEW_TRAINING: Mapping[str, Options] = {
    "lenet": Options(epochs=20, batch_size=64, lr=3e-3, schedule="cosine", evaluate=4),
    "resnet": Options(epochs=12, batch_size=64, lr=5e-3, weight_decay=0.01, schedule="cosine", evaluate=3),
    "densenet": Options(epochs=6, batch_size=32, lr=5e-3, weight_decay=0.01, schedule="cosine", evaluate=2),
}
# LeNet-5 within a minute or two on two cores; the others as they are usually trained, for a GPU.
ALL: Mapping[str, PictureConfig] = {
    "lenet": LeNet5PictureConfig(activation="relu", padding=2),
    "resnet": ResNetPictureConfig(small=True, shift=2),
    "densenet": DenseNetPictureConfig(growth=12, small=True, shift=2),
}
DEEP = Options(
    epochs=20, batch_size=128, optimizer="sgd", lr=0.1, weight_decay=5e-4, schedule="cosine", warmup=400, evaluate=2
)
ALL_TRAINING: Mapping[str, Options] = {
    "lenet": Options(epochs=3, batch_size=64, lr=3e-3, schedule="cosine"), "resnet": DEEP, "densenet": DEEP,
}  # fmt: skip


@recipe("lenet", "resnet", "densenet", data="fashion", metric="accuracy")
def classify_few_pictures(
    data: str = "fashion",
    config: PictureConfig = FEW,  # type: ignore[assignment] - each system has its own
    options: Options = FEW_TRAINING,  # type: ignore[assignment]
    system: str = "lenet",
) -> Experiment:
    """Ten kinds of clothing, from 2,000 small pictures, by convolutions."""
    return _image_classification(load(data), system, config, options)


@recipe("lenet", "resnet", "densenet", data="mnist fashion_mnist kmnist", metric="accuracy")
def classify_all_pictures(
    data: str = "mnist",
    config: PictureConfig = ALL,  # type: ignore[assignment]
    options: Options = ALL_TRAINING,  # type: ignore[assignment]
    system: str = "lenet",
) -> Experiment:
    """Digits, clothing or old Japanese characters, from 60,000 pictures that `lemmata data` fetches or reads."""
    return _image_classification(load(data), system, config, options)


def nearest_class_mean(data: Dataset) -> float:
    """The fraction of test pictures whose nearest mean of a class is that of their own: what learning must beat."""
    x, y = data.train.x.flatten(1), data.train.y
    counts = functional.one_hot(y, len(data.classes)).to(x)  # (pictures, classes)
    means = counts.mT @ x / counts.sum(0)[:, None]  # (classes, pixels)
    # |x - m|^2 = |x|^2 - 2 x.m + |m|^2, of which the first is the same for all classes
    distance = means.square().sum(1) - 2 * data.test.x.flatten(1) @ means.mT
    return (distance.argmin(1) == data.test.y).double().mean().item()


def _image_classification(data: Dataset, name: str, config: PictureConfig, options: Options) -> Experiment:
    chosen = asdict(config)
    shift = chosen.pop("shift")
    arguments = {"channels": 1, "classes": len(data.classes), **chosen}

    def draw(system: nn.Module, predicted: Tensor) -> Figure:
        test = data.test
        wrong = (predicted != test.y).nonzero()[:5, 0]
        shown = labelled_pictures(test.x[wrong], predicted[wrong], test.y[wrong], data.classes).marks
        note = (
            "Above: pictures that are taken for something else, and the first kernels, black where they are lowest "
            "and white where they are highest. Below: how many per cent of each row's class are taken for another."
        )
        kernels = filter_pictures(next(system.parameters()))
        marks = [*shown, *kernels, confusion_matrix(predicted, test.y, data.classes)]
        return Figure("Mistakes and first kernels", "taken for", "is", marks, note=note)

    return picture_classification(data, NETWORKS[name], arguments, shift, options, draw)


def picture_classification(
    data: Dataset,
    network: type[nn.Module],
    arguments: dict[str, Any],
    shift: int,
    options: Options,
    draw: Callable[[nn.Module, Tensor], Figure],
) -> Experiment:
    """A network that learns the classes of grey pictures; `draw` makes a figure of it and of what it takes them for."""
    form = Classification(lambda system, batch: system(batch.x[:, None]), shifted(shift), AT_ONCE)

    def picture(system: nn.Module) -> Figure:
        with evaluating(system):
            pictures = Examples(x=data.test.x.to(next(system.parameters())))
            return draw(system, form.predict(system, pictures)["class"].cpu())

    notes = {"baselines": {"nearest class mean": nearest_class_mean(data)}, "how": HOW}
    return form.experiment(
        network, arguments, data.train, data.test, options, classes=data.classes, picture=picture, notes=notes
    )
