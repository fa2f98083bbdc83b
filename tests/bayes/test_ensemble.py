"""Ensembles: each member answers and learns as it does alone, whatever its layers; draws go in and out; bad input."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import lemmata
from lemmata.bayes import Ensemble, MLPEnsemble, posterior_energy, posterior_weights, summed_over_members
from lemmata.feedforward.mlp import MLP
from lemmata.train import fit


def members(make, count=4):
    torch.manual_seed(1)
    return [make().double() for _ in range(count)]


def perceptron():
    return MLP(3, 2, widths=(6,))


def convolution():
    return nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 2), nn.BatchNorm1d(2), nn.Flatten(), nn.Linear(4, 2))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x).tanh())


X = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.arange(8) % 2


@pytest.mark.parametrize("make", [perceptron, convolution, Tied])
def test_each_member_answers_as_it_does_alone(make):
    alone = members(make)
    ensemble = Ensemble(alone)
    for _ in range(2):  # in training mode batch normalisation moves its statistics: twice is not once
        expected = torch.stack([member(X) for member in alone])
        assert torch.allclose(ensemble(X), expected, rtol=1e-12, atol=1e-14)
    ensemble.eval()
    for number, member in enumerate(alone):
        taken = ensemble.member(number)
        assert torch.allclose(taken(X), member.eval()(X), rtol=1e-12, atol=1e-14)
        assert taken.state_dict().keys() == member.state_dict().keys()
    assert torch.allclose(ensemble.mean(X), ensemble(X).mean(0), rtol=1e-13)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("make", [perceptron, Tied])
def test_trained_in_one_batch_each_member_goes_where_it_goes_alone(make, optimizer):
    """Forty steps in float64: equal up to rounding, which a batched product orders otherwise."""
    alone = members(make)
    ensemble, whole = Ensemble(alone), summed_over_members(functional.cross_entropy)
    together, apart = optimizer(ensemble.parameters(), lr=0.05), [optimizer(m.parameters(), lr=0.05) for m in alone]
    for _ in range(40):
        together.zero_grad()
        whole(ensemble(X), Y).backward()
        together.step()
        for member, own in zip(alone, apart, strict=True):
            own.zero_grad()
            functional.cross_entropy(member(X), Y).backward()
            own.step()
    for number, member in enumerate(alone):
        for name, value in ensemble.member(number).named_parameters():
            assert torch.allclose(value, member.get_parameter(name), rtol=1e-9, atol=1e-11)


def test_dropout_is_drawn_for_each_member():
    ensemble = Ensemble([nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))] * 3)
    answers = ensemble(torch.ones(20, 3))
    assert not torch.equal(answers[0], answers[1])
    ensemble.eval()
    assert torch.equal(*ensemble(torch.ones(20, 3))[:2])


def test_draws_go_in_and_come_out_in_the_order_of_the_energy():
    model = perceptron().double()
    energy = posterior_energy(model, (X, Y), 1.0)
    draws = torch.randn(5, energy.dimension, dtype=torch.float64)
    ensemble = Ensemble.of_draws(model, draws)
    assert torch.equal(ensemble.flat, draws)
    losses = torch.stack([functional.cross_entropy(answer, Y, reduction="sum") for answer in ensemble(X)])
    assert torch.allclose(losses + draws.square().sum(1) / 2, energy(draws), rtol=1e-12)
    ensemble.put(torch.zeros(2, energy.dimension, dtype=torch.float64), first=3)
    assert torch.equal(ensemble.flat[:3], draws[:3])
    assert not ensemble.flat[3:].any()


def test_frozen_parameters_are_no_part_of_draws():
    model = nn.Linear(3, 1).double()
    model.bias.requires_grad_(False)
    ensemble = Ensemble.of_draws(model, torch.ones(2, 3, dtype=torch.float64))
    assert ensemble.flat.shape == (2, 3)
    assert torch.allclose(ensemble(X), (X.sum(1, keepdim=True) + model.bias).expand(2, -1, -1))
    assert [value.requires_grad for value in ensemble.parameters()] == [True, False]


def test_the_members_that_it_was_made_of_are_left_alone():
    alone = members(perceptron)
    before = copy.deepcopy(alone[0].state_dict())
    ensemble = Ensemble(alone)
    with torch.no_grad():
        next(ensemble.parameters()).zero_()
    assert all(torch.equal(value, before[name]) for name, value in alone[0].state_dict().items())


def test_weights_by_energy_are_a_softmax_that_temperature_flattens():
    energy = torch.tensor([1e4, 1e4 + 1, 1e4 + 2], dtype=torch.float64)
    expected = torch.tensor([0.0, -1.0, -2.0], dtype=torch.float64)
    assert torch.allclose(posterior_weights(energy), expected.softmax(0), rtol=1e-10)
    assert torch.allclose(posterior_weights(energy, temperature=4.0), (expected / 4).softmax(0), rtol=1e-10)
    weighted = Ensemble(members(perceptron, 3), posterior_weights(energy))
    assert torch.allclose(weighted.mean(X), torch.einsum("m,m...->...", expected.softmax(0), weighted(X)), rtol=1e-9)


def test_an_ensemble_of_perceptrons_draws_what_they_draw_and_is_loaded_from_its_run(tmp_path):
    torch.manual_seed(4)
    ensemble = MLPEnsemble(3, 2, members=3, widths=(5,))
    torch.manual_seed(4)
    assert torch.equal(ensemble.member(1)(X.float()), [MLP(3, 2, widths=(5,)) for _ in range(3)][1](X.float()))
    loss = summed_over_members(functional.cross_entropy)
    fit(ensemble, (X.float(), Y), loss=loss, epochs=2, device="cpu", out=tmp_path)
    loaded = lemmata.load(tmp_path)
    assert isinstance(loaded, MLPEnsemble)
    assert torch.equal(loaded(X.float()), ensemble(X.float()))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [(), (5,), (6, 4)])
def test_perceptrons_layer_by_layer_answer_as_any_networks_do(widths, bias):
    quick = MLPEnsemble(3, 2, members=3, widths=widths, activation="tanh", bias=bias, dtype=torch.float64)
    general = Ensemble([quick.member(number) for number in range(3)])
    assert torch.allclose(quick(X), general(X), rtol=1e-12, atol=1e-14)
    assert torch.equal(quick.flat, general.flat)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: Ensemble([]), TypeError, "members must hold at least one nn.Module"),
        (lambda: Ensemble([nn.Linear(3, 2), nn.Linear(3, 1)]), ValueError, "member 1 differs from member 0"),
        (lambda: Ensemble([nn.Linear(3, 2), nn.Linear(3, 2).eval()]), ValueError, "all be in training mode or all in"),
        (lambda: Ensemble([nn.ReLU()]), ValueError, "members must have parameters"),
        (lambda: Ensemble([nn.Linear(3, 2)] * 2, [0.5, 0.6]), ValueError, "weights must be >= 0 and sum to 1"),
        (lambda: Ensemble([nn.Linear(3, 2)] * 2, [1.0]), ValueError, "weights must have 2 entries, got 1"),
        (lambda: Ensemble.of_draws(nn.Linear(3, 2), torch.zeros(4, 5)), ValueError, "draws must have 8 parameters"),
        (lambda: Ensemble([nn.Linear(3, 2)]).put(torch.zeros(2, 8)), ValueError, "draws must be at most 1 from 0 on"),
        (lambda: Ensemble([nn.Linear(3, 2)]).member(1), IndexError, "number must be below 1, got 1"),
        (lambda: MLPEnsemble(3, 2, members=0), ValueError, "members must be >= 1, got 0"),
        (lambda: posterior_weights(torch.tensor([1.0, float("nan")])), ValueError, "energy must be finite"),
        (lambda: posterior_weights(torch.ones(2), temperature=0.0), ValueError, "temperature must be > 0"),
    ],
)
def test_bad_input_meets_one_sentence(make, kind, words):
    with pytest.raises(kind, match=words):
        make()
