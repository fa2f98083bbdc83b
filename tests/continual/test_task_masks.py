"""Masks of tasks: whose units, nothing forgotten, overlaps, and bad input."""

import pytest
import torch
from tests.continual.small import network, stream

from lemmata.continual import MaskedMLP, TaskMask, TaskMasks, learn


@pytest.mark.parametrize(("units", "tasks"), [(6, 3), (7, 3), (5, 5), (10, 1)])
def test_every_unit_has_one_task_and_every_task_has_units(units, tasks):
    masks = TaskMask(units, tasks).masks
    assert masks.sum(0).tolist() == [1.0] * units
    assert bool((masks.sum(1) >= units // tasks).all())


def test_an_overlap_is_shared_with_the_task_before():
    masks = TaskMask(8, 2, overlap=0.5).masks
    assert masks.tolist() == [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1]]


def test_other_tasks_units_get_neither_values_nor_gradients():
    torch.manual_seed(0)
    model = MaskedMLP(6, 3, (9, 9), tasks=3)
    for part in model.modules():
        if isinstance(part, TaskMask):
            part.task = 1
    model(torch.randn(5, 6)).sum().backward()
    first, second, last = (layer for layer in model.layers if isinstance(layer, torch.nn.Linear))
    mine = torch.zeros(9, dtype=torch.bool)
    mine[3:6] = True
    assert not bool(first.weight.grad[~mine].any())
    assert not bool(second.weight.grad[~mine].any())
    assert not bool(second.weight.grad[:, ~mine].any())
    assert not bool(last.weight.grad[:, ~mine].any())


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_nothing_is_forgotten_to_the_bit_without_overlap(optimizer):
    torch.manual_seed(0)
    model = MaskedMLP(6, 3, (30,), tasks=3)
    answers = []

    class Noting(TaskMasks):
        def after_task(self, data):
            answers.append(self.model.eval()(tasks[self.task].test.x).detach())
            self.model.train()

    tasks = stream(scenario="task")
    strategy = Noting(model)
    learned = learn(model, tasks, strategy, epochs=4, batch_size=8, lr=0.02, optimizer=optimizer)
    for k in range(3):
        strategy.before_task(k)
        assert torch.equal(model(tasks[k].test.x), answers[k])
    assert learned.measures["forgetting"] == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TaskMask(2, 3), "units must be >= 3, got 2"),
        (lambda: TaskMask(4, 2, overlap=1.5), "overlap must be"),
        (lambda: MaskedMLP(4, 2, ()), "widths must name one hidden layer or more"),
        (lambda: TaskMasks(network()), "model must have TaskMask layers, got none"),
        (lambda: TaskMasks(MaskedMLP(4, 2, (6,), tasks=2)).before_task(2), "tasks of the masks must be more than 2"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
