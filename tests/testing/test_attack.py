"""The suite passes every attack that is shipped, and fails each known mistake by the check that it breaks."""

import functools
import inspect
import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn

from lemmata import robustness
from lemmata.robustness import Attack, fgsm, pgd
from lemmata.testing import AttackError, check_attack


def shipped():
    """Every public function of the chapter that returns an Attack."""
    parts = [getattr(robustness, name) for name in dir(robustness)]
    return [part for part in parts if inspect.isfunction(part) and part.__annotations__.get("return") is Attack]


def ready(attack):
    """An attack with what it needs beside the classifier, and no more work than a check wants."""
    wanted = inspect.signature(attack).parameters
    surrogate = nn.Sequential(nn.Flatten(), nn.Linear(64, 4)).eval()
    few = {"steps": 8, "queries": 40, "generations": 4, "searches": 2, "surrogate": surrogate}
    return functools.partial(attack, **{name: value for name, value in few.items() if name in wanted})


@pytest.mark.parametrize("attack", shipped(), ids=lambda attack: attack.__name__)
def test_every_attack_of_the_chapter_passes_every_check(attack):
    skip = SKIPPED.get(attack.__name__, [])
    report = check_attack(ready(attack), skip=skip)
    assert report.subject == attack.__name__
    assert len(report.findings) == 14 - len(skip)
    assert not report.named("skipped")


SKIPPED = {
    "least_likely_attack": ["targets"],  # it chooses them itself
    "spatial_attack": ["finds"],  # a turned image need not fool anybody,
    "transfer_attack": ["finds"],  # nor what fools an untrained surrogate
}


def test_attacks_are_found():
    assert {fgsm, pgd} < set(shipped())


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_attacks_pass_in_each_norm(norm):
    assert check_attack(functools.partial(pgd, steps=8), norm=norm).passed


@dataclass(frozen=True)
class Found:
    examples: Tensor
    success: Tensor


def climbing(model, x, y, eps, generator=None, targeted=None, levels=None):
    return pgd(model, x, y, eps, steps=8, generator=generator, targeted=targeted, levels=levels)


def random_start_not_counted(model, x, y, eps):
    found = climbing(model, x, y, eps)
    return Found((found.examples + 0.05).clamp(0, 1), found.success)


def beyond_the_box(model, x, y, eps):
    examples = x + eps * (2 * torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) - 1)
    return Found(examples, model(examples).argmax(1) != y)


def black_where_it_failed(model, x, y, eps):
    found = climbing(model, x, y, eps)
    return Found(torch.where(found.success.view(-1, 1, 1, 1), found.examples, 0 * x), found.success)


def never_verified(model, x, y, eps):
    return Found(climbing(model, x, y, eps).examples, torch.ones(len(x), dtype=torch.bool))


def standing_still(model, x, y, eps):
    return Found(x, model(x).argmax(1) != y)


def training_mode_left_on(model, x, y, eps):
    model.train()
    found = Found(x, model(x).argmax(1) != y)
    model[1].eval()
    return found


def gradients_left_behind(model, x, y, eps):
    nn.functional.cross_entropy(model(x), y).backward()
    return climbing(model, x, y, eps)


def global_random_numbers(model, x, y, eps):
    examples = (x + eps * (2 * torch.rand_like(x) - 1)).clamp(0, 1)
    wrong = model(examples).argmax(1) != y
    return Found(torch.where(wrong.view(-1, 1, 1, 1), examples, x), wrong)


def moving_at_zero(model, x, y, eps):
    return climbing(model, x, y, eps + 0.3)


def one_number_for_all(model, x, y, eps):
    found = climbing(model, x, y, eps)
    return replace(found, success=found.success.any())


def squeezed(model, x, y, eps):
    wrong = model(x).squeeze(0).argmax(-1) != y
    return Found(x, wrong if len(x) > 1 else ~wrong)


def written_into(model, x, y, eps):
    found = climbing(model, x.clone(), y, eps)
    x.copy_(found.examples)
    return found


def any_class_will_do(model, x, y, eps, targeted=None):
    return climbing(model, x, y, eps)


def between_the_levels(model, x, y, eps, levels=None):
    return climbing(model, x, y, eps)


@pytest.mark.parametrize(
    ("attack", "check"),
    [
        (random_start_not_counted, "ball"),
        (beyond_the_box, "box"),
        (black_where_it_failed, "failed"),
        (never_verified, "verified"),
        (standing_still, "finds"),
        (training_mode_left_on, "as_found"),
        (gradients_left_behind, "as_found"),
        (global_random_numbers, "seeds"),
        (moving_at_zero, "zero"),
        (one_number_for_all, "interface"),
        (squeezed, "one"),
        (written_into, "untouched"),
        (any_class_will_do, "targets"),
        (between_the_levels, "grid"),
    ],
)
def test_each_mistake_fails_its_check(attack, check):
    report = check_attack(attack, on_fail="report")
    assert check in report.named("failed")
    with pytest.raises(AttackError, match=attack.__name__):
        check_attack(attack)


def test_what_is_no_attack_is_refused():
    with pytest.raises(ValueError, match="norm must be 0, 1, 2 or inf, got 3"):
        check_attack(fgsm, norm=3)
    with pytest.raises(ValueError, match="skip must name checks among interface"):
        check_attack(fgsm, skip=["bal"])
