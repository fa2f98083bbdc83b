"""Measurements on functions: bad input, honesty about what is proved, dtypes, determinism."""

import math

import pytest
import torch
from torch import nn

from lemmata.foundations import (
    Box,
    Measured,
    QuadraticFunction,
    batch_gradients,
    batch_hessians,
    batch_jacobians,
    batch_values,
    box_region,
    chord_gap,
    condition_number,
    curvature_between,
    difference_quotient,
    function_condition,
    is_convex,
    is_convex_set,
    is_subgradient,
    jensen_gap,
    least_squares_pl,
    lipschitz,
    pl_constant,
    pl_ratio,
    quadratic_bound_gap,
    smoothness,
    strong_convexity,
)

DOUBLE = torch.float64


def squares(x):
    return x.square().sum()


@pytest.mark.parametrize("measure", [smoothness, strong_convexity, lipschitz, is_convex, pl_constant])
def test_regions_are_checked(measure, unchecked):
    with pytest.raises(TypeError, match=r"region must be a pair \(low, high\), got float"):
        measure(squares, 3.0)
    with pytest.raises(ValueError, match="low must be below high"):
        measure(squares, (1.0, 1.0))
    with pytest.raises(ValueError, match="low and high must have the same shape"):
        measure(squares, (torch.zeros(2), torch.ones(3)))
    with pytest.raises(ValueError, match="low must be finite, got -inf"):
        measure(squares, (-math.inf, 0.0))
    with pytest.raises(ValueError, match="points must be >= 1, got 0"):
        measure(squares, (0.0, 1.0), points=0)


@pytest.mark.parametrize("measure", [smoothness, strong_convexity, lipschitz, pl_constant])
def test_without_a_region_only_known_functions_are_measured(measure):
    with pytest.raises(ValueError, match="region must be a pair"):
        measure(squares)


def test_a_function_of_the_wrong_kind_is_named(unchecked):
    with pytest.raises(ValueError, match=r"f must return one number for one vector, got shape \(2,\)"):
        smoothness(lambda x: x, (torch.zeros(2), torch.ones(2)))
    with pytest.raises(TypeError, match="f must be a function of one vector, got int"):
        batch_values(3, torch.zeros(1, 1))
    with pytest.raises(ValueError, match=r"x must be a \(..., n\) tensor, got shape \(\)"):
        batch_values(squares, torch.tensor(1.0))
    with pytest.raises(ValueError, match="f must be finite with its derivatives in the region"):
        smoothness(lambda x: torch.log(x).sum(), (-1.0, 1.0))


def test_a_function_that_looks_at_its_values_is_measured_in_a_loop():
    def branching(x):
        return squares(x) if x[0] > 0 else -squares(x)

    assert batch_values(branching, torch.tensor([[2.0], [-2.0]])).tolist() == [4.0, -4.0]
    assert not is_convex(branching, (-1.0, 1.0), points=32).value


def test_derivatives_keep_batch_axes_and_dtype():
    x = torch.zeros(2, 3, 4, dtype=torch.float32)
    assert batch_values(squares, x).shape == (2, 3)
    assert batch_gradients(squares, x).shape == (2, 3, 4)
    assert batch_hessians(squares, x).shape == (2, 3, 4, 4)
    assert batch_jacobians(torch.sin, x).shape == (2, 3, 4, 4)
    assert batch_hessians(squares, x).dtype == torch.float32


def test_an_estimate_is_never_called_a_proof():
    found = smoothness(lambda x: torch.relu(x).square().sum(), (-1.0, 1.0), points=64)
    assert not found.certified
    assert "an estimate, not a proof" in str(found)
    assert len(found.witness) == 2
    size, _ = curvature_between(lambda x: torch.relu(x).square().sum(), *found.witness)
    assert float(size) == pytest.approx(found.value)


