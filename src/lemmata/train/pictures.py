"""Pictures of what a classifier has learnt, for any recipe: a map of the plane, examples, mistakes and kernels."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lemmata.data.examples import Examples
from lemmata.figure import Figure, Heat, Image, Points

__all__ = ["confusion_matrix", "decision_map", "filter_pictures", "labelled_pictures"]

CELLS = 60  # along each axis: finer than the points lie, coarse enough to draw after every evaluation
SHOWN = 300  # points of each class; more would cover the map
KERNELS, SIDE = 16, 28  # kernels that are shown, and the pixels to which each is enlarged, about as large as a picture


def decision_map(
    probability: Callable[[Tensor], Tensor],
    examples: Examples,
    classes: Sequence[str],
    title: str = "What is learnt of the plane",
) -> Figure:
    """How sure a classifier is, all over the plane of its examples, which lie on top by class.

    `probability(x)` gives (points, classes). Two classes are shown by the difference of their probabilities, which
    changes its sign where the decision does; more by the probability of the likeliest, which falls along every border.

    >>> examples = Examples(x=torch.tensor([[0.0, 0.0], [2.0, 1.0]]), y=torch.tensor([0, 1]))
    >>> figure = decision_map(lambda x: torch.stack([1 - x[:, 0], x[:, 0]], 1), examples, ["left", "right"])
    >>> [type(mark).__name__ for mark in figure.marks], [len(figure.marks[0].x), figure.marks[1].label]
    (['Heat', 'Points', 'Points'], [60, 'left'])
    """
    x = examples.x.detach().cpu()
    if x.ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"examples must be points in the plane, got x of shape {tuple(x.shape)}")
    low, high = x.amin(0), x.amax(0)
    margin = 0.1 * (high - low).clamp(min=1e-6)
    across, up = (torch.linspace(float(a), float(b), CELLS) for a, b in zip(low - margin, high + margin, strict=True))
    plane = torch.cartesian_prod(up, across).flip(1)  # rows of the map are values of the second coordinate
    shares = probability(plane.to(examples.x)).detach().cpu()
    two = shares.shape[1] == 2
    values = shares[:, 1] - shares[:, 0] if two else shares.amax(1)
    label = f"{classes[1]} − {classes[0]}" if two else "probability of the likeliest"
    rounded = [[round(value, 3) for value in row] for row in values.reshape(CELLS, CELLS).tolist()]
    points = [_class_points(x[examples.y.cpu() == k][:SHOWN], name) for k, name in enumerate(classes)]
    return Figure(title, "x₁", "x₂", [Heat(rounded, x=across.tolist(), y=up.tolist(), label=label), *points])


def _class_points(x: Tensor, label: str) -> Points:
    return Points(x[:, 0].tolist(), x[:, 1].tolist(), label)


def labelled_pictures(
    pictures: Tensor,
    predicted: Tensor,
    truth: Tensor,
    classes: Sequence[str],
    title: str = "Predictions",
    note: str = "",
) -> Figure:
    """Grey pictures, each with what it was taken for, and what it is where that differs.

    >>> figure = labelled_pictures(torch.zeros(2, 8, 8), torch.tensor([3, 5]), torch.tensor([3, 9]), "0123456789")
    >>> [image.label for image in figure.marks]
    ['3', '5, is 9']
    """
    pixels = pictures.detach().cpu().double().clamp(0, 1).mul(1000).round().div(1000).tolist()  # what an eye can tell
    marks = [
        Image(grey, str(classes[p] if p == t else f"{classes[p]}, is {classes[t]}"))
        for grey, p, t in zip(pixels, predicted.tolist(), truth.tolist(), strict=True)
    ]
    return Figure(title, marks=marks, note=note)


def confusion_matrix(predicted: Tensor, truth: Tensor, classes: Sequence[str]) -> Heat:
    """Of the examples of each class, a row, the percentage that is taken for each other class, a column.

    What is right is left out: beside it nobody would see the mistakes of a good classifier.

    >>> heat = confusion_matrix(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 0, 1, 1]), ["cat", "dog"])
    >>> heat.rows, heat.values
    (['cat', 'dog'], [[None, 50.0], [0.0, None]])
    """
    k = len(classes)
    pairs = torch.bincount(truth.detach().cpu() * k + predicted.detach().cpu(), minlength=k * k).reshape(k, k)
    percent = 100 * pairs.double() / pairs.sum(1, keepdim=True).clamp(min=1)  # a class without examples has zeros
    percent = percent.mul(10).round().div(10).fill_diagonal_(float("nan"))
    return Heat(percent, label="per cent", columns=list(classes), rows=list(classes))


def filter_pictures(weight: Tensor) -> list[Image]:
    """The kernels of a convolution's first input channel, each from its lowest weight (black) to its highest (white).

    >>> [image.pixels[0][::14] for image in filter_pictures(torch.tensor([[[[-1.0, 3.0]]]]))]
    [[0.0, 1.0]]
    """
    if weight.ndim != 4:
        raise ValueError(f"weight must be (outputs, inputs, height, width), got shape {tuple(weight.shape)}")
    images = []
    for number, kernel in enumerate(weight.detach().cpu().double()[:KERNELS, 0], start=1):
        low, high = kernel.min(), kernel.max()
        grey = ((kernel - low) / (high - low).clamp(min=1e-12)).mul(1000).round().div(1000)
        times = max(1, SIDE // max(grey.shape))
        images.append(Image(grey.repeat_interleave(times, 0).repeat_interleave(times, 1), f"kernel {number}"))
    return images
