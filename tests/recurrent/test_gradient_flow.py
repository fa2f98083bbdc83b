"""What the claims about gradients through time do not say: bad input, dtypes, other people's layers, speed."""

import math
import time
from fractions import Fraction

import pytest
import torch

from lemmata.recurrent.backpropagation_through_time import backpropagate_through_time, forward_sensitivities
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gradient_flow import (
    growth_rates,
    measure_gradient_flow,
    step_bound,
    with_spectral_norm,
    with_spectral_radius,
)
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.jacobians_through_time import (
    jacobian_products,
    log_norms,
    orthogonality_defect,
    state_jacobians,
)
from lemmata.recurrent.layer import RecurrentLayer
from lemmata.recurrent.lstm import LSTM
from lemmata.recurrent.stacked import Stacked


class Spirals(RecurrentLayer):
    """A layer with a complex state of two axes, which turns and shrinks."""

    def __init__(self):
        super().__init__(1, 1)
        self.turn = torch.tensor([[0.5j, 0.5], [-0.9, 0.3 + 0.3j]], dtype=torch.complex128)

    def initial_state(self, batch):
        return torch.zeros(batch, 2, 2, dtype=torch.complex128)

    def step(self, x, state):
        state = self.turn * state + x[:, :, None]
        return state.real.sum((1, 2))[:, None], state


def test_jacobians_of_a_complex_state_are_its_complex_factors():
    jacobians = state_jacobians(Spirals(), torch.randn(2, 3, 1).double())
    torch.testing.assert_close(jacobians, torch.diag(Spirals().turn.flatten()).expand(2, 3, 4, 4))
    norms = measure_gradient_flow(Spirals(), torch.randn(2, 3, 1).double()).norms
    torch.testing.assert_close(norms[0], torch.tensor([1.0, 0.9, 0.81, 0.729]).double())


@pytest.mark.parametrize("layer", [LSTM(2, 3), GRU(2, 3)])
def test_a_state_of_several_tensors_is_one_long_vector(layer):
    layer, x = layer.double(), torch.randn(1, 4, 2).double()
    states = layer.initial_state(1)
    parts = states if isinstance(states, tuple) else (states,)

    def last(*parts):
        state = layer(x, parts if isinstance(states, tuple) else parts[0])[1]
        return torch.cat(state, dim=1) if isinstance(state, tuple) else state

    blocks = torch.autograd.functional.jacobian(last, parts)
    expected = torch.cat([block[0, :, 0] for block in blocks], dim=1)
    torch.testing.assert_close(jacobian_products(state_jacobians(layer, x))[0, -1], expected)


def test_bounds_and_norms_of_steps_are_those_of_the_matrices():
    layer = Elman(3, 4).double()
    layer.recurrent_weight.data = with_spectral_norm(layer.recurrent_weight.data, 0.8)
    flow = measure_gradient_flow(layer, torch.randn(2, 6, 3).double())
    torch.testing.assert_close(flow.log_bounds, flow.lags * math.log(0.8))
    torch.testing.assert_close(flow.step_norms, torch.linalg.svdvals(flow.jacobians)[..., 0])
    assert flow.vanishes
    layer.recurrent_weight.data *= 2
    assert not measure_gradient_flow(layer, torch.randn(2, 6, 3).double()).vanishes


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_no_turn_is_proved_to_make_gradients_vanish(dtype, size):
    """A bound below 1 would be wrong where rounding has left a singular value of 1 or more: it is judged exactly."""
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        turn = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0].to(dtype)
        # A unit vector that is hardly shortened shows a singular value at least as large.
        axis = [Fraction(entry) for entry in turn[:, 0].tolist()]
        length = math.sqrt(sum(entry**2 for entry in axis)) * (1 - 2**-52)
        assert length <= float(step_bound(turn, "tanh")) <= length * (1 + 8 * size * torch.finfo(dtype).eps + 1e-11)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e200, 8e307])
