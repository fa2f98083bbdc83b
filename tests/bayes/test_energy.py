"""The energy against torch's distributions, scikit-learn's ridge and weight decay; batches, many draws, bad input."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn
from torch.distributions import Bernoulli, Categorical, Normal
from torch.nn import functional

from lemmata.bayes import posterior_energy
from lemmata.data.examples import Examples
from lemmata.feedforward.mlp import MLP
from lemmata.tricks.weight_decay import l2_penalty


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(outputs=1, **words):
    torch.manual_seed(3)
    return MLP(3, outputs, widths=(5,), activation="tanh", dtype=torch.float64, **words)


X, Y = drawn(21, 3), drawn(21, seed=1)
CLASSES = (Y > 0).long()


def shifted(values):
    """Energies are known up to a constant."""
    return values - values[0]


def test_numbers_have_the_energy_of_normal_noise_and_prior():
    energy = posterior_energy(network(), (X, Y), prior_variance=0.7, noise=0.3)
    theta = drawn(6, energy.dimension)
    truth = []
    for row in theta:
        answers = energy.copy_to_model(row)(X)[:, 0]
        truth.append(-Normal(answers, 0.3).log_prob(Y).sum() - Normal(0 * row, 0.7**0.5).log_prob(row).sum())
    assert torch.allclose(shifted(energy(theta)), shifted(torch.stack(truth)).detach(), rtol=1e-11)
    assert torch.equal(energy.log_density(theta), -energy(theta))


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_classes_have_the_energy_of_their_logits(outputs):
    energy = posterior_energy(network(outputs), (X, CLASSES), prior_variance=2.0)
    theta = drawn(4, energy.dimension)
    for row, found in zip(theta, energy(theta), strict=True):
        logits = energy.copy_to_model(row)(X)
        each = Bernoulli(logits=logits[:, 0]).log_prob(Y.gt(0).double()) if outputs == 1 else None
        each = Categorical(logits=logits).log_prob(CLASSES) if each is None else each
        assert torch.allclose(found, -each.sum() + row.square().sum() / 4, rtol=1e-12)


def test_several_numbers_for_an_example_add_up():
    model, y = network(2), drawn(21, 2)
    found = posterior_energy(model, (X, y), 1.0, 0.5)()
    assert torch.allclose(found, (model(X) - y).square().sum() * 2 + l2_penalty(list(model.parameters()), 1.0))


def test_the_likeliest_line_is_the_ridge_regression_of_scikit_learn():
    line = nn.Linear(3, 1, bias=False, dtype=torch.float64)
    energy = posterior_energy(line, (X, Y), prior_variance=0.5, noise=0.8)
    zero = torch.zeros(3, dtype=torch.float64)
    gradient, hessian = (getattr(torch.autograd.functional, of)(energy, zero) for of in ("jacobian", "hessian"))
    ridge = Ridge(alpha=0.8**2 / 0.5, fit_intercept=False).fit(X.numpy(), Y.numpy())
    assert torch.allclose(-torch.linalg.solve(hessian, gradient), torch.from_numpy(ridge.coef_), rtol=1e-12)


def test_descent_on_the_energy_is_torchs_descent_with_weight_decay():
    model = network(2)
    energy, size, lr = posterior_energy(model, (X, CLASSES), prior_variance=0.25), len(X), 0.01
    expected = energy.start - lr / size * torch.autograd.functional.jacobian(energy, energy.start)
    optimizer = torch.optim.SGD(model.parameters(), lr, weight_decay=1 / (size * 0.25))
    functional.cross_entropy(model(X), CLASSES).backward()
    optimizer.step()
    assert torch.allclose(energy.start, expected, rtol=1e-12)


def test_gradients_reach_the_model_and_flat_draws_alike():
    model = network()
    energy = posterior_energy(model, Examples(x=X, y=Y), 1.0, 0.5)
    energy().backward()
    own = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    theta = energy.start.repeat(3, 1).requires_grad_()
    (flat,) = torch.autograd.grad(energy(theta).sum(), theta)
    assert torch.allclose(flat, own.expand(3, -1), rtol=1e-12)
    assert torch.allclose(energy(energy.start), energy(), rtol=1e-14)
    assert energy(theta.reshape(3, 1, -1)).shape == (3, 1)


def test_batches_estimate_the_energy_without_bias_and_leave_the_prior_alone():
    energy = posterior_energy(network(), (X, Y), prior_variance=1e-3, noise=0.5)
    theta = drawn(2, energy.dimension)
    parts = [energy.on((X[k : k + 7], Y[k : k + 7]), theta) for k in (0, 7, 14)]
    assert torch.allclose(torch.stack(parts).mean(0), energy(theta), rtol=1e-12)
    assert torch.allclose(energy.on((X[:7], Y[:7])), energy.on((X[:7], Y[:7]), energy.start))
    # The prior is as strong on a batch as on all data: sizes of parameters count once, not in proportion.
    likelihood = posterior_energy(network(), (X, Y), prior_variance=1e9, noise=0.5)
    gap = energy.on((X[:7], Y[:7]), theta) - likelihood.on((X[:7], Y[:7]), theta)
    assert torch.allclose(gap, theta.square().sum(1) / 2e-3, rtol=1e-6)


def test_frozen_parameters_are_constants_and_variances_go_by_name():
    model = network()
    model.layers[0].weight.requires_grad_(False)
    names = [name for name, value in model.named_parameters() if value.requires_grad]
    variances = dict(zip(names, (0.5, 2.0, 4.0), strict=True))
    energy = posterior_energy(model, (X, Y), variances, 1.0)
    assert energy.dimension == 5 + 5 + 1
    theta = drawn(energy.dimension)
    answers = energy.copy_to_model(theta)(X)[:, 0]
    prior = sum(model.get_parameter(name).square().sum() / (2 * variances[name]) for name in names)
    assert torch.allclose(energy(theta), (answers - Y).square().sum() / 2 + prior, rtol=1e-12)


def test_tied_parameters_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 3, bias=False, dtype=torch.float64)
            self.two = nn.Linear(3, 3, bias=False, dtype=torch.float64)
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.two(self.one(x)).sum(1)

    energy = posterior_energy(Tied(), (X, Y), 1.0, 1.0)
    assert energy.dimension == 9
    theta = drawn(2, 9)
    for row, found in zip(theta, energy(theta), strict=True):
        w = row.reshape(3, 3)
        expected = ((X @ w.T @ w.T).sum(1) - Y).square().sum() / 2 + row.square().sum() / 2
        assert torch.allclose(found, expected, rtol=1e-12)


def dropping(training=True):
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)).double().train(training)


def normalising(**words):
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, **words), nn.Linear(4, 1)).double()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (dropping(), "same answer twice, but it answers in training mode: use model.eval"),
        (normalising(), "same answer twice, but it answers in training mode: use model.eval"),
        (normalising(track_running_stats=False), "treat each example by itself"),
    ],
)
def test_networks_whose_gradient_would_be_wrong_are_refused_and_left_as_they_were(model, words):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    with pytest.raises(ValueError, match=words):
        posterior_energy(model, (X, Y), 1.0, 0.5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_network_that_is_put_into_training_mode_later_is_refused_then():
    model = dropping(training=False)
    energy = posterior_energy(model, (X, Y), 1.0, 0.5)
    energy()
    model.train()
    with pytest.raises(ValueError, match=r"use model\.eval"):
        energy(energy.start)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"prior_variance": 0.0}, ValueError, "prior_variance must be > 0, got 0.0"),
        ({"prior_variance": float("nan")}, ValueError, "prior_variance must be finite"),
        ({"prior_variance": {"layers.0.weight": 1.0}}, ValueError, "must name each parameter"),
        ({"noise": 0.0}, ValueError, "noise must be > 0, got 0.0"),
        ({"noise": -1.0}, ValueError, "noise must be > 0, got -1.0"),
        ({"noise": None}, ValueError, "noise must be given"),
        ({"data": (X, CLASSES)}, ValueError, "noise must be None where y holds classes"),
        ({"data": (X, Y[:5])}, ValueError, r"as many examples, at least one, got \(21, 3\) and \(5,\)"),
        ({"data": (X[:0], Y[:0])}, ValueError, "at least one"),
        ({"data": X}, TypeError, r"data must be a pair \(x, y\) of tensors, got Tensor"),
        ({"data": (X, Y * float("nan"))}, ValueError, "y must be finite, found 21 NaN values"),
        ({"data": (X / 0, Y)}, ValueError, "x must be finite"),
        ({"data": (X.float(), Y)}, TypeError, "x must have the model's dtype torch.float64, got torch.float32"),
        ({"data": (X, Y[:, None, None])}, ValueError, "y must have the shape of the outputs"),
        ({"loss": lambda output, y: functional.mse_loss(output[:, 0], y)}, ValueError, "noise belongs to"),
        ({"model": nn.ReLU()}, ValueError, "no parameter that requires a gradient"),
    ],
)
def test_bad_input_meets_one_sentence(change, kind, words):
    given = {"model": network(), "data": (X, Y), "prior_variance": 1.0, "noise": 0.5} | change
    with pytest.raises(kind, match=words) as error:
        posterior_energy(**given)
    assert "\n" not in str(error.value)


def test_a_loss_that_is_a_mean_already_is_refused():
    with pytest.raises(ValueError, match=r"one number for each of 21 examples, got shape .*reduction='none'"):
        posterior_energy(network(), (X, Y), 1.0, loss=lambda output, y: functional.mse_loss(output[:, 0], y))


def test_flat_parameters_of_another_size_are_refused():
    energy = posterior_energy(network(), (X, Y), 1.0, 0.5)
    with pytest.raises(ValueError, match=f"theta must have {energy.dimension} parameters on its last axis"):
        energy(torch.zeros(4, 3, dtype=torch.float64))
