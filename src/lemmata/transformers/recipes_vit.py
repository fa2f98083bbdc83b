"""What can be trained of the vision transformer: small grey pictures told apart, and where it looks for it."""

from dataclasses import asdict, dataclass

from torch import Tensor, nn

from lemmata import validate
from lemmata.convolution.recipes import picture_classification
from lemmata.data.examples import Dataset
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.pictures import confusion_matrix, labelled_pictures
from lemmata.transformers.attention_recording import attention_maps
from lemmata.transformers.vit import ViT

__all__ = ["ViTPictureConfig", "attend_to_all_pictures", "attend_to_few_pictures", "attention_pictures"]

SHOWN = 5  # pictures, each beside where the model looks


@dataclass(frozen=True)
class ViTPictureConfig:
    """What can be chosen of a small vision transformer, and of how its pictures are shown to it."""

    patch_size: int = 4
    """Sides of a patch, in pixels."""
    width: int = 64
    """Values that stand for a patch on its way through the blocks."""
    depth: int = 3
    """Blocks, one above another."""
    heads: int = 4
    """Attentions side by side in each block."""
    hidden: int = 128
    """Units inside the network of each position."""
    dropout: float = 0.1
    """Fraction of what each part adds, and of the embedded patches, that is left out while training."""
    shift: int = 1
    """Pixels by which pictures are moved at random while it trains."""

    def __post_init__(self) -> None:
        for name in ("patch_size", "width", "depth", "heads", "hidden"):
            validate.count(name, getattr(self, name))
        validate.fraction("dropout", self.dropout)
        validate.count("shift", self.shift, least=0, most=8)


FEW = Options(epochs=30, batch_size=50, lr=2e-3, weight_decay=0.05, schedule="cosine", warmup=100, evaluate=5)
# For a GPU: on two cores an epoch takes minutes.
ALL = Options(epochs=20, batch_size=256, lr=1e-3, weight_decay=0.05, schedule="cosine", warmup=500, evaluate=2)


@recipe("vit", data="fashion", metric="accuracy")
def attend_to_few_pictures(
    data: str = "fashion",
    config: ViTPictureConfig = ViTPictureConfig(),  # noqa: B008 - frozen
    options: Options = FEW,
) -> Experiment:
    """Ten kinds of clothing, from 2,000 small pictures, by attention between their patches."""
    return _vit_classification(load(data), config, options)


@recipe("vit", data="mnist fashion_mnist kmnist", metric="accuracy")
def attend_to_all_pictures(
    data: str = "mnist",
    config: ViTPictureConfig = ViTPictureConfig(width=192, depth=6, heads=6, hidden=768, shift=2),  # noqa: B008
    options: Options = ALL,
) -> Experiment:
    """Digits, clothing or old Japanese characters, from 60,000 pictures that `lemmata data` fetches or reads."""
    return _vit_classification(load(data), config, options)


def attention_pictures(model: ViT, pictures: Tensor) -> list[Image]:
    """How much the [CLS] token looks at each patch in the last block, mean of all heads: black never, white most.

    >>> model = ViT(10, image_size=8, patch_size=4, channels=1, width=8, depth=1, heads=2, hidden=8)
    >>> (image,) = attention_pictures(model, torch.rand(1, 8, 8))
    >>> len(image.pixels), max(map(max, image.pixels))
    (8, 1.0)
    """
    *_, last = attention_maps(model, pictures[:, None].to(model.positions)).values()  # (batch, heads, tokens, tokens)
    looks = last[:, :, 0, 1:].mean(1).unflatten(1, model.config.grid).detach().cpu().double()  # (batch, rows, columns)
    looks = looks / looks.amax((1, 2), keepdim=True)
    for axis, side in enumerate(model.patches.patch_size, start=1):
        looks = looks.repeat_interleave(side, axis)  # as large as the picture in the end
    return [Image(grey, "where it looks") for grey in looks.mul(1000).round().div(1000).tolist()]


def _vit_classification(data: Dataset, config: ViTPictureConfig, options: Options) -> Experiment:
    chosen = asdict(config)
    shift, size = chosen.pop("shift"), tuple(data.train.x.shape[1:])
    arguments = {"classes": len(data.classes), "image_size": size, "channels": 1, **chosen}

    def draw(system: nn.Module, predicted: Tensor) -> Figure:
        assert isinstance(system, ViT)
        test = data.test
        looks = attention_pictures(system, test.x[:SHOWN])
        shown = labelled_pictures(test.x[:SHOWN], predicted[:SHOWN], test.y[:SHOWN], data.classes).marks
        pairs = [mark for pair in zip(shown, looks, strict=True) for mark in pair]
        note = (
            "Above: pictures, each followed by where the [CLS] token looks in the last block, white where most. "
            "Below: how many per cent of each row's class are taken for another."
        )
        marks = [*pairs, confusion_matrix(predicted, test.y, data.classes)]
        return Figure("Where it looks, and mistakes", "taken for", "is", marks, note=note)

    return picture_classification(data, ViT, arguments, shift, options, draw)
