"""Stochastic networks and their certificates: what the claims do not say."""

import copy

import pytest
import torch
from torch import nn

from lemmata.generalization.certificate import certify
from lemmata.generalization.pac_bayes_classifier import PACBayesClassifier
from lemmata.generalization.stochastic_network import StochasticNetwork


def small_network(variance: float = 0.1) -> StochasticNetwork:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(2, 3, 2, stride=2, padding=1, groups=1), nn.Tanh(), nn.Flatten(), nn.LazyLinear(4))
    layers(torch.zeros(1, 2, 3, 3))
    network = StochasticNetwork(layers.double(), variance=variance)
    with torch.no_grad():
        for log_std in network.log_std:
            log_std += 0.3 * torch.randn_like(log_std)
        for mean in network.model.parameters():
            mean += 0.3 * torch.randn_like(mean)
    return network


def test_divergence_is_that_of_torch() -> None:
    network = small_network()
    parts = [
        torch.distributions.kl_divergence(
            torch.distributions.Normal(mean, log_std.exp()), torch.distributions.Normal(prior, network.variance**0.5)
        ).sum()
        for mean, log_std, prior in zip(network.model.parameters(), network.log_std, network.prior_means, strict=True)
    ]
    torch.testing.assert_close(network.kl(), torch.stack(parts).sum())


@pytest.mark.parametrize("layer", [nn.Linear(5, 3), nn.Conv1d(5, 3, 1), nn.Conv2d(5, 3, 1, bias=False)])
def test_local_draws_have_mean_and_variance_of_whole_ones(layer: nn.Module) -> None:
    torch.manual_seed(1)
    network = StochasticNetwork(layer.double(), variance=0.5)
    x = torch.randn(1, 5, *[1] * (layer.weight.ndim - 2), dtype=torch.float64)
    with torch.no_grad():
        by_outputs = network(x.expand(20_000, *x.shape[1:])).flatten(1)
        by_weights = torch.cat([network(x, local=False) for _ in range(800)]).flatten(1)
    spread = by_weights.std(0)
    assert ((by_outputs.mean(0) - by_weights.mean(0)).abs() < 0.25 * spread).all()
    assert ((by_outputs.std(0) / spread - 1).abs() < 0.2).all()


def test_without_noise_it_is_the_network_at_its_means() -> None:
    network, x = small_network(), torch.randn(6, 2, 3, 3, dtype=torch.float64)
    with torch.no_grad():
        for log_std in network.log_std:
            log_std.fill_(-60.0)
    for local in (True, False):
        torch.testing.assert_close(network(x, local=local), network.mean(x))


def test_parameters_outside_layers_are_drawn_too() -> None:
    network = StochasticNetwork(nn.LayerNorm(4), variance=1.0)
    x = torch.randn(3, 4)
    assert not torch.equal(network(x), network(x))


def test_tied_weights_are_drawn_once() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(2, 2, bias=False)
            self.other = nn.Linear(2, 2, bias=False)
            self.other.weight = self.one.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.one(x) - self.other(x)

    network = StochasticNetwork(Twice(), variance=1.0)
    assert network(torch.randn(5, 2)).abs().max() == 0


def test_weights_that_are_read_without_a_call_are_noticed() -> None:
    class Reads(nn.Linear):
        pass

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.inner.weight

    network = StochasticNetwork(Outer())
    with pytest.raises(ValueError, match="layer inner of model was not called"):
        network(torch.ones(1, 2))
    assert network(torch.ones(1, 2), local=False).shape == (1, 2)
    assert StochasticNetwork(Reads(2, 2))(torch.ones(1, 2)).shape == (1, 2)


def test_state_comes_back_with_the_examples_of_the_prior() -> None:
    x, y = torch.randn(7, 3), torch.arange(7) % 2
    network = PACBayesClassifier(3, 2, widths=(4,))
    network.set_prior(learnt_from=(x[:4], y[:4]))
    other = PACBayesClassifier(3, 2, widths=(4,))
    other.load_state_dict(network.state_dict())
    assert other.made_prior(x.double(), y).tolist() == [True] * 4 + [False] * 3
    assert copy.deepcopy(network).kl().item() == other.kl().item()
    with pytest.raises(ValueError, match="4 of 7 examples made it"):
        certify(network, (x, y))
    assert certify(network, (x[4:], y[4:]), samples=20).n == 3


def test_certificate_grows_with_the_divergence_and_keeps_the_mode() -> None:
    torch.manual_seed(2)
    x = torch.randn(500, 2)
    y = (x[:, 0] > 0).long()
    model = nn.Linear(2, 1)
    model.weight.data, model.bias.data = torch.tensor([[3.0, 0.0]]), torch.zeros(1)
    near = StochasticNetwork(model, variance=0.01).train()
    draws = torch.Generator().manual_seed(0)
    first = certify(near, (x, y), 200, generator=draws)
    near.set_prior({"weight": torch.zeros(1, 2), "bias": torch.zeros(1)})
    second = certify(near, (x, y), 200, generator=draws.manual_seed(0))
    assert first.error == second.error < first.error_bound < first.bound.value < second.bound.value
    assert near.training
    assert "test set of 500" in str(first)


def test_bad_input() -> None:
    network = StochasticNetwork(nn.Linear(2, 2))
    x, y = torch.randn(5, 2), torch.zeros(5, dtype=torch.long)
    with pytest.raises(ValueError, match="model must have parameters"):
        StochasticNetwork(nn.ReLU())
    with pytest.raises(ValueError, match="prior must have the parameters of model"):
        network.set_prior({"weight": torch.zeros(2, 2)})
    with pytest.raises(ValueError, match="prior must have the shapes of model"):
        network.set_prior(nn.Linear(3, 2))
    with pytest.raises(ValueError, match="variance must be > 0"):
        StochasticNetwork(nn.Linear(2, 2), variance=0.0)
    with pytest.raises(ValueError, match="n must be >= 1"):
        certify(network, (x[:0], y[:0]))
    with pytest.raises(ValueError, match="as many inputs as classes"):
        certify(network, (x, y[:4]))
    with pytest.raises(ValueError, match="confidence"):
        certify(network, (x, y), confidence=1.0)