def test_bounds_hold_at_every_scale(scale):
    weight = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64) * scale
    for name, slope in (("sigmoid", 0.25), ("gelu", 1.1289)):
        bound = float(step_bound(weight, name))
        assert bound == math.inf or Fraction(bound) >= 2 * Fraction(scale) * Fraction(slope)
        assert bound == pytest.approx(2 * scale * slope, rel=1e-4, abs=3 * 5e-324)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_has_bounds(dtype):
    layer = Elman(2, 3, "sigmoid").to(dtype)
    flow = measure_gradient_flow(layer, torch.randn(1, 5, 2, dtype=dtype))
    assert flow.vanishes
    assert flow.bound == pytest.approx(float(torch.linalg.svdvals(layer.recurrent_weight.detach().double())[0]) / 4)


class Threefold(Elman):
    def step(self, x, state):
        return tuple(3 * each for each in super().step(x, state))


def threefold(layer):
    step = layer.step
    layer.step = lambda x, state: tuple(3 * each for each in step(x, state))
    return layer


def hooked(layer):
    layer.register_forward_hook(lambda *_: None)
    return layer


@pytest.mark.parametrize("layer", [Threefold(2, 3), threefold(Elman(2, 3)), hooked(Elman(2, 3))])
def test_of_other_steps_no_bound_is_known(layer):
    flow = measure_gradient_flow(layer, torch.randn(1, 5, 2))
    assert (flow.bound, flow.log_bounds, flow.vanishes) == (None, None, None)


def test_a_bound_that_a_measured_step_exceeds_is_not_given(monkeypatch):
    layer, x = Elman(2, 3, "identity"), torch.randn(1, 5, 2)
    assert measure_gradient_flow(layer, x).bound is not None
    step = Elman.step
    monkeypatch.setattr(Elman, "step", lambda self, x, state: tuple(3 * each for each in step(self, x, state)))
    assert measure_gradient_flow(layer, x).bound is None


def test_a_network_that_forgets_all_has_logarithms_of_zero():
    layer = Elman(2, 2, "relu").double()
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    dead = measure_gradient_flow(layer, torch.zeros(1, 3, 2).double())
    assert dead.log_norms[0].tolist() == [0.0, -math.inf, -math.inf, -math.inf]
    assert torch.equal(dead.log_bounds, dead.log_norms[0])


def test_of_a_stack_no_bound_is_known_and_the_lower_state_does_not_see_the_upper():
    both = measure_gradient_flow(Stacked(Elman(2, 3), Elman(3, 2)).double(), torch.randn(1, 4, 2).double())
    assert (both.bound, both.log_bounds, both.vanishes) == (None, None, None)
    assert not both.jacobians[0, :, :3, 3:].any()
    assert bool((both.jacobians[0, :, 3:, :].abs() > 1e-12).all())


def test_growth_rates_are_roots_of_norms_of_powers():
    u = torch.randn(8, 8).double()
    direct = [torch.linalg.matrix_norm(torch.linalg.matrix_power(u, k), 2) ** (1 / k) for k in (1, 7)]
    torch.testing.assert_close(growth_rates(u, 7)[[0, 6]], torch.stack(direct))
    assert growth_rates(torch.tensor([[0.0, 10.0], [0.0, 0.0]]), 2).tolist() == pytest.approx([10.0, 0.0])
    torch.testing.assert_close(
        log_norms(0.5j * torch.eye(2).expand(9, 2, 2)), math.log(0.5) * torch.arange(10).double()
    )


def test_the_defect_of_half_an_orthogonal_matrix_is_three_quarters():
    q, _ = torch.linalg.qr(torch.randn(4, 4).double())
    assert float(orthogonality_defect(q / 2)) == pytest.approx(0.75)
    assert float(orthogonality_defect(q)) == pytest.approx(0, abs=1e-13)


