"""DeepFool in the 2-norm, at a mean norm that is not larger than the published algorithm's.

That is computed, without a clock, when the problem is made. Examples that are longer by more than two per cent
disagree, whoever found them. torchattacks asks for an old requests, which it does not need here:
`pip install --no-deps torchattacks`.
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
from lemmata.robustness.nearest_boundary import deepfool

COUNT, CLASSES, STEPS, OVERSHOOT = 100, 10, 50, 0.02
CONTRAST = 0.5  # far from the ends of the range, where torchattacks is stuck with pixels that should leave it


@entry(
    "deepfool",
    title="DeepFool",
    measures="perturbations in the 2-norm that change the answer, 50 steps at most",
    cases={"digits": "100 images of 8 x 8 pixels, half their contrast, a network of two convolutions, float32"},
    targets={"foolbox": 1.0, "torchattacks": 0.2, "torch, as published": 0.2},
)
def digits(case: str, device: str) -> Attacked:
    """A classifier of digits, and how long the published algorithm's examples are."""
    del case
    task = attacked_digits(COUNT, device, contrast=CONTRAST)
    return task._replace(mean_norm=mean_norm(Found(task, _one_by_one(task))))


def _one_by_one(task: Attacked) -> Tensor:
    """Each image by itself: to the nearest boundary of the linearised classifier until the answer changes."""
    return torch.cat([_across_boundary(task, x[None], int(y)) for x, y in zip(task.x, task.y, strict=True)])


def _across_boundary(task: Attacked, x: Tensor, own: int) -> Tensor:
    image, total = x, torch.zeros_like(x)
    others = [c for c in range(CLASSES) if c != own]
    for _ in range(STEPS):
        image = image.detach().requires_grad_()
        logits = task.network(image)[0]  # (classes,)
        if int(logits.argmax()) != own:
            break
        found = [torch.autograd.grad(logit, image, retain_graph=True)[0] for logit in logits]
        towards = torch.cat([found[c] - found[own] for c in others])  # (classes - 1, ...)
        gaps, slopes = (logits[own] - logits[others]).detach(), towards.flatten(1).norm(dim=1)
        nearest = int((gaps / slopes).argmin())
        total = total + (gaps[nearest] + 1e-4) * towards[nearest] / slopes[nearest] ** 2
        image = (x + (1 + OVERSHOOT) * total).clamp(0, 1)
    return image.detach()


@ours("lemmata")
def in_one_batch(task: Attacked) -> Callable[[], Found]:
    """Ours, which goes back towards the image from where it arrived."""
    words = {"steps": STEPS, "overshoot": OVERSHOOT, "rivals": CLASSES - 1}
    return lambda: Found(task, deepfool(task.network, task.x, task.y, **words).examples)


@peer("foolbox", needs="foolbox")
def by_foolbox(task: Attacked) -> Callable[[], Found]:
    """All images go on until the last one is through."""
    import foolbox

    model = foolbox.PyTorchModel(task.network, bounds=(0, 1), device=task.x.device)
    attack = foolbox.attacks.L2DeepFoolAttack(steps=STEPS, candidates=CLASSES, overshoot=OVERSHOOT)
    return lambda: Found(task, attack.run(model, task.x, task.y))


@peer("torchattacks", needs="torchattacks")
def by_torchattacks(task: Attacked) -> Callable[[], Found]:
    """Image by image."""
    import torchattacks

    attack = torchattacks.DeepFool(task.network, STEPS, OVERSHOOT)
    return lambda: Found(task, attack(task.x, task.y))


@peer("torch, as published")
def by_plain_loop(task: Attacked) -> Callable[[], Found]:
    """Image by image, without a package."""
    return lambda: Found(task, _one_by_one(task))


@limit("the bare passes forward and backward of one step")
def passes_alone(task: Attacked) -> Callable[[], None]:
    """A gradient for each class; nobody is through before."""
    return bare_passes(task.network, task.x, task.y, CLASSES)


@agreement(within=0.02)
def in_numbers(found: Found) -> dict[str, float]:
    """All must succeed alike, and nobody with longer perturbations."""
    return beside_published(found)
