"""What `lemmata train unet` does: it finds letters, or silhouettes of furniture, that are hidden in photographs.

What the defaults reach on furniture (seed 0): an intersection over union of 0.75 on the test scenes, which nothing was
chosen by; the evaluations on the way are on others, whose last one says 0.77.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.unet import UNet, UNetConfig
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Figure, Image
from lemmata.marks import recipe
from lemmata.measure.segmentation_measures import intersection_over_union, otsu_threshold
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification, chosen, fraction
from lemmata.train.options import Options

__all__ = [
    "UNetSceneConfig",
    "find_hidden_objects",
    "hidden_objects",
    "object_by_threshold",
]

SIDE, OBJECT = 48, 28  # pixels of a scene, and of the square that an object fits into
SQUARE = 192  # pixels of the part of a photograph that is seen, all of coffee and cat; camera has more on two sides
PHOTOGRAPHS = {"train": ("camera", "coffee"), "test": ("cat",), "validation": ("camera",)}
HELD_OUT = 300  # scenes of the test, and of the validation
EVERY = 6  # of the alphabets, or pieces of furniture, to learn from, one is kept for the validation
# What Otsu's threshold reaches on the test scenes, if the smaller of its two groups of pixels is called the object.
# (The best threshold of each picture, chosen by who knows the truth, reaches 0.627 and 0.636.)
BASELINES = {"glyphs": {"Otsu's threshold": 0.155}, "furniture": {"Otsu's threshold": 0.197}}


@dataclass(frozen=True)
class UNetSceneConfig(UNetConfig):
    """What can be chosen of a U-Net, and how many scenes it learns from."""

    scenes: int = 1500
    """Training scenes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("scenes", self.scenes, most=100_000)
        if self.levels > 4 or not self.same:
            fix = "use levels of at most 4 and same" if self.levels > 4 else "leave out --no-same"
            raise ValueError(f"scenes have {SIDE} x {SIDE} pixels, all of which get a class: {fix}")


@recipe("unet", data="glyphs furniture", metric="iou")
def find_hidden_objects(
    data: str = "glyphs",
    config: UNetSceneConfig = UNetSceneConfig(width=8, levels=3),  # noqa: B008 - frozen
    options: Options = Options(epochs=12, batch_size=16, lr=3e-3, schedule="cosine", warmup=50, evaluate=2),  # noqa: B008
) -> Experiment:
    """Which pixels belong to the letter, or the piece of furniture, that was laid into a photograph."""
    train = hidden_objects(data, "train", config.scenes)
    test, validation = (hidden_objects(data, part, HELD_OUT) for part in ("test", "validation"))
    arguments = {"channels": 1, "classes": 2, **chosen(config, without=("scenes",))}
    return Segmentation(lambda system, batch: system(batch.x[:, None]), _turn_batch, metric="iou").experiment(
        UNet, arguments, train, test, options, validation=validation, classes=("photograph", "object"),
        picture=_scene_figure(test), predict=_object_positions, notes={"baselines": BASELINES[data]},
    )  # fmt: skip


class Segmentation(Classification):
    """A class for each pixel, scored by how well the object is covered."""

    def loss(self, system: nn.Module, batch: Examples) -> dict[str, Tensor]:
        seen = self.varied(batch) if self.varied and system.training else batch
        logits, y = self.output(system, seen), seen.y
        found = logits.detach().argmax(1)  # (pictures, height, width)
        # Few pixels belong to an object, and the cross-entropy alone begins by calling none of them one.
        loss = functional.cross_entropy(logits, y) + 1 - _soft_overlap(logits.softmax(1)[:, 1], y)
        overlap = intersection_over_union(found == 1, y == 1).mean()
        return {"loss": loss, "iou": overlap, "accuracy": fraction(found == y)}


# --- Scenes ---


