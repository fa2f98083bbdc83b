"""Lipschitz constants of networks: known layers, unknown ones, kinks."""

import math
from fractions import Fraction

import mpmath
import pytest
import torch
from torch import nn

from lemmata.foundations import lipschitz
from lemmata.foundations.activations import ACTIVATION_TABLE, activation

DOUBLE = torch.float64


def difference_quotient(f, x, y):
    return (f(x) - f(y)).norm(dim=-1) / (x - y).norm(dim=-1)


def test_float32_regions_are_measured_in_float32():
    found = lipschitz(torch.tanh, (-torch.ones(2), torch.ones(2)), points=64)
    assert found.witness[0].dtype == torch.float32
    assert found.value == pytest.approx(1.0, abs=1e-2)


def test_networks_with_unknown_layers_need_a_region_and_stay_estimates():
    network = nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=-1))
    with pytest.raises(ValueError, match="only networks of known layers do without"):
        lipschitz(network)
    assert not lipschitz(network, (-torch.ones(2), torch.ones(2)), points=16).certified


@pytest.mark.parametrize("layer", [nn.Softplus(), nn.Softplus(threshold=1.0)])
def test_a_softplus_that_jumps_at_its_threshold_has_no_certified_constant(layer):
    with pytest.raises(ValueError, match="only networks of known layers do without"):
        lipschitz(nn.Sequential(nn.Linear(2, 2), layer))
    edge = torch.tensor([float(layer.threshold)], dtype=DOUBLE)
    assert difference_quotient(layer, edge, edge + 1e-12) > 100


@pytest.mark.parametrize(
    ("layer", "constant"),
    [
        (nn.ReLU(), 1.0), (nn.Tanh(), 1.0), (nn.Sigmoid(), 0.25), (nn.SiLU(), 1.09983932),
        (nn.GELU(), 1.12890415), (nn.GELU("tanh"), 1.12899307), (nn.ELU(2.0), 2.0), (nn.ELU(), 1.0),
        (nn.LeakyReLU(3.0), 3.0), (nn.Softsign(), 1.0), (nn.Identity(), 1.0), (nn.Flatten(), 1.0),
        (nn.Sequential(nn.Sigmoid(), nn.Sequential(nn.Sigmoid())), 0.0625),
    ],
)  # fmt: skip
def test_known_layers_have_their_constants(layer, constant):
    assert lipschitz(layer).value == pytest.approx(constant, rel=1e-8)


def close_and_far_pairs():
    """Far apart and ever closer, near 0 and far out; beside 0 and 20, where some have a kink or change their formula.

    With them what the rounding of two values may add to their quotient.
    """
    generator = torch.Generator().manual_seed(0)
    x, far, step = torch.rand((3, 2000, 1), generator=generator, dtype=DOUBLE)
    x, far, step = 120 * x - 60, 120 * far - 60, 10 ** (-9 * step)
    x[:500], x[500:700] = x[:500] / 10, torch.tensor([0.0, 20.0]).repeat(100)[:, None] - step[500:700] / 2
    y = torch.cat([far[:200], x[200:] + step[200:]])
    return x, y, 1e-14 / (x - y).abs()[:, 0] * (x.abs() + 1)[:, 0]


def slopes_of(function, z):
    z = z.detach().requires_grad_()
    return torch.autograd.grad(function(z).sum(), z)[0]


@pytest.mark.parametrize("name", ACTIVATION_TABLE)
def test_activations_have_their_smallest_constant(name):
    known = activation(name)
    x, y, rounding = close_and_far_pairs()
    assert (difference_quotient(known, x, y) - rounding).max() <= known.lipschitz * (1 + 1e-14)
    grid = torch.linspace(-8.0, 8.0, 1601, dtype=DOUBLE)
    assert difference_quotient(known, grid[1:, None], grid[:-1, None]).max() >= 0.99 * known.lipschitz
    assert known.derivative(grid).abs().max() <= known.lipschitz * (1 + 1e-14)
    torch.testing.assert_close(known.derivative(x[:, 0]), slopes_of(known, x[:, 0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "layer",
    [
        nn.GELU(), nn.GELU(approximate="tanh"), nn.ELU(0.5), nn.ELU(1.0), nn.ELU(3.0), nn.LeakyReLU(0.2),
        nn.LeakyReLU(3.0), nn.ReLU(), nn.Tanh(), nn.SiLU(), nn.Softsign(),
    ],
    ids=str,
)  # fmt: skip
def test_constants_of_layers_are_their_steepest_slopes(layer):
    x, y, rounding = close_and_far_pairs()
    constant = lipschitz(layer).value
    assert (difference_quotient(layer, x, y) - rounding).max() <= constant * (1 + 1e-14)
    wide = torch.linspace(-60.0, 60.0, 12001, dtype=DOUBLE)
    assert float(slopes_of(layer, wide).abs().max()) == pytest.approx(constant, abs=3e-5)


def test_constants_of_the_layers_of_a_network_multiply():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 5), nn.Sigmoid(), nn.Linear(5, 2)).double()
    sizes = [float(torch.linalg.matrix_norm(network[index].weight.detach(), 2)) for index in (0, 2)]
    found = lipschitz(network, (-torch.ones(3, dtype=DOUBLE), torch.ones(3, dtype=DOUBLE)), points=64)
    assert found.certified
    assert lipschitz(network).certified
    assert found.value == pytest.approx(0.25 * sizes[0] * sizes[1], rel=1e-3)
    assert 0.05 * found.value <= found.seen <= found.value
    with torch.no_grad():
        assert found.seen == pytest.approx(float(difference_quotient(network, *found.witness)), rel=1e-9)