def test_a_given_first_state_is_used():
    layer, x, state = Elman(2, 3), torch.randn(1, 4, 2), torch.ones(1, 3)
    assert not state_jacobians(layer, x, state)[:, 0].equal(state_jacobians(layer, x)[:, 0])
    immediate = torch.ones(1, 4, 3)
    with_state = backpropagate_through_time(layer, x, immediate, state).initial
    assert not with_state.equal(backpropagate_through_time(layer, x, immediate).initial)


def test_norms_are_double_whatever_the_layer_and_need_no_gradient():
    flow = measure_gradient_flow(Elman(2, 3), torch.randn(2, 4, 2))
    assert flow.jacobians.dtype is torch.float32
    assert flow.norms.dtype is flow.step_norms.dtype is flow.log_bounds.dtype is torch.float64
    assert not flow.jacobians.requires_grad
    with torch.no_grad():
        assert state_jacobians(Elman(2, 3), torch.randn(2, 4, 2)).shape == (2, 4, 3, 3)


def test_very_long_products_neither_overflow_nor_vanish():
    for factor in (0.1, 10.0):
        logarithm = log_norms(torch.full((3000, 1, 1), factor))[-1]
        assert logarithm.item() == pytest.approx(3000 * torch.tensor(factor).double().log().item())


def test_a_slider_can_ask_for_a_hundred_steps_of_32_units():
    layer, x = Elman(4, 32).double(), torch.randn(1, 100, 4).double()
    measure_gradient_flow(layer, x)
    start = time.process_time()
    measure_gradient_flow(layer, x)
    assert time.process_time() - start < 0.2  # 0.02 on a quiet machine


def test_matrices_are_scaled_to_what_is_asked():
    matrix = torch.tensor([[1.0, 2.0], [0.0, 0.5]])
    torch.testing.assert_close(with_spectral_radius(matrix, 2), 2 * matrix)
    assert torch.linalg.matrix_norm(with_spectral_norm(matrix, 3), 2).item() == pytest.approx(3)
    assert growth_rates(matrix.bfloat16(), 3).dtype is torch.float64


BAD = [
    (lambda: measure_gradient_flow(Elman(2, 3), torch.zeros(1, 0, 2)), "with at least 1 step, got shape"),
    (lambda: measure_gradient_flow(Elman(2, 3), torch.zeros(4, 2)), r"x must be \(batch, time, 2\)"),
    (lambda: with_spectral_radius(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), 1), "positive spectral radius, got 0"),
    (lambda: with_spectral_norm(torch.zeros(2, 2), 1), "positive spectral norm, got 0"),
    (lambda: with_spectral_norm(torch.eye(2), 0), "norm must be > 0, got 0"),
    (lambda: growth_rates(torch.eye(2), 0), "steps must be >= 1, got 0"),
    (lambda: orthogonality_defect(torch.zeros(2, 3)), r"the matrices must be square, got shape \(2, 3\)"),
    (lambda: log_norms(torch.zeros(4, 2, 3)), r"the matrices must be square, got shape \(4, 2, 3\)"),
    (lambda: backpropagate_through_time(Elman(2, 3), torch.ones(1, 4, 2), torch.ones(1, 4, 2)), r"immediate must .*"),
    (lambda: forward_sensitivities(Elman(2, 3), torch.full((1, 4, 2), torch.nan)), "x must be finite, found 8 NaN"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_arguments_are_named_with_the_fix(unchecked, call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_other_layers_are_referred_to_autograd(unchecked):
    with pytest.raises(TypeError, match="layer must be an Elman layer, got GRU: use autograd for others"):
        backpropagate_through_time(GRU(2, 3), torch.ones(1, 4, 2), torch.ones(1, 4, 3))


def test_states_are_followed_through_layers_of_this_package_only(unchecked):
    with pytest.raises(TypeError, match="layer must be a recurrent layer, got LSTM"):
        measure_gradient_flow(torch.nn.LSTM(2, 3), torch.ones(1, 4, 2))