def hidden_objects(data: str = "glyphs", part: str = "train", count: int = 1500, seed: int = 0) -> Examples:
    r"""Photographs with one object each, of another tone and with a texture of its own, and which pixels it covers.

    $$ x = (1 - m)\, p + m\,(\bar p \pm c + \tfrac12 t) $$

    with the mask $m$ of a letter or of a piece of furniture, a part $p$ of a photograph, its mean $\bar p$ under the
    mask, a contrast $c$ in $[0.15, 0.4]$ and the deviations $t$ of another part from its mean. No two of `train`,
    `validation` and `test` share an alphabet, a piece of furniture or a pixel of a photograph: those of the validation
    come from a strip of a photograph whose other side is learnt from, those of the test from a photograph of their own.

    Shapes:
        x: (count, 48, 48) float32 in $[0, 1]$, y: (count, 48, 48) int64, 1 on the object

    >>> scenes = hidden_objects("glyphs", "test", 3)
    >>> scenes, scenes.y.unique()
    (Examples(x=(3, 48, 48), y=(3, 48, 48)), tensor([0, 1]))
    """
    validate.one_of("data", data, tuple(BASELINES))
    validate.one_of("part", part, tuple(PHOTOGRAPHS))
    validate.count("count", count)
    drawn = torch.Generator().manual_seed(len(PHOTOGRAPHS) * seed + tuple(PHOTOGRAPHS).index(part))
    pieces = _letter_images(part) if data == "glyphs" else _furniture_images(part)
    masks = pieces[torch.randint(len(pieces), (count,), generator=drawn)]  # (count, 28, 28)
    m = _image_windows(
        functional.pad(masks, (SIDE - OBJECT,) * 4), drawn
    )  # (count, 48, 48), the object somewhere in it
    p, t = (_image_windows(_grey_photographs(part, count, drawn), drawn) for _ in range(2))
    mean = (m * p).sum((1, 2), keepdim=True) / m.sum((1, 2), keepdim=True)
    c = 0.15 + 0.25 * torch.rand(count, 1, 1, generator=drawn)
    # Towards the side on which there is more room: a bright object would vanish on white paper.
    c = torch.where(torch.rand(count, 1, 1, generator=drawn) < mean, -c, c)
    inside = mean + c + (t - t.mean((1, 2), keepdim=True)) / 2
    return Examples(x=torch.where(m > 0, inside, p).clamp(0, 1), y=m.long())


def _letter_images(part: str) -> Tensor:
    """Letters, white on black, (letters, 28, 28)."""
    letters = load("glyphs").parts["test" if part == "test" else "train"]
    return letters.x[_belongs_to_part(part, letters.alphabet)]


def _belongs_to_part(part: str, number: Tensor) -> Tensor:
    """Which of the numbered alphabets or pieces are of this part, of those that are all for the test or all not."""
    if part == "test":
        return torch.ones_like(number, dtype=torch.bool)
    return (number % EVERY == EVERY - 1) == (part == "validation")


def _furniture_images(part: str, turns: int = 8) -> Tensor:
    """Pieces of furniture from all around, white on black, (turns * models, 28, 28)."""
    models = load("furniture").parts["test" if part == "test" else "train"].x
    points = models[
        _belongs_to_part(part, torch.arange(len(models)))
    ]  # (models, 512, 3), y upwards, inside the unit sphere
    views = []
    for turn in range(turns):
        angle = 2 * math.pi * turn / turns
        across = math.cos(angle) * points[:, :, 0] + math.sin(angle) * points[:, :, 2]
        places = torch.stack([-points[:, :, 1], across], -1)  # rows count downwards
        cells = ((places + 1) / 2 * OBJECT).long().clamp(0, OBJECT - 1)
        picture = torch.zeros(len(points), OBJECT * OBJECT)
        picture.scatter_(1, cells[:, :, 0] * OBJECT + cells[:, :, 1], 1.0)
        views.append(picture.reshape(-1, 1, OBJECT, OBJECT))
    dots = torch.cat(views)
    # Points lie a pixel or two apart: swelling each and shrinking the whole again closes what is between them.
    closed = -functional.max_pool2d(-functional.max_pool2d(dots, 5, 1, 2), 5, 1, 2)
    return closed[:, 0]