def test_an_estimate_is_shown_by_its_witness():
    found = lipschitz(torch.sigmoid, (-6.0, 6.0), points=256)
    assert not found.certified
    assert found.value == pytest.approx(0.25, abs=1e-4)
    assert found.seen == pytest.approx(float(difference_quotient(torch.sigmoid, *found.witness)), rel=1e-9)


class Doubled(nn.Sequential):
    def forward(self, x):
        return 2 * x


class SteepELU(nn.ELU):
    def forward(self, x):
        return 5 * x


class SteepLinear(nn.Linear):
    def forward(self, x):
        return 5 * super().forward(x)


def changed(layer, how):
    """A layer of a known class that computes something else."""
    if how == "hook":
        layer.register_forward_hook(lambda layer, given, found: 2 * found)
    elif how == "hook before":
        layer.register_forward_pre_hook(lambda layer, given: (9 * given[0],))
    else:
        layer.forward = lambda x: 7 * x
    return layer


@pytest.mark.parametrize(
    ("layer", "steepest"),
    [
        (Doubled(nn.ReLU()), 2.0), (SteepELU(), 5.0), (SteepLinear(2, 2), None), (changed(nn.ReLU(), "hook"), 2.0),
        (changed(nn.Sequential(nn.ReLU()), "hook before"), 9.0), (changed(nn.ReLU(), "forward"), 7.0),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)), None), (nn.LeakyReLU(math.nan), None),
    ],
)  # fmt: skip
def test_layers_that_are_not_quite_known_are_searched(layer, steepest):
    with pytest.raises(ValueError, match="only networks of known layers do without"):
        lipschitz(nn.Sequential(nn.Tanh(), layer))
    if steepest is not None:
        found = lipschitz(layer, (-torch.ones(2), torch.ones(2)), points=16)
        assert not found.certified
        assert found.value == pytest.approx(steepest, rel=1e-3)


def test_a_hook_on_every_module_is_seen():
    handle = nn.modules.module.register_module_forward_hook(lambda layer, given, found: 2 * found)
    try:
        with pytest.raises(ValueError, match="only networks of known layers do without"):
            lipschitz(nn.ReLU())
    finally:
        handle.remove()
    assert lipschitz(nn.ReLU()).value == 1.0


def test_a_quotient_above_the_product_refutes_it(monkeypatch):
    """As a class does whose forward pass was replaced."""
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, x: 3 * x)
    found = lipschitz(nn.ReLU(), (-1.0, 1.0), points=16)
    assert not found.certified
    assert found.value == pytest.approx(3.0)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_products_of_norms_are_never_short(scale):
    """Diagonal weights, whose norms multiply to a known fraction."""
    torch.manual_seed(0)
    for _ in range(20):
        first, second = (torch.rand(3, dtype=DOUBLE) for _ in range(2))
        network = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.Linear(3, 3)).double()
        for layer, entries in ((network[0], scale * first), (network[2], second)):
            layer.weight.data = torch.diag(entries)
        exact = Fraction(float((scale * first).max())) * Fraction(float(second.max())) / 4
        found = lipschitz(network)
        assert found.certified
        assert exact <= Fraction(found.value) <= exact * (1 + Fraction(1, 10**4))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_constants_of_gelu_are_not_below_their_steepest_slope(approximate):
    mpmath.mp.dps = 40

    def gelu(x):
        if approximate == "none":
            return x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2
        return x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))) / 2

    top = mpmath.findroot(lambda x: mpmath.diff(gelu, x, 2), 1.4)
    steepest = mpmath.diff(gelu, top)
    assert steepest <= lipschitz(nn.GELU(approximate)).value <= steepest * (1 + 1e-15)


def test_half_precision_is_bounded_in_double_and_not_searched():
    layer = nn.Linear(2, 2).half()
    exact = float(torch.linalg.matrix_norm(layer.weight.detach().double(), 2))
    assert exact * (1 - 1e-12) <= lipschitz(layer).value <= exact * 1.001
    with pytest.raises(TypeError, match=r"region must be float32 or float64, got torch.float16: use low.double\(\)"):
        lipschitz(layer, (-torch.ones(2).half(), torch.ones(2).half()))
