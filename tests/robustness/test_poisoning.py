"""Poisoned examples: how many, which, and what stays as it was."""

import pytest
import torch

from lemmata.data.examples import Examples
from lemmata.robustness.poisoning import Trigger, flip_labels, plant_backdoor


def images(n=40, classes=4):
    return Examples(
        x=0.5 * torch.rand(n, 1, 6, 6, generator=torch.Generator().manual_seed(0)), y=torch.arange(n) % classes
    )


def test_flipped_labels_are_always_others_and_all_of_them_occur():
    given = images(400)
    found = flip_labels(given, 0.5, 4, torch.Generator().manual_seed(0))
    changed = found.examples.y != given.y
    assert torch.equal(changed, found.poisoned)
    assert int(changed.sum()) == 200
    assert set(((found.examples.y - given.y)[changed] % 4).tolist()) == {1, 2, 3}
    assert torch.equal(given.y, torch.arange(400) % 4)
    again = flip_labels(given, 0.5, 4, torch.Generator().manual_seed(0))
    assert torch.equal(again.examples.y, found.examples.y)


def test_a_backdoor_is_planted_in_other_classes_alone_and_the_rest_is_untouched():
    given, trigger = images(), Trigger(size=3, value=0.9)
    before = given.x.clone()
    found = plant_backdoor(given, target=2, part=0.2, trigger=trigger, generator=torch.Generator().manual_seed(1))
    assert int(found.poisoned.sum()) == 8
    assert (given.y[found.poisoned] != 2).all()
    assert (found.examples.y[found.poisoned] == 2).all()
    assert torch.equal(trigger.present(found.examples.x), found.poisoned)
    assert torch.equal(found.examples.x[~found.poisoned], given.x[~found.poisoned])
    assert torch.equal(found.examples.x[..., :3, :3], before[..., :3, :3])
    assert torch.equal(given.x, before)


def test_a_trigger_in_a_clean_image_is_seen():
    x = images().x
    assert not Trigger().present(x).any()
    x[5] = Trigger().stamp(x[5:6])[0]
    assert Trigger().present(x).nonzero().flatten().tolist() == [5]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_generator_may_live_on_another_device():
    drawn = torch.Generator("cuda").manual_seed(0)
    found = [flip_labels(images(), 0.25, 4, drawn), plant_backdoor(images(), 0, 0.25, generator=drawn)]
    assert [int(each.poisoned.sum()) for each in found] == [10, 10]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: flip_labels(images(), 1.0, 4), "part must be in \\[0, 1\\), got 1.0"),
        (lambda: flip_labels(images(), 0.1, 3), "y must hold classes from 0 to 2"),
        (lambda: flip_labels(images(), 0.1, 1), "classes must be >= 2, got 1"),
        (lambda: plant_backdoor(images(), 0, part=0.9), "asks for 36 examples of other classes, and there are 30"),
        (lambda: plant_backdoor(images(), -1), "target must be >= 0, got -1"),
        (lambda: Trigger(size=7).stamp(images().x), "of at least 7 x 7 pixels, got shape"),
        (lambda: Trigger(size=0), "size must be >= 1, got 0"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(build, words):
    with pytest.raises(ValueError, match=words):
        build()
