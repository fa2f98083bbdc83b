"""Rehearsal: what is kept, that everything kept is joint training, and bad choices."""

import pytest
import torch
from tests.continual.small import network, stream
from torch.nn import functional

from lemmata.continual import Rehearsal, RehearsalConfig
from lemmata.continual.rehearsal import draw_rows


def told(**words):
    strategy = Rehearsal(network(), **words)
    strategy.stream = stream()
    return strategy


@pytest.mark.parametrize("choice", ["random", "balanced", "herding", "k_center"])
def test_so_many_examples_of_each_task_are_kept_with_their_labels(choice):
    strategy = told(size=7, choice=choice)
    for task in strategy.stream:
        strategy.after_task(task.train)
    assert [len(buffer) for buffer in strategy.buffers] == [7, 7, 7]
    for buffer, task in zip(strategy.buffers, strategy.stream, strict=True):
        for x, y in zip(buffer.x, buffer.y, strict=True):
            where = (task.train.x == x).all(1).nonzero()[:, 0]
            assert int(task.train.y[where[0]]) == int(y)


def test_with_everything_kept_it_is_the_loss_of_all_tasks_at_once():
    strategy = told(size=1000)
    for task in strategy.stream.tasks[:2]:
        strategy.after_task(task.train)
    strategy.before_task(2)
    joint = strategy.stream.joint()
    wanted = functional.cross_entropy(strategy.model(joint.x), joint.y)  # tasks have as many examples
    assert torch.allclose(strategy.loss(strategy.stream[2].train), wanted, rtol=1e-5)


def test_each_task_weighs_as_much_whatever_is_kept_of_it():
    strategy = told(size=2)
    strategy.after_task(strategy.stream[0].train)
    batches = [strategy.buffers[0], strategy.stream[1].train]
    losses = [functional.cross_entropy(strategy.model(batch.x), batch.y) for batch in batches]
    assert torch.allclose(strategy.mean_over_tasks(batches), (losses[0] + losses[1]) / 2, rtol=1e-5)


def test_what_is_kept_is_a_copy():
    strategy = told(size=5)
    data = strategy.stream[0].train
    strategy.after_task(data)
    before = strategy.buffers[0].x.clone()
    data.x.zero_()
    assert torch.equal(strategy.buffers[0].x, before)


def test_rows_are_drawn_without_return():
    data = stream()[0].train
    drawn = draw_rows(data, 10)
    assert len(drawn.x.unique(dim=0)) == 10
    assert draw_rows(data, 100) is data


@pytest.mark.parametrize(
    ("words", "message"), [({"size": 0}, "size must be >= 1, got 0"), ({"choice": "best"}, "choice must be one of")]
)
def test_bad_choices_are_refused_in_a_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        RehearsalConfig(**words)
    with pytest.raises(ValueError, match=message):
        Rehearsal(network(), **words)