def test_a_bound_too_loose_to_help_is_told_but_not_taken():
    found = strong_convexity(lambda x: torch.exp(x.sum()), (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE)))
    assert not found.certified
    assert "proved is only >=" in str(found)
    assert found.value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (lambda x: (x**4 - 3 * x**2).sum(), -1.0, 1.5),
        (lambda x: torch.exp(-x.square()).sum(), -2.0, 2.0),
        (lambda x: 1 / (2 + torch.cos(x)).sum(), -3.0, 3.0),
        (lambda x: torch.log(1 + x.square()).sum(), -2.0, 2.0),
        (lambda x: (1 + x @ x).sqrt(), -1.0, 1.0),
        (lambda x: torch.sigmoid(3 * x).sum() + torch.tanh(x).sum() / 2, -1.0, 1.0),
        (lambda x: nn.functional.softplus(2 - x).mean() - x[0] * 0.5, -1.0, 1.0),
        (lambda x: (torch.ones(1, dtype=DOUBLE) - x).square().sum() * torch.sin(x).sum() ** 3, -1.0, 1.0),
        (lambda x: torch.logsumexp(torch.tensor([[1.0], [-2.0]], dtype=DOUBLE) @ x, 0), -1.0, 1.0),
    ],
)
def test_certified_bounds_enclose_the_curvature_at_every_point(f, low, high):
    grid = torch.linspace(low, high, 2001, dtype=DOUBLE)[:, None]
    bends = batch_hessians(f, grid)[:, 0, 0]
    top, bottom = smoothness(f, (low, high), points=128), strong_convexity(f, (low, high), points=128)
    assert top.certified
    assert top.value >= float(bends.abs().max())
    assert top.value <= 1.1 * float(bends.abs().max())
    assert bottom.value <= float(bends.min()) + 1e-5 * (1 - bottom.certified)


def test_numbers_are_enclosed_in_all_their_digits():
    tenth = smoothness(lambda x: 0.1 * (x**2).sum(), (-1.0, 1.0), points=16)
    assert tenth.certified
    assert tenth.value == pytest.approx(0.2, rel=1e-12)
    wave = smoothness(lambda x: torch.sin(x).sum(), (0.1, 0.2), points=16)
    assert wave.certified
    assert wave.value == pytest.approx(math.sin(0.2), rel=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: nn.functional.softplus(x, 2.0).sum(),
        lambda x: (x**1.5).sum(),
        lambda x: torch.sub(x, x, alpha=2).sum(),
        lambda x: torch.cos(1e7 * x).sum(),
        lambda x: (1 / (x - 1.6)).sum(),
    ],
)
def test_what_intervals_do_not_know_is_never_certified(f):
    assert not smoothness(f, (1.1, 1.9), points=16).certified


def test_a_condition_number_is_certified_only_where_both_constants_are():
    square = (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE))

    def valley(x):
        return torch.exp(x.sum()) + x.square().sum() / 10

    assert smoothness(valley, square, points=64).certified
    found = function_condition(valley, square, points=64)
    assert not found.certified
    assert found.seen == pytest.approx(10 * math.exp(2) + 1, rel=1e-3)


def test_a_network_of_tanh_units_has_certified_smoothness():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    box = (-torch.full((2,), 0.5, dtype=DOUBLE), torch.full((2,), 0.5, dtype=DOUBLE))
    found = smoothness(network, box, points=64)
    points = box_region(box).sample(500, torch.Generator().manual_seed(1))
    assert found.certified
    assert float(torch.linalg.eigvalsh(batch_hessians(network, points).detach()).abs().max()) <= found.value


def test_the_same_seed_gives_the_same_answer():
    once, again = (smoothness(lambda x: torch.relu(x.sin()).sum(), (-3.0, 3.0), points=50) for _ in range(2))
    assert once.value == again.value
    assert torch.equal(once.witness[0], again.witness[0])


def test_float32_regions_are_measured_in_float32():
    found = lipschitz(torch.tanh, (-torch.ones(2), torch.ones(2)), points=64)
    assert found.witness[0].dtype == torch.float32
    assert found.value == pytest.approx(1.0, abs=1e-2)


def test_answers_are_truth_values_and_constants_are_not():
    assert is_convex(squares, (-1.0, 1.0), points=32)
    with pytest.raises(TypeError, match="smoothness constant is a number"):
        bool(smoothness(squares, (-1.0, 1.0), points=32))
    assert str(Measured("convex set", True, False, "none left")) == (
        "convex set yes (an estimate, not a proof: none left)"
    )


