"""Streams of tasks: one data set as several that arrive one after the other, and what is known when they are judged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.marks import system

__all__ = ["Task", "TaskStream", "permuted_tasks", "rotated_tasks", "split_tasks"]

SCENARIOS = ("task", "domain", "class")


@dataclass(frozen=True)
class Task:
    """What is learnt at one time: its examples, with columns x and y, and the classes that are in it."""

    name: str
    train: Examples
    test: Examples
    classes: tuple[int, ...]


@system("task_stream", title="Stream of tasks", kind="function")
@dataclass(frozen=True)
class TaskStream(Sequence[Task]):
    r"""Tasks in the order of their arrival, and the scenario by which they are judged.

    $$ \mathcal D_1, \mathcal D_2, \dots, \mathcal D_T, \qquad p_t(x, y) \ne p_{t+1}(x, y) $$

    In the scenario `task` a model is told which task an example is of, and answers among its classes alone; in `domain`
    all tasks have the same classes, and in `class` it must answer among all classes of the stream, unaided.

    Claims: continual.setting
    Source: van de Ven and Tolias, Three scenarios for continual learning (2019).

    >>> from lemmata.data import load
    >>> stream = split_tasks(load("digits"), tasks=5)
    >>> len(stream), stream[1].classes, stream.scenario, stream.outputs
    (5, (2, 3), 'class', 10)
    """

    tasks: tuple[Task, ...]
    scenario: str
    outputs: int

    def __post_init__(self) -> None:
        validate.one_of("scenario", self.scenario, SCENARIOS)
        if not self.tasks:
            raise ValueError("tasks must be one or more, got none")
        for task in self.tasks:
            if not len(task.train) or not len(task.test):
                raise ValueError(f"{task.name} must have examples to learn from and to be judged by, got none")
            if max(task.classes) >= self.outputs:
                raise ValueError(f"outputs must be more than the class {max(task.classes)}, got {self.outputs}")
        if self.scenario == "domain" and len({task.classes for task in self.tasks}) > 1:
            raise ValueError('tasks of the scenario "domain" must have the same classes: use "task" or "class"')

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, which: int) -> Task:  # type: ignore[override]
        return self.tasks[which]

    def visible(self, logits: Float[Tensor, "batch classes"], task: int) -> Float[Tensor, "batch classes"]:
        """The logits of the classes among which an example of a task is to be found; the others are minus infinity."""
        if logits.shape[1] != self.outputs:
            raise ValueError(f"the model must have {self.outputs} outputs, got {logits.shape[1]}")
        if self.scenario != "task":
            return logits
        shut = torch.ones(self.outputs, dtype=torch.bool, device=logits.device)
        shut[list(self.tasks[task].classes)] = False
        return logits.masked_fill(shut, float("-inf"))

    def joint(self) -> Examples:
        """The examples of all tasks together, with a column `task`: what training on everything at once learns from."""
        numbers = [torch.full((len(task.train),), k) for k, task in enumerate(self.tasks)]
        return Examples(
            x=torch.cat([task.train.x for task in self.tasks]),
            y=torch.cat([task.train.y for task in self.tasks]),
            task=torch.cat(numbers),
        )

    def to(self, device: torch.device) -> "TaskStream":
        """The same stream with its examples on a device, where they stay."""
        moved = (Task(t.name, t.train.to(device), t.test.to(device), t.classes) for t in self.tasks)
        return TaskStream(tuple(moved), self.scenario, self.outputs)


@system("split_tasks", title="Split tasks", kind="function")
def split_tasks(
    data: Dataset, tasks: int = 5, scenario: str = "class", groups: Sequence[Sequence[int]] = ()
) -> TaskStream:
    """Some classes at a time, in their order; or those of each of the `groups`.

    Claims: continual.setting
    Source: Zenke, Poole and Ganguli, Continual learning through synaptic intelligence (2017).

    >>> from lemmata.data import load
    >>> [task.classes for task in split_tasks(load("digits"), groups=[[0, 7], [3]], scenario="task")]
    [(0, 7), (3,)]
    """
    outputs = _count_classes(data)
    if not groups:
        validate.count("tasks", tasks, most=outputs)
        edges = [k * outputs // tasks for k in range(tasks + 1)]
        groups = [range(first, end) for first, end in pairwise(edges)]
    found = []
    for group in groups:
        classes = tuple(sorted(group))
        if not classes or len(set(classes)) < len(classes) or not 0 <= classes[0] <= classes[-1] < outputs:
            raise ValueError(f"groups must hold different classes from 0 to {outputs - 1}, got {list(group)}")
        members = torch.tensor(classes)
        train, test = (part[torch.isin(part.y, members)] for part in (data.train, data.test))
        found.append(Task(f"classes {', '.join(map(str, classes))}", train, test, classes))
    return TaskStream(tuple(found), scenario, outputs)


@system("permuted_tasks", title="Permuted tasks", kind="function")
def permuted_tasks(data: Dataset, tasks: int = 3, scenario: str = "domain", seed: int = 0) -> TaskStream:
    """The same examples with their features in another order in each task, the first as they are; x becomes flat.

    Claims: continual.forgetting
    Source: Goodfellow et al., An empirical investigation of catastrophic forgetting (2013).

    >>> from lemmata.data import load
    >>> stream = permuted_tasks(load("digits"), tasks=2)
    >>> stream[0].train.x.shape[1:], bool((stream[0].train.x.sum(1) - stream[1].train.x.sum(1)).abs().max() < 1e-4)
    (torch.Size([64]), True)
    """
    validate.count("tasks", tasks)
    random = torch.Generator().manual_seed(seed)
    features = data.train.x[0].numel()
    orders = [torch.arange(features), *(torch.randperm(features, generator=random) for _ in range(tasks - 1))]
    outputs = _count_classes(data)
    found = []
    for k, order in enumerate(orders):
        train, test = (Examples(x=part.x.flatten(1)[:, order], y=part.y) for part in (data.train, data.test))
        found.append(Task(f"order {k + 1}", train, test, tuple(range(outputs))))
    return TaskStream(tuple(found), scenario, outputs)


@system("rotated_tasks", title="Rotated tasks", kind="function")
def rotated_tasks(data: Dataset, degrees: Sequence[float] = (0.0, 45.0, 90.0)) -> TaskStream:
    """The same images, turned by another angle in each task, by bilinear interpolation; images are (n, height, width).

    Source: Lopez-Paz and Ranzato, Gradient episodic memory for continual learning (2017).

    >>> from lemmata.data import load
    >>> stream = rotated_tasks(load("digits"), [0.0, 90.0])
    >>> turned = stream[0].train.x[0].rot90()
    >>> torch.allclose(turned, stream[1].train.x[0], atol=1e-5)
    True
    """
    outputs = _count_classes(data)
    if data.train.x.ndim != 3:
        raise ValueError(f"data must hold images (n, height, width), got {tuple(data.train.x.shape)}")
    found = []
    for angle in degrees:
        validate.number("degrees", angle)
        train, test = (Examples(x=_rotated_images(part.x, angle), y=part.y) for part in (data.train, data.test))
        found.append(Task(f"{angle:g} degrees", train, test, tuple(range(outputs))))
    return TaskStream(tuple(found), "domain", outputs)


def _rotated_images(images: Float[Tensor, "n height width"], degrees: float) -> Float[Tensor, "n height width"]:
    angle = torch.deg2rad(torch.tensor(float(degrees)))
    zero = torch.zeros(())
    matrix = torch.stack([
        torch.stack([angle.cos(), -angle.sin(), zero]),
        torch.stack([angle.sin(), angle.cos(), zero]),
    ])  # fmt: skip
    size = (len(images), 1, *images.shape[1:])
    grid = torch.nn.functional.affine_grid(matrix.expand(len(images), 2, 3).to(images), list(size), align_corners=False)
    return torch.nn.functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


def _count_classes(data: Dataset) -> int:
    for name, part in (("train", data.train), ("test", data.test)):
        if part.y.is_floating_point():
            raise TypeError(f"data.{name}.y must hold classes as integers, got {part.y.dtype}")
    return len(data.classes) or int(data.train.y.max()) + 1
