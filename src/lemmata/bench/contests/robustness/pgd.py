"""Projected gradient ascent on the CPU or a GPU, all from the images themselves, so that nothing is drawn.

torchattacks asks for an old requests, which it does not need here: `pip install --no-deps torchattacks`.
"""

from collections.abc import Callable

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.attacked_digits import (
    Attacked,
    Found,
    attacked_digits,
    bare_passes,
    projected_ascent,
    wrong_answers,
)
from lemmata.robustness.projected_gradient import pgd

COUNT, STEPS, EPS = 300, 20, 0.1
LARGER = {"digits": 1, "enlarged": 4}
STEP = 2.5 * EPS / STEPS
ROUNDING = 1e-6


@entry(
    "pgd",
    title="Projected gradient ascent",
    measures="20 steps in the maximum norm, and a last look at what they found",
    cases={
        "digits": "300 images of 8 x 8 pixels, a network of two convolutions, float32",
        "enlarged": "300 images of 32 x 32 pixels, a network of two convolutions, float32",
    },
    targets={"torchattacks": 1.0, "foolbox": 1.0, "torch, a plain loop": 1.2},
)
def digits(case: str, device: str) -> Attacked:
    """A classifier of digits."""
    return attacked_digits(COUNT, device, LARGER[case])


@ours("lemmata")
def by_pgd(task: Attacked) -> Callable[[], Found]:
    """Ours, which also asks about the first images and about what it gives back."""

    def run() -> Found:
        found = pgd(task.network, task.x, task.y, EPS, steps=STEPS, step=STEP, random_start=False)
        return Found(task, found.examples)

    return run


@peer("torchattacks", needs="torchattacks")
def by_torchattacks(task: Attacked) -> Callable[[], Found]:
    """The same steps."""
    import torchattacks

    attack = torchattacks.PGD(task.network, EPS, STEP, STEPS, random_start=False)
    return lambda: Found(task, attack(task.x, task.y))


@peer("foolbox", needs="foolbox")
def by_foolbox(task: Attacked) -> Callable[[], Found]:
    """The same steps."""
    import foolbox

    model = foolbox.PyTorchModel(task.network, bounds=(0, 1), device=task.x.device)
    attack = foolbox.attacks.LinfPGD(abs_stepsize=STEP, steps=STEPS, random_start=False)
    return lambda: Found(task, attack.run(model, task.x, task.y, epsilon=EPS))


@peer("torch, a plain loop")
def by_plain_loop(task: Attacked) -> Callable[[], Found]:
    """The same steps, and nothing else."""
    return lambda: Found(task, projected_ascent(task.network, task.x, task.y, EPS, STEP, STEPS))


@limit("the bare passes forward and backward")
def passes_alone(task: Attacked) -> Callable[[], None]:
    """One for each step."""
    return bare_passes(task.network, task.x, task.y, STEPS)


@agreement(within=0.02)
def in_numbers(found: Found) -> dict[str, float]:
    """The fraction answered wrongly, which is larger where the last wrong answer is kept; nobody leaves the ball."""
    farthest = float((found.examples - found.task.x).abs().max())
    return {
        "answered wrongly": float(wrong_answers(found).double().mean()),
        "outside the ball": float(farthest > EPS + ROUNDING),
    }
