"""Episodes: what is in them, that each is its own function of the seed, and what they refuse."""

import pytest
import torch
from torch.utils.data import DataLoader

from lemmata.meta import Episodes


def labelled(classes=8, each=6):
    y = torch.arange(classes).repeat_interleave(each)
    return torch.stack([torch.arange(len(y)), y], 1).double(), y


def test_an_episode_has_as_many_of_each_class_and_shares_none():
    x, y = labelled()
    for episode in map(Episodes(x, y, ways=4, shots=2, queries=3, length=30).__getitem__, range(30)):
        assert episode["y"].bincount().tolist() == [2] * 4
        assert episode["query_y"].bincount().tolist() == [3] * 4
        numbers = torch.cat([episode["x"], episode["query_x"]])[:, 0]
        assert len(numbers.unique()) == 20
        names = {int(k): set() for k in range(4)}
        for part in ("", "query_"):
            for row, k in zip(episode[f"{part}x"], episode[f"{part}y"], strict=True):
                names[int(k)].add(int(row[1]))
        assert all(len(found) == 1 for found in names.values())  # one name, one class
        assert len(set.union(*names.values())) == 4


def test_each_is_a_function_of_its_number_and_the_seed():
    x, y = labelled()
    one, same, other = (Episodes(x, y, 4, 1, 2, seed=seed) for seed in (3, 3, 4))
    _ = [same[k] for k in range(5)]
    assert torch.equal(one[17]["x"], same[17]["x"])
    assert torch.equal(one[-1]["x"], one[len(one) - 1]["x"])
    assert not torch.equal(one[17]["x"], other[17]["x"])
    assert not torch.equal(one[17]["x"], one[18]["x"])


def test_classes_may_be_held_out():
    x, y = labelled()
    episodes = Episodes(x, y, 3, 1, 2, length=40, classes=[1, 4, 5, 7])
    assert {int(k) for n in range(40) for k in episodes[n]["x"][:, 1]} == {1, 4, 5, 7}


def test_those_with_too_few_examples_are_left_out():
    x, y = labelled()
    kept = torch.ones(len(y), dtype=torch.bool)
    kept[:4] = False  # of class 0 two are left
    assert Episodes(x[kept], y[kept], 3, 1, 2).classes == list(range(1, 8))


def test_a_loader_and_batch_give_the_same_tasks():
    x, y = labelled()
    episodes = Episodes(x, y, 4, 1, 2, length=6)
    (loaded,) = DataLoader(episodes, batch_size=6)
    batch = episodes.batch(range(6))
    assert batch.x.shape == (6, 4, 2)
    assert all(torch.equal(loaded[name], batch[name]) for name in ("x", "y", "query_x", "query_y"))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"ways": 1}, "ways must be >= 2, got 1"),
        ({"ways": 9}, "ways must be at most the 8 classes with 3 examples, got 9"),
        ({"shots": 5}, "ways must be at most the 0 classes with 7 examples"),
        ({"classes": [0, 1, 99]}, "shots and queries must be at most the 0 of class 99"),
        ({"classes": [0, 1]}, "ways must be at most the 2 classes given, got 3"),
        ({"queries": 0}, "queries must be >= 1, got 0"),
    ],
)
def test_bad_choices_are_refused(words, said):
    x, y = labelled()
    with pytest.raises(ValueError, match=said):
        Episodes(x, y, **{"ways": 3, "shots": 1, "queries": 2, **words})


@pytest.mark.usefixtures("unchecked")
def test_labels_must_be_classes():
    x, y = labelled()
    with pytest.raises(ValueError, match="y must hold one class for each of 48 examples"):
        Episodes(x, y.double(), 3, 1, 2)
    with pytest.raises(IndexError, match="there are 1000 episodes, got 1000"):
        Episodes(x, y, 3, 1, 2)[1000]
