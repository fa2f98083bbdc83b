"""Heterogeneous dropout: what it counts, how often it drops, what evaluation does, and its state."""

import math

import pytest
import torch

from lemmata.continual import HeterogeneousDropout


def test_nothing_is_dropped_before_the_first_task_is_over_and_never_in_evaluation():
    layer, x = HeterogeneousDropout(5, alpha=3.0), torch.rand(8, 5) + 0.1
    assert torch.equal(layer(x), x)
    layer.end_task()
    assert torch.equal(layer.eval()(x), x)
    assert torch.equal(layer.counted, torch.zeros(5))  # evaluation is not counted


def test_activity_is_added_up_over_tasks():
    layer = HeterogeneousDropout(2, alpha=1.0)
    for x, ended in (([[1.0, 0.0], [1.0, 0.0]], True), ([[0.0, 1.0]], False), ([[0.0, 1.0]], True)):
        layer(torch.tensor(x))
        if ended:
            layer.end_task()
    # An update counts as one; in the second task the first unit was dropped or not, which is not counted.
    assert layer.active.tolist() == [1.0, 2.0]
    assert torch.allclose(layer.keep_probability, torch.tensor([math.exp(-0.5), math.exp(-1.0)]))


def test_units_are_kept_as_often_as_said_and_not_scaled_up():
    torch.manual_seed(0)
    layer = HeterogeneousDropout(3, alpha=2.0)
    layer.active.copy_(torch.tensor([1.0, 0.5, 0.0]))
    found = layer(torch.full((20_000, 3), 7.0))
    assert set(found.unique().tolist()) == {0.0, 7.0}
    kept = (found != 0).double().mean(0)
    wanted = torch.exp(-2.0 * torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64))
    assert float((kept - wanted).abs().max()) < 6 * 0.5 / math.sqrt(20_000)
    assert float(kept[2]) == 1.0


def test_alpha_zero_drops_nothing():
    layer, x = HeterogeneousDropout(4, alpha=0.0), torch.rand(6, 4) + 0.1
    layer(x)
    layer.end_task()
    assert torch.equal(layer(x), x)


def test_what_was_active_is_in_the_state():
    layer = HeterogeneousDropout(3)
    layer(torch.tensor([[1.0, 0.0, 2.0]]))
    other = HeterogeneousDropout(3)
    other.load_state_dict(layer.state_dict())
    other.end_task()
    assert other.active.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("words", "message"),
    [({"units": 0}, "units must be >= 1, got 0"), ({"units": 3, "alpha": -1.0}, "alpha must be >= 0, got -1.0")],
)
def test_bad_input_is_refused_in_a_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        HeterogeneousDropout(**words)
