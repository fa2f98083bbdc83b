"""The probe of the generalisation gap: memorised labels are found, honest and merely overfitted networks are not."""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit import audit
from lemmata.data.registry import load


def fitted(x, y, loss, outputs, epochs, width=128):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), width), nn.ReLU(), nn.Linear(width, outputs))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model.eval()


@functools.cache
def digits(random, number=300):
    """A network and its examples; with random labels, shuffled against the pictures."""
    parts = load("digits").parts
    x, y = parts["train"].x[:number], parts["train"].y[:number]
    if random:
        y = y[torch.randperm(number, generator=torch.Generator().manual_seed(1))]
    return fitted(x, y, functional.cross_entropy, 10, 80 if random else 15), (x, y)


def asked(model, data, test, **more):
    return audit(model, data, test, probes=["generalization_gap"], budget=60.0, **more)["generalisation gap"]


def test_memorised_labels_are_found_and_honest_ones_pass():
    test = load("digits").parts["test"]
    found = asked(*digits(random=True), test)
    assert found.severity == "alarm"
    assert found.verdict.startswith("memorised, not learnt")
    assert found.numbers["train"] > 0.9
    assert found.numbers["test_skill_high"] < 0.2
    honest = asked(*digits(random=False), test)
    assert honest.severity == "fine"
    with torch.no_grad():
        right = (digits(random=False)[0](test.x).argmax(1) == test.y).float().mean().item()
    assert honest.numbers["test"] == pytest.approx(right)


@functools.cache
def two_classes(random):
    """Less or more than five, with one output."""
    parts = load("digits").parts
    x, y = parts["train"].x[:600], (parts["train"].y[:600] > 4).long()
    if random:
        y = y[torch.randperm(600, generator=torch.Generator().manual_seed(1))]
    model = fitted(x, y, lambda out, y: functional.binary_cross_entropy_with_logits(out[:, 0], y.float()), 1, 80)
    return model, (x, y), (parts["train"].x[600:], (parts["train"].y[600:] > 4).long())


def test_two_classes_with_one_output():
    assert asked(*two_classes(random=True)).severity == "alarm"
    assert asked(*two_classes(random=False)).severity in ("fine", "hint")


@functools.cache
def numbers(random, number=300):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2 * number, 8, generator=generator)
    y = torch.randn(2 * number, 1, generator=generator) if random else x[:, :1] - x[:, 1:2]
    model = fitted(x[:number], y[:number], functional.mse_loss, 1, 150 if random else 30)
    return model, (x[:number], y[:number]), (x[number:], y[number:])


def test_a_mean_and_a_variance_for_one_target_are_not_compared_with_it():
    _, train, test = numbers(random=False)
    loss = lambda out, y: functional.gaussian_nll_loss(out[:, :1], y, out[:, 1:].exp())  # noqa: E731
    found = asked(torch.nn.Linear(8, 2), train, test, loss=loss)
    assert (found.severity, found.verdict) == ("skipped", "it needs an output for each target, got 2 for 1")


def test_numbers_that_were_memorised():
    found = asked(*numbers(random=True))
    assert found.severity == "alarm"
    assert found.numbers["test"] < 0
    model, (_, seen), (x, y) = numbers(random=False)
    honest = asked(model, (_, seen), (x, y))
    assert honest.severity == "fine"
    with torch.no_grad():
        explained = 1 - (model(x) - y).square().mean() / (y - seen.mean()).square().mean()
    assert honest.numbers["test"] == pytest.approx(explained.item(), abs=1e-5)


def test_an_overfitted_network_is_a_hint():
    parts = load("fashion").parts
    x, y = parts["train"].x[:200], parts["train"].y[:200]
    found = asked(fitted(x, y, functional.cross_entropy, 10, 30), (x, y), parts["test"])
    assert found.severity == "hint"
    assert found.verdict.startswith("overfitted")


@pytest.mark.parametrize("seed", range(3))
def test_networks_that_know_nothing_yet_have_no_gap(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    assert asked(model, "digits", None).severity == "fine"
    line = nn.Linear(10, 1)
    assert asked(line, "diabetes", None).severity != "alarm"


def test_few_test_examples_are_no_proof():
    """A dozen answers at chance: too few to be sure of anything."""
    model, data = digits(random=False)
    part = load("digits").parts["test"]
    wrong = (part.y[:12] + 1) % 10
    assert asked(model, data, (part.x[:12], wrong)).severity == "skipped"
    model, data, (x, y) = two_classes(random=True)
    assert asked(model, data, (x[:40], y[:40])).severity != "alarm"


def test_equal_targets_and_a_missing_test_part_are_said():
    model, (x, _), (more, _) = numbers(random=False)
    same = torch.ones(len(x), 1)
    assert "all are equal" in audit(model, (x, same), (more, same), probes=["generalization_gap"]).findings[0].verdict
    assert "test part" in audit(model, (x, same), probes=["generalization_gap"]).findings[0].verdict


@pytest.mark.parametrize(
    ("wrong", "said"), [(160, "the gap is real, but below the 10% of skill"), (0, "no gap beyond")]
)
def test_a_small_gap_is_said_to_be_small_and_not_to_be_none(wrong, said):
    """A model that passes on the answer it is given, of which some in the test are those of another class."""
    y = torch.arange(2000) % 4
    answers = torch.cat([(y[:wrong] + 1) % 4, y[wrong:]])
    passing = nn.Linear(4, 4, bias=False)
    nn.init.eye_(passing.weight)
    found = asked(passing, (functional.one_hot(y).float(), y), (functional.one_hot(answers).float(), y))
    assert found.severity == "fine"
    assert found.verdict.startswith(said)