def test_a_concave_kink_is_found_though_its_hessian_vanishes():
    assert not is_convex(lambda x: -x.abs().sum(), (-1.0, 1.0)).value
    assert is_convex(lambda x: x.abs().sum(), (-1.0, 1.0)).value


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (lambda x: (3 * x).sum(), -1.0, 1.0),
        (lambda x: x.square().sum(), 1.0, 1.001),
        (lambda x: torch.logsumexp(x, 0), -1.0, 1.0),
        (lambda x: torch.logsumexp(x, 0), 1.0, 1.01),
        (lambda x: torch.exp(x).sum(), -1.0, 1.0),
    ],
)
def test_rounding_in_float32_refutes_neither_convexity_nor_a_gradient(f, low, high):
    box = (torch.full((3,), low), torch.full((3,), high))
    centre = (box[0] + box[1]) / 2
    for seed in range(5):
        assert is_convex(f, box, points=256, generator=torch.Generator().manual_seed(seed)).value
        assert is_subgradient(f, centre, torch.func.grad(f)(centre), box, points=256).value
    if low < 0:  # in the small boxes there is nothing to see
        assert not is_convex(lambda x: f(x) - 10 * x.square().sum(), box, points=256).value


def test_quadratics_with_a_negative_direction_are_refuted_in_any_box():
    saddle = QuadraticFunction(torch.diag(torch.tensor([1.0, -1e-3], dtype=DOUBLE)))
    box = (torch.full((2,), 5.0, dtype=DOUBLE), torch.full((2,), 6.0, dtype=DOUBLE))
    found = is_convex(saddle, box, points=8)
    assert not found.value
    assert all(bool((corner >= 5).all() and (corner <= 6).all()) for corner in found.witness[:2])


def test_quadratic_functions_check_their_parts(unchecked):
    with pytest.raises(ValueError, match="matrix must be symmetric"):
        QuadraticFunction(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"linear must be a \(..., 2\) tensor to fit matrix"):
        QuadraticFunction(torch.eye(2), torch.zeros(3))
    with pytest.raises(ValueError, match="constant must be finite"):
        QuadraticFunction(torch.eye(2), constant=math.nan)
    with pytest.raises(ValueError, match="has no minimum"):
        _ = QuadraticFunction(-torch.eye(2)).minimiser
    with pytest.raises(ValueError, match="has no minimum"):
        _ = QuadraticFunction(torch.zeros(1, 1), torch.ones(1)).minimum
    assert repr(QuadraticFunction(torch.eye(3))) == "QuadraticFunction(n=3)"


def test_the_minimum_of_a_quadratic_has_derivatives_in_all_its_parts():
    matrix = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=DOUBLE, requires_grad=True)
    linear = torch.tensor([1.0, 2.0], dtype=DOUBLE, requires_grad=True)
    for part in ("minimiser", "minimum"):
        value = lambda a, b, part=part: getattr(QuadraticFunction((a + a.T) / 2, b), part)  # noqa: E731
        assert torch.autograd.gradcheck(value, (matrix, linear))


def test_the_minimum_of_a_quadratic_with_a_kernel_is_found_at_every_condition():
    q = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=DOUBLE))[0]
    for spread in (1e-12, 1e-6, 1.0, 1e3):
        matrix = (q * torch.tensor([0.0, 1e-3, 1.0, 1e3], dtype=DOUBLE) * spread) @ q.T
        f = QuadraticFunction((matrix + matrix.T) / 2, matrix @ torch.ones(4, dtype=DOUBLE))
        along = q[:, 1:] @ (q[:, 1:].T @ -torch.ones(4, dtype=DOUBLE))
        torch.testing.assert_close(f.minimiser, along, rtol=1e-8, atol=1e-8)


def test_gaps_check_their_weights(unchecked):
    x = torch.zeros(2, 1)
    with pytest.raises(ValueError, match=r"weight must lie between 0 and 1, got 0\.5 to 1\.5"):
        chord_gap(squares, x, x, torch.tensor([0.5, 1.5]))
    with pytest.raises(ValueError, match="weights must be >= 0 and sum to 1"):
        jensen_gap(squares, x, torch.tensor([0.5, 0.6]))
    with pytest.raises(ValueError, match="weights must be >= 0 and sum to 1"):
        jensen_gap(squares, x, torch.tensor([-0.5, 1.5]))
    with pytest.raises(ValueError, match="curvature must be finite"):
        quadratic_bound_gap(squares, x, x, math.inf)
    for quotient in (curvature_between, difference_quotient):
        with pytest.raises(ValueError, match="x and y must differ"):
            quotient(squares, x, x)


