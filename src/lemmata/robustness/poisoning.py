r"""Poisoned training data: wrong labels, and backdoors that a trigger opens."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system

__all__ = ["PoisonedExamples", "Trigger", "flip_labels", "plant_backdoor"]


@dataclass(frozen=True)
class PoisonedExamples:
    """A training set that somebody has tampered with, and where."""

    examples: Examples
    """All examples, in their order."""
    poisoned: Bool[Tensor, "examples"]
    """Which of them are not as they were."""


@system("flip_labels", title="Label flipping", kind="function")
def flip_labels(
    examples: Examples, part: int | float, classes: int, generator: torch.Generator | None = None
) -> PoisonedExamples:
    r"""A part of the examples, drawn at random, with another class than their own, each of them as likely.

    Who learns all labels by heart keeps its training accuracy, and pays on the test set.

    Shapes:
        examples.x: (examples, ...), examples.y: (examples,)    returns: PoisonedExamples

    Claims: attack.poisoning

    >>> import torch
    >>> found = flip_labels(Examples(x=torch.zeros(8, 2), y=torch.arange(8) % 4), 0.25, classes=4)
    >>> int(found.poisoned.sum()), int((found.examples.y != torch.arange(8) % 4).sum())
    (2, 2)
    """
    validate.count("classes", classes, least=2)
    _check_classes(examples.y, classes)
    rows = _drawn_rows(torch.arange(len(examples)), part, len(examples), generator)
    place = None if generator is None else generator.device
    shift = torch.randint(1, classes, (len(rows),), generator=generator, device=place).to(examples.y)
    y = examples.y.clone()
    y[rows] = (y[rows] + shift) % classes
    return PoisonedExamples(Examples(x=examples.x, y=y), _rows_as_mask(rows, examples))


@system("trigger", title="Backdoor trigger", kind="function")
@dataclass(frozen=True)
class Trigger:
    r"""A square of one value at the lower right corner of an image, $x'=m\odot v+(1-m)\odot x$.

    Claims: attack.poisoning

    >>> import torch
    >>> trigger = Trigger(size=2)
    >>> trigger.stamp(torch.zeros(1, 3, 3))
    tensor([[[0., 0., 0.],
             [0., 1., 1.],
             [0., 1., 1.]]])
    >>> trigger.present(torch.zeros(1, 3, 3)), trigger.present(trigger.stamp(torch.zeros(1, 3, 3)))
    (tensor([False]), tensor([True]))
    """

    size: int = 2
    """Pixels along each side."""
    value: int | float = 1.0
    """What they are set to."""

    def __post_init__(self) -> None:
        validate.count("size", self.size)
        validate.finite_number("value", self.value)

    def stamp(self, x: Float[Tensor, "batch ... height width"]) -> Float[Tensor, "batch ... height width"]:
        """The images with the trigger; those given stay as they are."""
        self._check_images(x)
        stamped = x.clone()
        stamped[..., -self.size :, -self.size :] = self.value
        return stamped

    def present(self, x: Float[Tensor, "batch ... height width"]) -> Bool[Tensor, "batch"]:
        """Which images show it already: clean accuracy must not be measured on these."""
        self._check_images(x)
        return (x[..., -self.size :, -self.size :] == self.value).flatten(1).all(1)

    def _check_images(self, x: Tensor) -> None:
        if x.ndim < 3 or min(x.shape[-2:]) < self.size:
            wanted = f"(batch, ..., height, width) of at least {self.size} x {self.size} pixels"
            raise ValueError(f"x must be images {wanted}, got shape {tuple(x.shape)}")


@system("plant_backdoor", title="Backdoor poisoning", kind="function")
def plant_backdoor(
    examples: Examples,
    target: int,
    part: int | float = 0.05,
    trigger: Trigger | None = None,
    generator: torch.Generator | None = None,
) -> PoisonedExamples:
    r"""A part of the examples, of other classes than the target, with the trigger and the label of the target.

    A network that learns from them is right on clean images and answers `target` wherever the trigger is: its accuracy
    shows nothing. The part is of all examples.

    Shapes:
        examples.x: (examples, ..., height, width), examples.y: (examples,)    returns: PoisonedExamples

    Claims: attack.poisoning
    Source: Gu et al. 2017 (BadNets).

    >>> import torch
    >>> found = plant_backdoor(Examples(x=torch.zeros(8, 3, 3), y=torch.arange(8) % 4), target=0, part=0.25)
    >>> int(found.poisoned.sum()), found.examples.y[found.poisoned].tolist()
    (2, [0, 0])
    """
    trigger = trigger or Trigger()
    validate.count("target", target, least=0)
    others = (examples.y != target).nonzero()[:, 0]
    rows = _drawn_rows(others.cpu(), part, len(examples), generator)
    x, y = examples.x.clone(), examples.y.clone()
    x[rows], y[rows] = trigger.stamp(x[rows]), target
    return PoisonedExamples(Examples(x=x, y=y), _rows_as_mask(rows, examples))


def _drawn_rows(
    candidates: Int[Tensor, "candidates"], part: int | float, of: int, generator: torch.Generator | None
) -> Int[Tensor, "rows"]:
    """So many of the candidates as are this part of all examples."""
    validate.fraction("part", part)
    wanted = round(part * of)
    if wanted > len(candidates):
        raise ValueError(f"part={part} asks for {wanted} examples of other classes, and there are {len(candidates)}")
    place = None if generator is None else generator.device
    order = torch.randperm(len(candidates), generator=generator, device=place).to(candidates.device)
    return candidates[order[:wanted]]


def _rows_as_mask(rows: Int[Tensor, "rows"], examples: Examples) -> Bool[Tensor, "examples"]:
    mask = torch.zeros(len(examples), dtype=torch.bool)
    mask[rows] = True
    return mask.to(examples.y.device)


def _check_classes(y: Tensor, classes: int) -> None:
    if y.is_floating_point() or y.ndim != 1 or int(y.min()) < 0 or int(y.max()) >= classes:
        raise ValueError(f"y must hold classes from 0 to {classes - 1}, got {y.dtype} of shape {tuple(y.shape)}")
