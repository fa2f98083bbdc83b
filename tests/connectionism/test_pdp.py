"""Parallel distributed processes: no element may be missing or empty, and every rule must fit the units."""

import dataclasses

import pytest
import torch

from lemmata.connectionism.pdp import Element, ParallelDistributedProcess


def hebbian(**changed):
    """Two units that repeat each other and learn from it."""
    elements = {
        "units": Element("one on", torch.tensor([1.0, 0.0])),
        "output": Element("as it is", lambda activation: activation),
        "connectivity": Element("crossed", torch.tensor([[0.0, 1.0], [1.0, 0.0]])),
        "propagation": Element("weighted sum", torch.mv),
        "activation": Element("the sum", lambda step, activation, arriving: arriving),
        "learning": Element("Hebb", lambda weights, sent, answered: weights + torch.outer(answered, sent)),
        "environment": Element("none", lambda step, activation: activation),
    }
    return ParallelDistributedProcess(**{**elements, **changed})


def test_there_are_seven_elements_and_each_has_words():
    process = hebbian()
    assert len(dataclasses.fields(process)) == 7
    assert list(process.card().values()) == [
        "one on", "as it is", "crossed", "weighted sum", "the sum", "Hebb", "none",
    ]  # fmt: skip


def test_a_run_holds_the_start_and_every_step():
    start, first, second = hebbian().run(2)
    assert start.step == 0
    assert start.activation.tolist() == start.output.tolist() == [1.0, 0.0]
    assert first.activation.tolist() == [0.0, 1.0]
    assert first.connectivity.tolist() == [[0.0, 1.0], [2.0, 0.0]]
    assert second.step == 2
    assert second.activation.tolist() == [1.0, 0.0]
    assert hebbian().run(0)[0].connectivity.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_run_leaves_the_description_as_it_was():
    process = hebbian()
    once, again = process.run(5)[-1], process.run(5)[-1]
    assert torch.equal(once.connectivity, again.connectivity)
    with pytest.raises(dataclasses.FrozenInstanceError):
        process.learning = Element("none", None)  # type: ignore[misc]


def test_without_a_learning_rule_the_connections_stay():
    process = hebbian(learning=Element("none", None))
    assert torch.equal(process.run(3)[-1].connectivity, process.connectivity.value)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ParallelDistributedProcess)])
@pytest.mark.usefixtures("unchecked")
def test_no_element_may_be_missing_empty_or_without_words(name):
    six = {key: getattr(hebbian(), key) for key in hebbian().card() if key != name}
    with pytest.raises(TypeError, match=f"missing 1 required positional argument: '{name}'"):
        ParallelDistributedProcess(**six)
    with pytest.raises(TypeError, match=rf"{name} must be Element\(words, value\), got NoneType"):
        hebbian(**{name: None})
    with pytest.raises(ValueError, match=f"{name} must say in a word or two what it is, got ' '"):
        hebbian(**{name: Element(" ", getattr(hebbian(), name).value)})


@pytest.mark.parametrize("name", ["output", "propagation", "activation", "learning", "environment"])
def test_rules_must_be_rules_and_give_tensors_that_fit(name):
    with pytest.raises(TypeError, match=f"{name} must hold a rule to call, got float"):
        hebbian(**{name: Element("a number", 3.0)})
    with pytest.raises(ValueError, match=rf"{name} must return a tensor of shape .* got \(7,\)"):
        hebbian(**{name: Element("too many", lambda *arguments: torch.zeros(7))}).run(1)
    with pytest.raises(TypeError, match=f"{name} must return a tensor, got NoneType"):
        hebbian(**{name: Element("nothing", lambda *arguments: None)}).run(1)


def test_only_learning_may_be_none():
    with pytest.raises(TypeError, match="environment must hold a rule to call, got NoneType"):
        hebbian(environment=Element("nothing", None))


@pytest.mark.usefixtures("unchecked")
def test_units_and_connectivity_must_fit_each_other():
    with pytest.raises(ValueError, match=r"connectivity must have shape \(2, 2\), got \(3, 3\)"):
        hebbian(connectivity=Element("too large", torch.eye(3)))
    with pytest.raises(ValueError, match=r"connectivity must be a \(units, units\) tensor"):
        hebbian(connectivity=Element("a row", torch.ones(2)))
    with pytest.raises(ValueError, match="units must be a tensor with one axis"):
        hebbian(units=Element("a matrix", torch.eye(2)))
    with pytest.raises(ValueError, match="units must be finite"):
        hebbian(units=Element("unknown", torch.tensor([float("nan"), 0.0])))
    with pytest.raises(TypeError, match="units must be a tensor, got list"):
        hebbian(units=Element("a list", [1.0, 0.0]))


def test_steps_are_counted_from_zero():
    with pytest.raises(ValueError, match="steps must be >= 0, got -1"):
        hebbian().run(-1)