def test_sets_are_known_by_their_members():
    with pytest.raises(ValueError, match="contains must return one boolean for each row"):
        is_convex_set(lambda x: x, (0.0, 1.0))
    with pytest.raises(ValueError, match="region must hold points of the set, found 0 among 4,096"):
        is_convex_set(lambda x: torch.zeros(len(x), dtype=torch.bool), (0.0, 1.0))


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


def test_the_pl_condition_refuses_a_wrong_minimum():
    with pytest.raises(ValueError, match="minimum must not exceed the values of f"):
        pl_ratio(squares, torch.zeros(1, 2), 1.0)
    with pytest.raises(ValueError, match="f must not be constant"):
        pl_constant(QuadraticFunction(torch.zeros(2, 2)))
    with pytest.raises(ValueError, match="has no minimum"):
        pl_constant(QuadraticFunction(-torch.eye(2)))
    with pytest.raises(ValueError, match="kernel must be symmetric"):
        least_squares_pl(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))


@pytest.mark.parametrize(
    ("dtype", "least"),
    [(torch.float32, 1e-2), (torch.float32, 1e-4), (DOUBLE, 1e-2), (DOUBLE, 1e-3), (DOUBLE, 1e-4), (DOUBLE, 1e-5)],
)
def test_an_ill_conditioned_quadratic_has_a_minimum_and_attains_it(dtype, least):
    generator = torch.Generator().manual_seed(0)
    q = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=DOUBLE))[0]
    matrix = ((q * torch.tensor([1.0, 1.0, 1.0, least])) @ q.T).to(dtype)
    f = QuadraticFunction((matrix + matrix.T) / 2, torch.randn(4, generator=generator, dtype=DOUBLE).to(dtype))
    assert pl_constant(f).value == pytest.approx(least, rel=0.1)
    if least**-1 * torch.finfo(dtype).eps < 1e-4:  # else the values at the minimum have lost more than half
        assert pl_ratio(f, f.minimiser.expand(7, 4), float(f.minimum)).isinf().all()


def test_the_pl_constant_does_not_depend_on_the_units_of_the_function():
    for unit in (1e-12, 1.0, 1e12):
        found = pl_constant(lambda x, unit=unit: unit * (x**2 + 3 * x**4).sum(), (-1.0, 2.0), minimum=0.0, points=64)
        assert found.value == pytest.approx(2 * unit, rel=1e-3)


def test_condition_numbers_of_singular_and_zero_matrices():
    assert condition_number(torch.diag(torch.tensor([1.0, 0.0]))).isinf()
    assert condition_number(torch.eye(2).expand(3, 2, 2)).shape == (3,)
    with pytest.raises(ValueError, match="matrix must not be zero"):
        condition_number(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="f must be strongly convex, but its curvature falls to -"):
        function_condition(QuadraticFunction(torch.diag(torch.tensor([1.0, -1.0]))))


def test_a_box_samples_inside_and_has_its_corners():
    box = Box(torch.tensor([0.0, -1.0]), torch.tensor([1.0, 1.0]))
    sample = box.sample(100, torch.Generator().manual_seed(0))
    assert torch.equal(box.clip(sample), sample)
    assert box.corners().shape == (4, 2)
    wide = Box(torch.zeros(9), torch.ones(9))
    assert wide.corners().shape == (64, 9)
    assert box_region(box) is box


def test_a_pair_of_points_near_a_side_keeps_its_direction():
    box = Box(torch.zeros(2), torch.ones(2))
    first, second = box.pair(torch.tensor([0.0, 0.3]), torch.tensor([1.0, -1.0]), 0.1)
    assert torch.allclose(second - first, torch.tensor([0.2, -0.2]) / math.sqrt(2))
    assert torch.equal(torch.stack(box.pair(box.centre, torch.zeros(2))), torch.stack([box.low, box.high]))
