"""Variances foretold: against integrals, against wide networks, refusals."""

import math

import pytest
import torch
from torch import nn

from lemmata.feedforward import MLP
from lemmata.foundations.activations import ACTIVATION_TABLE, activation
from lemmata.tricks import expected_profile, initialize, variance_profile, weight_variance


@pytest.mark.parametrize("name", sorted(ACTIVATION_TABLE))
def test_one_layer_is_the_integral(name):
    z = torch.linspace(-12, 12, 400_000, dtype=torch.float64)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    phi, q = activation(name), 1.7
    found = expected_profile([30, 30, 40], name, "lecun", square=q)
    expected = (phi(math.sqrt(q) * z).square() * density).sum()
    assert found.forward[1].item() == pytest.approx(expected.item(), rel=1e-5)
    slopes = (phi.derivative(math.sqrt(q) * z).square() * density).sum()
    assert found.backward[0].item() == pytest.approx(40 / 30 * slopes.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "scheme"), [("relu", "he"), ("relu", "orthogonal"), ("tanh", "lecun"), ("gelu", "glorot")]
)
def test_wide_networks_are_near(name, scheme):
    widths = [500, 800, 400, 700]
    model = MLP(500, 700, widths=(800, 400), activation=name, bias=False)
    initialize(model, scheme, gain=1.2, generator=torch.Generator().manual_seed(0))
    x = torch.randn(60, 500, generator=torch.Generator().manual_seed(1))
    measured = variance_profile(model, x, torch.Generator().manual_seed(2))
    foretold = expected_profile(widths, name, scheme, gain=1.2)
    # Each layer scatters by some hundredths at these widths.
    torch.testing.assert_close(measured.forward, foretold.forward, rtol=0.2, atol=0)
    torch.testing.assert_close(measured.backward, foretold.backward, rtol=0.2, atol=0)


def test_forward_and_back_multiply_their_gains():
    profile = expected_profile([100, 50, 100, 50, 10], "identity", "glorot", square=3.0)
    gains = [n * weight_variance("glorot", n, m) for n, m in ((100, 50), (50, 100), (100, 50), (50, 10))]
    assert profile.forward.tolist() == pytest.approx([3 * math.prod(gains[: k + 1]) for k in range(4)])
    back = [m * weight_variance("glorot", n, m) for n, m in ((50, 100), (100, 50), (50, 10))]
    assert profile.backward.tolist() == pytest.approx([math.prod(back[k:]) for k in range(4)])
    assert profile.kinds == ("Linear",) * 4
    assert profile.names == ("0", "1", "2", "3")
    assert expected_profile([3, 2], square=0).forward.tolist() == [0.0]


@pytest.mark.parametrize(
    ("scheme", "variance"), [("lecun", 1 / 8), ("he", 1 / 4), ("glorot", 1 / 10), ("orthogonal", 1 / 12)]
)
def test_the_variance_of_a_scheme_is_told(scheme, variance):
    assert weight_variance(scheme, 8, 12) == pytest.approx(variance)
    assert weight_variance(scheme, 8, 12, gain=3.0) == pytest.approx(9 * variance)
    if scheme == "orthogonal":
        layer = nn.Linear(8, 12)
        assert initialize(layer, scheme)[0].variance == pytest.approx(variance)
        assert layer.weight.square().mean().item() == pytest.approx(variance, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: expected_profile([3]), r"widths must have two entries at least, inputs and outputs, got \[3\]"),
        (lambda: expected_profile([3, 0]), "widths must be >= 1, got 0"),
        (lambda: expected_profile([3, 3], "rleu"), "unknown activation 'rleu': did you mean relu?"),
        (lambda: expected_profile([3, 3], scheme="fixed"), "scheme must be one of lecun, glorot, he, orthogonal"),
        (lambda: expected_profile([3, 3], gain=0), "gain must be > 0, got 0"),
        (lambda: expected_profile([3, 3], square=-1.0), "square must be >= 0, got -1.0"),
        (lambda: weight_variance("he", 0, 3), "inputs must be > 0, got 0"),
    ],
)
def test_bad_choices_are_answered_in_words(make, said):
    with pytest.raises(ValueError, match=said):
        make()
