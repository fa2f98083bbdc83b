"""Carlini and Wagner's attack, at a mean norm that is not larger than the published algorithm's.

That is Adam on the inverse of tanh, and a binary search for the weight of the penalty, as many steps for everybody;
its mean norm is computed, without a clock, when the problem is made. Whose examples are longer by more than a
thousandth disagrees. torchattacks has no search for the weight, and takes no part.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.attacked_digits import (
    Attacked,
    Found,
    attacked_digits,
    bare_passes,
    beside_published,
    mean_norm,
)
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.penalty_search import carlini_wagner, from_box, into_box

COUNT, SEARCHES, STEPS, LR, C = 300, 5, 50, 0.1, 0.1


@entry(
    "carlini_wagner",
    title="Carlini and Wagner's attack",
    measures="the shortest perturbations in the 2-norm, 5 searches of 50 steps at most",
    cases={"digits": "300 images of 8 x 8 pixels, a network of two convolutions, float32"},
    targets={"foolbox": 0.77, "torch, as published": 0.77},
)
def digits(case: str, device: str) -> Attacked:
    """A classifier of digits, and how long the published algorithm's examples are."""
    del case
    task = attacked_digits(COUNT, device)
    return task._replace(mean_norm=mean_norm(Found(task, _published_search(task))))


def _published_search(task: Attacked) -> Tensor:
    """The weight grows tenfold until an example succeeds, and then lies halfway between failure and success."""
    x, y = task.x, task.y
    c, low, high = (x.new_full((len(x),), value) for value in (C, 0.0, float("inf")))
    best, least = x.clone(), torch.full_like(c, float("inf"))
    for _ in range(SEARCHES):
        w = from_box(x, shrink=1e-6).requires_grad_()
        optimizer, succeeded = torch.optim.Adam([w], LR), torch.zeros_like(y, dtype=torch.bool)
        for _ in range(STEPS):
            images = into_box(w)
            margin = margin_goal(task.network(images), y)  # (count,)
            square = (images - x).flatten(1).square().sum(1)
            optimizer.zero_grad()
            (square + c * (-margin).clamp(min=0)).sum().backward()
            optimizer.step()
            wrong = margin.detach() > 0
            better = wrong & (square.detach() < least)
            best[better], least[better] = images.detach()[better], square.detach()[better]
            succeeded |= wrong
        high, low = torch.where(succeeded, c, high), torch.where(succeeded, low, c)
        c = torch.where(high.isinf(), 10 * c, (low + high) / 2)
    return best


@ours("lemmata")
def by_search(task: Attacked) -> Callable[[], Found]:
    """Ours, with what it does by default."""
    return lambda: Found(task, carlini_wagner(task.network, task.x, task.y, searches=SEARCHES, steps=STEPS).examples)


@peer("foolbox", needs="foolbox")
def by_foolbox(task: Attacked) -> Callable[[], Found]:
    """The same searches and steps; for what it failed at it gives black images, which count as no success."""
    import foolbox

    model = foolbox.PyTorchModel(task.network, bounds=(0, 1), device=task.x.device)
    attack = foolbox.attacks.L2CarliniWagnerAttack(SEARCHES, STEPS, LR, initial_const=C)
    return lambda: Found(task, attack.run(model, task.x, task.y))


@peer("torch, as published")
def by_plain_search(task: Attacked) -> Callable[[], Found]:
    """The algorithm without a package."""
    return lambda: Found(task, _published_search(task))


@limit("the bare passes forward and backward of one search")
def passes_alone(task: Attacked) -> Callable[[], None]:
    """As many as one search may have; whoever searches for a weight has more of them."""
    return bare_passes(task.network, task.x, task.y, STEPS)


@agreement(within=1e-3)
def in_numbers(found: Found) -> dict[str, float]:
    """All must succeed alike, and nobody with longer perturbations."""
    return beside_published(found)
