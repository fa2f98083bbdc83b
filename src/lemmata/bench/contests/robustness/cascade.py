"""Robust accuracy by a cascade of attacks, at equal accuracy: ours beside torchattacks' AutoAttack.

Both as they come: ours has 100 steps of each ascent and 1,000 random squares, theirs 10 steps, FAB besides, and 5,000
squares. Theirs asks for an old requests, which it does not need here: `pip install --no-deps torchattacks`.
"""

import math
from collections.abc import Callable

import torch

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.attacked_digits import Attacked, Found, attacked_digits, bare_passes, wrong_answers
from lemmata.robustness.adaptive_gradient import apgd
from lemmata.robustness.cascade import evaluate
from lemmata.robustness.goals import dlr_goal
from lemmata.robustness.square_search import square_attack

COUNT, CLASSES, EPS = 200, 10, 0.1
STEPS, QUERIES = 100, 1000  # of ours
FEWEST = 10  # steps of theirs


@entry(
    "cascade",
    title="Robust accuracy by a cascade of attacks",
    measures="which images withstand APGD, APGD towards each class, and random squares",
    cases={"digits": "200 images of 8 x 8 pixels, a network of two convolutions, float32"},
    targets={"torchattacks": 0.5, "every attack on every image": 1.0},
)
def digits(case: str, device: str) -> Attacked:
    """A classifier of digits."""
    del case
    return attacked_digits(COUNT, device)


@ours("lemmata")
def by_cascade(task: Attacked) -> Callable[[], Found]:
    """Only what an attack could not break goes on to the next."""

    def run() -> Found:
        words = {"steps": STEPS, "queries": QUERIES, "batch_size": COUNT, "examine": False}
        return Found(task, evaluate(task.network, (task.x, task.y), EPS, **words).examples)

    return run


@peer("torchattacks", needs="torchattacks")
def by_autoattack(task: Attacked) -> Callable[[], Found]:
    """As it comes."""
    import torchattacks

    attack = torchattacks.AutoAttack(task.network, "Linf", EPS, n_classes=CLASSES, seed=0)
    return lambda: Found(task, attack(task.x, task.y))


@peer("every attack on every image")
def one_after_another(task: Attacked) -> Callable[[], Found]:
    """The same attacks without a cascade, as one calls them by hand: what handing on only the rest saves."""

    def run() -> Found:
        with torch.no_grad():
            ranked = task.network(task.x).argsort(dim=1, descending=True)  # (count, classes)
        rest = (task.network, task.x, task.y, EPS)
        attacks = [apgd(*rest, steps=STEPS)]
        attacks += [apgd(*rest, math.inf, targeted=c, steps=STEPS, goal=dlr_goal) for c in ranked[:, 1:].unbind(1)]
        examples = task.x.clone()
        for found in (*attacks, square_attack(*rest, queries=QUERIES)):
            examples[found.success] = found.examples[found.success]
        return Found(task, examples)

    return run


@limit("the bare passes of 10 steps and 1,000 squares on the images that withstand them")
def passes_alone(task: Attacked) -> Callable[[], None]:
    """The fewest of both cascades; which images withstand is found before the clock runs."""
    robust = ~wrong_answers(by_cascade(task)())
    return bare_passes(task.network, task.x[robust], task.y[robust], CLASSES * min(STEPS, FEWEST), QUERIES)


@agreement(within=0.02)
def in_numbers(found: Found) -> dict[str, float]:
    """The accuracy that is left; an example outside the ball is none."""
    inside = (found.examples - found.task.x).abs().flatten(1).amax(1) <= EPS + 1e-6
    return {"robust accuracy": 1 - float((wrong_answers(found) & inside).double().mean())}
