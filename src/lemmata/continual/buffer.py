"""A few examples of what was learnt: which of them are kept."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system

__all__ = ["Reservoir", "choose_examples"]

CHOICES = ("random", "balanced", "herding", "k_center")


@system("choose_examples", title="Choice of a coreset", kind="function")
def choose_examples(
    x: Float[Tensor, "n ..."],
    y: Int[Tensor, " n"],
    size: int,
    choice: str = "balanced",
    generator: torch.Generator | None = None,
) -> Int[Tensor, " kept"]:
    r"""Positions of a small subset: drawn at `random`, as many of each class (`balanced`), by `herding` or `k_center`.

    $$ \text{herding: } i_k = \arg\min_i \Big\| \mu - \tfrac1k \Big(x_i + \sum_{j<k} x_{i_j}\Big)\Big\|, \qquad
       \text{k-center: } i_k = \arg\max_i \min_{j<k} \|x_i - x_{i_j}\| $$

    Herding follows the mean of each class, k-center covers all of them: from the example next to the mean, always the
    one that is farthest from those chosen. `x` are the inputs or any features of them.

    Shapes:
        x: (n, ...), y: (n,)    returns: (min(size, n),), in the order of the choice

    Source: Welling, Herding dynamical weights to learn (2009); Rebuffi et al., iCaRL (2017); Sener and Savarese, Active
        learning for convolutional neural networks (2018).

    >>> x = torch.tensor([[0.0], [0.1], [5.0], [9.0]])
    >>> choose_examples(x, torch.zeros(4, dtype=torch.long), 3, "k_center").tolist()
    [2, 0, 3]
    """
    validate.count("size", size)
    validate.one_of("choice", choice, CHOICES)
    points = validate.floating("x", x).flatten(1)
    size = min(size, len(points))
    if choice == "random":
        return torch.randperm(len(points), generator=generator, device=_device_of(generator))[:size].to(x.device)
    if choice == "k_center":
        return _k_center(points, size)
    kept = []
    for members, share in zip(_by_class(y), _class_shares(y, size), strict=True):
        if choice == "herding":
            kept.append(members[_herding_order(points[members], share)])
        else:
            order = torch.randperm(len(members), generator=generator, device=_device_of(generator)).to(x.device)
            kept.append(members[order[:share]])
    return torch.cat(kept)


def _device_of(generator: torch.Generator | None) -> torch.device:
    return torch.device("cpu") if generator is None else generator.device


def _by_class(y: Tensor) -> list[Tensor]:
    return [(y == k).nonzero()[:, 0] for k in y.unique()]


def _class_shares(y: Tensor, size: int) -> list[int]:
    """How many of each class: as equal as the classes allow."""
    counts = [len(members) for members in _by_class(y)]
    shares = [0] * len(counts)
    while sum(shares) < size:
        open_ = [k for k, count in enumerate(counts) if shares[k] < count]
        fewest = min(open_, key=lambda k: shares[k])
        shares[fewest] += 1
    return shares


def _herding_order(points: Tensor, size: int) -> Tensor:
    mean, total = points.mean(0), torch.zeros_like(points[0])
    free = torch.ones(len(points), dtype=torch.bool, device=points.device)
    chosen = []
    for k in range(1, size + 1):
        far = torch.linalg.vector_norm(mean - (points + total) / k, dim=1)  # (n,)
        best = far.masked_fill(~free, float("inf")).argmin()
        chosen.append(best)
        free[best] = False
        total = total + points[best]
    return torch.stack(chosen) if chosen else torch.zeros(0, dtype=torch.long, device=points.device)


def _k_center(points: Tensor, size: int) -> Tensor:
    first = torch.linalg.vector_norm(points - points.mean(0), dim=1).argmin()
    chosen, near = [first], torch.full_like(points[:, 0], float("inf"))
    for _ in range(size - 1):
        near = torch.minimum(near, torch.linalg.vector_norm(points - points[chosen[-1]], dim=1))
        near[chosen[-1]] = -1.0  # among equal points each is chosen once
        chosen.append(near.argmax())
    return torch.stack(chosen)


@system("reservoir", title="Reservoir of a stream", kind="estimator")
class Reservoir:
    r"""A sample of fixed size from a stream of unknown length: at any moment all that passed are equally likely in it.

    $$ P(\text{example } i \text{ is kept after } N) = \min(1, \text{size} / N) $$

    Example N takes a random slot with probability size / N, one example after the other: a batch that were let in as a
    whole would not do.

    Source: Vitter, Random sampling with a reservoir (1985).

    >>> reservoir = Reservoir(2, torch.Generator().manual_seed(0))
    >>> reservoir.add(Examples(x=torch.arange(5.0)))
    >>> len(reservoir.examples), reservoir.seen
    (2, 5)
    """

    def __init__(self, size: int, generator: torch.Generator | None = None) -> None:
        self.size, self.generator = validate.count("size", size), generator
        self.examples: Examples | None = None
        self.seen = 0

    def add(self, batch: Examples) -> None:
        """Examples of the stream, one after the other."""
        sources: dict[int, int] = {}  # slot -> row of the batch
        start = 0 if self.examples is None else len(self.examples)
        filled = start
        for row in range(len(batch)):
            self.seen += 1
            if filled < self.size:
                sources[filled] = row
                filled += 1
                continue
            slot = int(torch.randint(self.seen, (), generator=self.generator))
            if slot < self.size:
                sources[slot] = row
        kept = {}
        for name, column in batch.columns.items():
            held = column[:0] if self.examples is None else self.examples.columns[name]
            held = torch.cat([held, column.new_empty(filled - start, *column.shape[1:])])
            slots = torch.tensor(list(sources), dtype=torch.long, device=column.device)
            held[slots] = column[torch.tensor(list(sources.values()), dtype=torch.long, device=column.device)]
            kept[name] = held
        self.examples = Examples(**kept)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "columns": {} if self.examples is None else dict(self.examples.columns)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seen = state["seen"]
        self.examples = Examples(**state["columns"]) if state["columns"] else None
