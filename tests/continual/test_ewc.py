"""Springs: energy and slope, one for each task or one for all, parameters that do not learn, and bad choices."""

import pytest
import torch
from tests.continual.small import network, stream

from lemmata.continual import EWC, EWCConfig, Spring, fisher_diagonal, learn


def told(model, **words):
    strategy = EWC(model, **words)
    strategy.stream = stream()
    return strategy


def test_at_rest_there_is_neither_energy_nor_slope_and_off_it_half_the_square():
    model = network()
    strategy = told(model)
    data = strategy.stream[0].train
    strategy.after_task(data)
    assert float(strategy.penalty().detach()) == 0
    assert all(bool((slope == 0).all()) for slope in torch.autograd.grad(strategy.penalty(), model.parameters()))
    fisher = torch.cat([part.flatten() for part in fisher_diagonal(model, data.x).values()])
    with torch.no_grad():
        for part in model.parameters():
            part += 0.5
    assert float(strategy.penalty().detach()) == pytest.approx(float(fisher.sum()) / 8, rel=1e-5)


def test_the_loss_is_plain_before_the_first_spring_and_then_weighted():
    strategy = told(network(), strength=7.0)
    data = strategy.stream[0].train
    plain = float(strategy.loss(data).detach())
    strategy.springs = [Spring(torch.ones(163), torch.zeros(163))]
    assert float(strategy.loss(data).detach()) == pytest.approx(
        plain + 7.0 * float(strategy.penalty().detach()), rel=1e-6
    )


@pytest.mark.parametrize(("spring_decay", "springs"), [(None, 3), (1.0, 1), (0.5, 1), (0.0, 1)])
def test_each_task_has_a_spring_or_there_is_one_that_decays(spring_decay, springs):
    strategy = told(network(), spring_decay=spring_decay)
    found = []
    for task in strategy.stream:
        strategy.after_task(task.train)
        found.append(fisher_diagonal(strategy.model, task.train.x))
    each = [torch.cat([part.flatten() for part in fisher.values()]) for fisher in found]
    assert len(strategy.springs) == springs
    if spring_decay is not None:
        wanted = spring_decay**2 * each[0] + spring_decay * each[1] + each[2]
        assert torch.allclose(strategy.springs[0].stiffness, wanted, rtol=1e-5, atol=1e-9)


def test_frozen_parameters_have_no_spring():
    model = network()
    model[0].requires_grad_(False)
    strategy = told(model)
    strategy.after_task(strategy.stream[0].train)
    assert len(strategy.springs[0].rest) == 16 * 3 + 3


def test_a_stiff_spring_holds_the_network_where_it_was():
    kept = []
    for strength in (0.0, 1e4):
        model = network()
        learned = learn(model, stream(tasks=2), EWC(model, strength=strength), epochs=5, batch_size=8, lr=0.01)
        kept.append(learned.measures["forgetting"])
    assert kept[1] <= 0.0 < kept[0] + 1e-9


@pytest.mark.parametrize("labels", ["expected", "sampled", "data"])
def test_all_labels_can_be_had(labels):
    strategy = told(network(), labels=labels)
    strategy.after_task(strategy.stream[0].train)
    assert bool((strategy.springs[0].stiffness >= 0).all())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"strength": -1.0}, "strength must be >= 0, got -1.0"),
        ({"labels": "true"}, "labels must be one of"),
        ({"spring_decay": 1.5}, "spring_decay must be"),
    ],
)
def test_bad_choices_are_refused_in_a_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        EWCConfig(**words)
    with pytest.raises(ValueError, match=message):
        EWC(network(), **words)
