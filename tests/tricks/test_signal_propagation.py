"""Variances through depth: by hand, of any module, without a trace left behind; refusals."""

import pytest
import torch
from torch import nn

from lemmata.feedforward import MLP
from lemmata.tricks import BatchNorm, initialize, variance_profile


def test_a_profile_is_what_one_finds_by_hand():
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 3), nn.ReLU())).double()
    x = torch.randn(7, 4, dtype=torch.float64)
    profile = variance_profile(model, x, generator=torch.Generator().manual_seed(1))
    assert profile.names == ("0", "1", "2.0", "2.1")
    assert profile.kinds == ("Linear", "Tanh", "Linear", "ReLU")
    hidden = [x]
    for layer in (model[0], model[1], *model[2]):
        hidden.append(layer(hidden[-1]))
    upstream = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gradients = torch.autograd.grad(hidden[-1], hidden[1:], upstream)
    torch.testing.assert_close(profile.forward, torch.stack([h.detach().square().mean() for h in hidden[1:]]))
    torch.testing.assert_close(profile.backward, torch.stack([g.square().mean() for g in gradients]))


def test_one_kind_of_layer_can_be_looked_at_alone():
    profile = variance_profile(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)), torch.randn(4, 3))
    linear = profile.of("Linear")
    assert linear.names == ("0", "2")
    assert linear.kinds == ("Linear", "Linear")
    assert torch.equal(linear.forward, profile.forward[[0, 2]])
    assert torch.equal(linear.backward, profile.backward[[0, 2]])
    with pytest.raises(ValueError, match="kind must be one of Linear, ReLU, got 'Tanh'"):
        profile.of("Tanh")


@pytest.mark.parametrize(
    ("scheme", "activation", "factor"), [("he", nn.ReLU, 1.0), ("lecun", nn.ReLU, 0.5), ("lecun", nn.Identity, 1.0)]
)
def test_fifty_layers_multiply_fifty_gains(scheme, activation, factor):
    parts = [part for _ in range(50) for part in (nn.Linear(256, 256, bias=False), activation())]
    model = nn.Sequential(*parts)
    initialize(model, scheme, generator=torch.Generator().manual_seed(0))
    profile = variance_profile(model, torch.randn(32, 256)).of("Linear")
    grown = (profile.forward[-1] / profile.forward[0]).item()
    back = (profile.backward[0] / profile.backward[-1]).item()
    # The logarithm of each gain has the variance 5/256 for relu: over 49 layers 0.98, of which four deviations are 4.
    for found in (grown, back):
        assert factor**49 / 60 < found < factor**49 * 60


def test_it_leaves_no_trace():
    model = nn.Sequential(nn.Linear(4, 4), BatchNorm(4), nn.Dropout(0.5), nn.Linear(4, 2))
    before = {name: values.clone() for name, values in model.state_dict().items()}
    state = torch.random.get_rng_state()
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    profile = variance_profile(model, x, torch.Generator().manual_seed(3))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    assert all(values.grad is None for values in model.parameters())
    assert not x.requires_grad
    assert not any(module._forward_hooks for module in model.modules())
    again = variance_profile(model, x, torch.Generator().manual_seed(3))
    assert torch.equal(profile.forward, again.forward)
    assert torch.equal(profile.backward, again.backward)


class Branch(nn.Module):
    """One layer twice, one whose output is thrown away."""

    def __init__(self):
        super().__init__()
        self.twice, self.lost = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        self.lost(x)
        return self.twice(self.twice(x))


def test_calls_are_counted_and_what_nothing_depends_on_has_no_gradient():
    profile = variance_profile(Branch(), torch.randn(4, 3))
    assert profile.names == ("lost", "twice", "twice")
    assert profile.backward.isnan().tolist() == [True, False, False]


def test_any_module_will_do():
    x = torch.randn(4, 6)
    assert variance_profile(MLP(6, 2, widths=(5, 5)), x).kinds == ("Linear",) * 3
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert variance_profile(encoder, torch.randn(2, 5, 8)).forward.isfinite().all()
    assert variance_profile(nn.Linear(6, 1), x[:1]).names == ("",)
    frozen = nn.Sequential(nn.ReLU(), nn.Linear(6, 2)).requires_grad_(False)
    with torch.no_grad():
        assert variance_profile(frozen, x).backward.isfinite().all()


class Frozen(nn.Module):
    """A branch without gradients, and one with; or the first alone."""

    def __init__(self, alone):
        super().__init__()
        self.still, self.moving, self.alone = nn.Linear(3, 3), nn.Linear(3, 3), alone

    def forward(self, x):
        with torch.no_grad():
            still = self.still(x)
        moving = self.moving(x)
        return still if self.alone else still + moving


@pytest.mark.parametrize("alone", [False, True])
def test_a_branch_without_gradients_has_none(alone):
    profile = variance_profile(Frozen(alone), torch.randn(4, 3))
    assert profile.forward.isfinite().all()
    assert profile.backward.isnan().tolist() == [True, alone]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 2)

    def forward(self, x):
        return self.lstm(x)[0]


class Largest(nn.Module):
    """Integers have no variance to be kept."""

    def forward(self, x):
        return x.argmax(1)


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.largest, self.embedding = Largest(), nn.Embedding(6, 2)

    def forward(self, x):
        return self.embedding(self.largest(x))


def test_layers_that_give_whole_numbers_are_passed_over():
    assert variance_profile(Chosen(), torch.randn(4, 6)).names == ("embedding",)


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: variance_profile(torch.relu, torch.randn(2, 2)), "model must be an nn.Module"),
        (lambda: variance_profile(nn.ReLU(), torch.tensor([float("nan")])), "x must be finite, found 1 NaN value"),
        (
            lambda: variance_profile(nn.Embedding(5, 2), torch.tensor([[1, 2]])),
            "x must be floating point, got torch.int64: a model of tokens is looked at behind its embedding",
        ),
        (lambda: variance_profile(nn.ReLU(), [1.0]), "x must be a tensor, got list"),
        (lambda: variance_profile(Recurrent(), torch.randn(2, 2)), "no layer of the model returns a tensor"),
        (lambda: variance_profile(Pair(), torch.randn(2, 2)), "model must return a tensor, got tuple"),
        (
            lambda: variance_profile(nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), torch.randn(2, 2)),
            r"the output of 0 \(Linear\) is changed in place by what follows: use inplace=False",
        ),
    ],
)
def test_bad_input_is_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