def _grey_photographs(part: str, count: int, drawn: torch.Generator) -> Tensor:
    """So many of the photographs of a part, in grey, each as often mirrored as not."""
    grey = [load("photos").parts[name].x[0].mean(0) for name in PHOTOGRAPHS[part]]
    seen = [picture[:, SQUARE:] if part == "validation" else picture[:SQUARE, :SQUARE] for picture in grey]
    both = torch.stack([way for picture in seen for way in (picture, picture.flip(1))])
    return both[torch.randint(len(both), (count,), generator=drawn)]


def _image_windows(pictures: Tensor, drawn: torch.Generator) -> Tensor:
    """A square of each picture, 48 x 48, somewhere in it."""
    tops, lefts = (torch.randint(n - SIDE + 1, (len(pictures),), generator=drawn) for n in pictures.shape[1:])
    pairs = zip(pictures, tops.tolist(), lefts.tolist(), strict=True)
    return torch.stack([picture[top : top + SIDE, left : left + SIDE] for picture, top, left in pairs])


def _turn_batch(batch: Examples) -> Examples:
    """Each batch mirrored, turned and made a negative at random: what is hidden stays hidden."""
    mirror, turns, negative = torch.randint(8, (3,)).tolist()
    x, y = (torch.rot90(values.flip(2) if mirror % 2 else values, turns % 4, (1, 2)) for values in batch)
    return Examples(x=1 - x if negative % 2 else x, y=y)


# --- Scores ---


def _soft_overlap(probability: Tensor, y: Tensor) -> Tensor:
    """The intersection over union of a batch, with probabilities for pixels that are found, so that it has a slope."""
    shared = (probability * y).sum()
    return shared / (probability.sum() + y.sum() - shared)


def object_by_threshold(pictures: Tensor) -> Tensor:
    """The smaller of the two groups of pixels that Otsu's threshold makes: the object, as far as brightness tells."""
    bright = pictures >= otsu_threshold(pictures)[:, None, None]
    return bright == (bright.double().mean((1, 2), keepdim=True) <= 0.5)


# --- What is shown ---


def _scene_figure(scenes: Examples, shown: int = 4) -> Callable[[nn.Module], Figure]:
    def picture(system: nn.Module) -> Figure:
        weight, first = next(system.parameters()), scenes[:shown]
        with evaluating(system):
            probability = system(first.x[:, None].to(weight)).softmax(1)[:, 1].cpu().float()
        score = intersection_over_union(probability > 0.5, first.y == 1)
        wrong, by_threshold = (probability > 0.5) != (first.y == 1), object_by_threshold(first.x)
        columns = (first.x, first.y.float(), probability, wrong.float(), by_threshold.float())
        marks = [
            Image((pixels[k] * 1000).round().div(1000), label)  # five in a row, as wide figures have them
            for k, iou in enumerate(score.tolist())
            for pixels, label in zip(
                columns, ("given", "truth", f"found, {iou:.2f}", "wrong", "threshold"), strict=True
            )
        ]
        note = "Test scenes, what is found with its intersection over union, and what a threshold finds."
        return Figure("Hidden objects", marks=marks, note=note)

    return picture


def _object_positions(system: nn.Module, examples: Examples) -> dict[str, Tensor]:
    """How much of each scene the object covers, and where its middle is, in pixels from the upper left corner."""
    found = (system(examples.x[:, None]).argmax(1) == 1).double()  # (batch, height, width)
    covered = found.sum((1, 2))
    places = {"pixels": covered.long()}
    for name, axis, n in (("row", 2, found.shape[1]), ("column", 1, found.shape[2])):
        along = found.sum(axis) @ torch.arange(n, dtype=found.dtype, device=found.device)
        places[name] = along / covered  # none where nothing is found: 0 / 0
    return places
