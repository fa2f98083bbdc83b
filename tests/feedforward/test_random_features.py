"""Random features: the same network from the same generator, least squares, dtypes, devices, refusals."""

import pytest
import torch
from torch import nn

from lemmata.feedforward import RandomFeatures


def make(inputs=2, hidden=20, dtype=torch.float64, **options):
    return RandomFeatures(inputs, hidden, generator=torch.Generator().manual_seed(0), dtype=dtype, **options)


def data(points=60, inputs=2):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(points, inputs, generator=generator, dtype=torch.float64)
    return x, torch.randn(points, 3, generator=generator, dtype=torch.float64)


def test_units_turn_within_the_radius_and_weights_have_the_scale():
    net = make(3, 4000, scale=2.0, radius=0.5)
    places = -net.hidden.bias / net.hidden.weight.norm(dim=1)
    assert float(places.abs().max()) <= 0.5 * (1 + 1e-12)
    # Uniform and normal: 12,000 weights and 4,000 places show their deviations to 5 of theirs.
    assert float(net.hidden.weight.std()) == pytest.approx(2.0, rel=5 / (2 * 12_000) ** 0.5)
    assert float(places.abs().mean()) == pytest.approx(0.25, rel=5 / (3 * 4000) ** 0.5)
    assert float(places.mean()) == pytest.approx(0.0, abs=5 * 0.5 / (3 * 4000) ** 0.5)
    assert float(net.hidden.weight.mean()) == pytest.approx(0.0, abs=5 * 2.0 / 12_000**0.5)


def test_a_generator_draws_the_same_network_in_every_dtype():
    wide, narrow = make(), make(dtype=torch.float32)
    assert torch.equal(wide.hidden.weight.float(), narrow.hidden.weight)
    assert torch.equal(wide.hidden.bias.float(), narrow.hidden.bias)
    x, y = data()
    assert narrow.fit(x.float(), y[:, 0].float())(x.float()).dtype == torch.float32
    assert torch.allclose(narrow(x.float()).double(), wide.fit(x, y[:, 0])(x), atol=1e-2)


def test_the_fit_meets_the_normal_equations_of_ridge_regression():
    x, y = data()
    net = make(outputs=3, activation="tanh")
    assert net.fit(x, y, ridge=0.01) is net
    units = torch.cat([net.features(x), torch.ones(60, 1, dtype=torch.float64)], dim=1)
    weights = torch.cat([net.readout.weight.mT, net.readout.bias[None]])
    gradient = units.mT @ (units @ weights - y) / 60 + 0.01 * weights
    assert float(gradient.detach().abs().max()) < 1e-12
    assert torch.allclose(net(x), units @ weights)


def test_fewer_points_than_units_are_met():
    x, y = data(points=5)
    net = make(hidden=200).fit(x, y[:, 0], ridge=1e-14)
    assert torch.allclose(net(x)[:, 0], y[:, 0], atol=1e-6)


def test_only_the_readout_learns_and_the_state_comes_back():
    net = make(activation="sigmoid")
    assert [name for name, p in net.named_parameters() if p.requires_grad] == ["readout.weight", "readout.bias"]
    assert not make()(data()[0]).any()
    other = RandomFeatures(2, 20, activation="sigmoid", dtype=torch.float64)
    other.load_state_dict(net.state_dict())
    x, y = data()
    assert torch.equal(other.fit(x, y[:, 0])(x), net.fit(x, y[:, 0])(x))


def test_functions_are_activations_and_meta_devices_hold_them():
    net = make(activation=torch.cos)
    x, _ = data()
    assert torch.equal(net.features(x), torch.cos(nn.functional.linear(x, net.hidden.weight, net.hidden.bias)))
    assert RandomFeatures(2, 20, device="meta")(x.float().to("meta")).shape == (60, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": 0}, "inputs must be >= 1"),
        ({"hidden": 0}, "hidden must be >= 1"),
        ({"outputs": 0}, "outputs must be >= 1"),
        ({"scale": 0.0}, "scale must be > 0"),
        ({"radius": -1.0}, "radius must be > 0"),
        ({"activation": "rleu"}, "did you mean relu"),
    ],
)
def test_bad_settings_are_refused(unchecked, options, message):
    with pytest.raises(ValueError, match=message):
        RandomFeatures(**({"inputs": 2} | options))


@pytest.mark.parametrize(
    ("x", "y", "ridge", "message"),
    [
        (torch.ones(4, 3), torch.ones(4), 1e-6, "x must have 2 inputs on its last axis"),
        (
            torch.ones(4, 2),
            torch.ones(3),
            1e-6,
            r"y must be a \(4, 1\) tensor, one row for each of x, got shape \(3,\)",
        ),
        (torch.ones(4, 2), torch.ones(4, 2), 1e-6, r"y must be a \(4, 1\) tensor"),
        (torch.ones(4, 2), torch.full((4,), torch.nan), 1e-6, "y must be finite"),
        (torch.ones(4, 2), torch.ones(4), 0.0, "ridge must be > 0"),
    ],
)
def test_bad_data_are_refused(unchecked, x, y, ridge, message):
    with pytest.raises(ValueError, match=message):
        make(dtype=torch.float32).fit(x, y, ridge)


def test_lists_are_refused_and_other_dtypes_are_taken(unchecked):
    x, y = torch.linspace(-1, 1, 50, dtype=torch.float64)[:, None], torch.linspace(0, 1, 50, dtype=torch.float64)
    with pytest.raises(TypeError, match=r"y must be a tensor, got list: use torch\.as_tensor\(y\)"):
        RandomFeatures(1).fit(x, y.tolist())
    with pytest.raises(TypeError, match=r"y must be floating point, got torch\.int64"):
        RandomFeatures(1).fit(x, torch.ones(50).long())
    with pytest.raises(ValueError, match=r"x must have 1 input on its last axis, got shape \(3, 2\)"):
        RandomFeatures(1)(torch.ones(3, 2))
    with pytest.raises(ValueError, match="unknown activation 3"):
        RandomFeatures(1, activation=3)
    network = RandomFeatures(1, dtype=torch.float32).fit(x, y)
    torch.testing.assert_close(network(x.float())[:, 0], y.float(), rtol=0, atol=0.01)


def test_units_are_four_times_as_steep_as_a_normal_draw_unless_told():
    steep = RandomFeatures(1, 4096, generator=torch.Generator().manual_seed(0)).hidden.weight.std().item()
    assert steep == pytest.approx(4.0, rel=0.07)  # six standard errors of a deviation of 4096 values
