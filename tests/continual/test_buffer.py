"""Which examples are kept: the reservoir exactly, classes in equal parts, herding and covering, and equal points."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest
import torch

from lemmata.continual import Reservoir, choose_examples
from lemmata.continual import buffer as module
from lemmata.data.examples import Examples

CHOICES = ("random", "balanced", "herding", "k_center")


class Dice:
    """Stands for torch.randint: gives the throws one after the other."""

    def __init__(self, throws):
        self.throws, self.sides = list(throws), []

    def __call__(self, sides, *_, **__):
        self.sides.append(sides)
        return torch.tensor(self.throws.pop(0))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("batches", [[6], [1, 1, 1, 1, 1, 1], [4, 2], [2, 4]])
def test_every_subset_is_equally_likely_in_the_reservoir(size, batches, monkeypatch):
    counts, total = Counter(), sum(batches)
    for throws in itertools.product(*(range(k) for k in range(size + 1, total + 1))):
        dice = Dice(throws)
        monkeypatch.setattr(module.torch, "randint", dice)
        reservoir, stream = Reservoir(size), torch.arange(total).double()
        for batch in stream.split(batches):
            reservoir.add(Examples(x=batch))
        assert dice.sides == list(range(size + 1, total + 1))  # all throws are equally likely
        counts[tuple(sorted(reservoir.examples.x.int().tolist()))] += 1
    subsets = list(itertools.combinations(range(total), size))
    assert {counts[subset] for subset in subsets} == {Fraction(counts.total(), len(subsets))}
    assert len(counts) == len(subsets)


def test_a_reservoir_of_a_short_stream_keeps_it_all_and_rows_stay_together():
    reservoir = Reservoir(5, torch.Generator().manual_seed(0))
    reservoir.add(Examples(x=torch.arange(3.0), y=torch.arange(3)))
    assert reservoir.examples.y.tolist() == [0, 1, 2]
    reservoir.add(Examples(x=torch.arange(3.0, 50.0), y=torch.arange(3, 50)))
    assert len(reservoir.examples) == 5
    assert torch.equal(reservoir.examples.x, reservoir.examples.y.float())


def test_a_reservoir_goes_on_from_its_state():
    first = Reservoir(4, torch.Generator().manual_seed(1))
    first.add(Examples(x=torch.arange(9.0)))
    second = Reservoir(4, torch.Generator())
    second.generator.set_state(first.generator.get_state())
    second.load_state_dict(first.state_dict())
    for each in (first, second):
        each.add(Examples(x=torch.arange(9.0, 40.0)))
    assert second.seen == 40
    assert torch.equal(first.examples.x, second.examples.x)
    empty = Reservoir(2)
    empty.load_state_dict(Reservoir(2).state_dict())
    assert empty.examples is None


def test_classes_are_kept_in_equal_parts_as_far_as_they_go():
    y = torch.tensor([0] * 20 + [2] * 2 + [7] * 20)  # others are missing, and one is rare
    for choice in ("balanced", "herding"):
        kept = choose_examples(torch.randn(42, 3), y, 12, choice)
        assert Counter(y[kept].tolist()) == {0: 5, 2: 2, 7: 5}
    assert Counter(y[choose_examples(torch.randn(42, 3), y, 2)].tolist()).total() == 2


def test_herding_takes_what_brings_the_mean_nearest():
    torch.manual_seed(0)
    x = torch.randn(30, 4, dtype=torch.float64)
    kept = choose_examples(x, torch.zeros(30, dtype=torch.long), 6, "herding")
    for k in range(6):
        free = [i for i in range(30) if i not in kept[:k].tolist()]
        far = [float((x.mean(0) - (x[kept[:k]].sum(0) + x[i]) / (k + 1)).norm()) for i in free]
        assert free[far.index(min(far))] == int(kept[k])


def test_k_center_covers_within_twice_the_best_radius():
    torch.manual_seed(0)
    x = torch.randn(9, 2, dtype=torch.float64)
    apart = torch.cdist(x, x)
    kept = choose_examples(x, torch.zeros(9, dtype=torch.long), 3, "k_center")
    best = min(float(apart[:, list(some)].amin(1).amax()) for some in itertools.combinations(range(9), 3))
    assert best <= float(apart[:, kept].amin(1).amax()) <= 2 * best


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("size", [1, 4, 6, 100])
def test_each_is_chosen_once_among_equal_points_too(choice, size):
    kept = choose_examples(torch.ones(6, 2), torch.tensor([0, 0, 0, 1, 1, 1]), size, choice)
    assert len(kept) == len(set(kept.tolist())) == min(size, 6)


@pytest.mark.parametrize("choice", ["random", "balanced"])
def test_draws_come_from_the_generator(choice):
    x, y = torch.randn(50, 2), torch.arange(50) % 2
    draw = lambda seed: choose_examples(x, y, 10, choice, torch.Generator().manual_seed(seed)).tolist()  # noqa: E731
    assert draw(1) == draw(1) != draw(2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: choose_examples(torch.ones(3, 1), torch.zeros(3).long(), 0), "size must be >= 1, got 0"),
        (lambda: choose_examples(torch.ones(3, 1), torch.zeros(3).long(), 2, "best"), "choice must be one of"),
        (lambda: Reservoir(0), "size must be >= 1, got 0"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
