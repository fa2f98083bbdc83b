"""What the claims about the linear recurrent unit do not say: bad choices, dtypes of its parts, gradients."""

import math

import pytest
import torch
from torch.nn import functional

from lemmata.recurrent.lru import LRU


def made(*args, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LRU(*args, **options).double(), torch.randn(3, 6, args[0], dtype=torch.float64)


@pytest.mark.parametrize("gain", ["follows", "learnt"])
def test_gradients_are_exact(gain):
    layer, x = made(2, 3, gain=gain, skip=True)
    names, values = zip(*layer.named_parameters(), strict=True)
    state = torch.ones(2, 3, dtype=torch.complex128, requires_grad=True)

    def run(x, state, *values):
        outputs, final = torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, state))
        return outputs, torch.view_as_real(final)

    assert torch.autograd.gradcheck(run, (x[:2, :4].requires_grad_(), state, *values))


def test_gradients_stay_finite_at_the_edges_of_the_disc():
    for dtype in (torch.float32, torch.float64):
        layer = LRU(2, 4).to(dtype)
        with torch.no_grad():
            layer.nu.copy_(torch.tensor([-1e4, -300.0, 100.0, 1e4]))
        outputs, state = layer(torch.ones(1, 50, 2, dtype=dtype))
        (outputs.sum() + state.abs().sum()).backward()
        assert all(bool(torch.isfinite(parameter.grad).all()) for parameter in layer.parameters())
        assert float(layer.eigenvalues.detach().abs().min()) > 0


@pytest.mark.parametrize("options", [{}, {"gain": "learnt", "by_area": True, "skip": True}, {"width": 9, "outputs": 2}])
def test_a_scan_is_the_loop_and_the_readout_is_a_network_of_the_real_part(options):
    torch.manual_seed(0)
    layer = LRU(3, 7, **options).double()
    x, state = torch.randn(2, 33, 3).double(), torch.randn(2, 7, dtype=torch.complex128)
    with torch.no_grad():
        layer.readout_bias.copy_(torch.randn(len(layer.readout_bias)))
        outputs, final = layer(x, state)
        torch.testing.assert_close(layer.by_steps(x, state), (outputs, final))
        read = (final @ layer.readout_matrix.mT).real + layer.readout_bias
        wanted = functional.gelu(read) @ layer.head.weight.T + layer.head.bias + (x[:, -1] if layer.skip else 0)
    torch.testing.assert_close(outputs[:, -1], wanted)


def test_single_precision_scans_agree_with_the_loop():
    torch.manual_seed(0)
    layer, x = LRU(3, 16), torch.randn(2, 200, 3)
    torch.testing.assert_close(layer(x)[0], layer.by_steps(x)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("gain", ["follows", "learnt"])
def test_white_noise_leaves_state_and_readout_of_its_own_size(gain):
    torch.manual_seed(0)
    layer = LRU(64, 64, r_max=0.9, gain=gain).double()
    with torch.no_grad():
        state = layer(torch.randn(64, 60, 64).double())[1]
        read = (state @ layer.readout_matrix.mT).real
    # 4096 Gaussian weights: within 5 deviations.
    assert float(state.abs().square().mean()) == pytest.approx(1, abs=0.25)
    assert float(read.square().mean()) == pytest.approx(1, abs=0.25)


def test_a_new_layer_lies_on_its_ring_with_the_readout_at_its_origin():
    torch.manual_seed(0)
    layer, wide = LRU(2, 4000), LRU(2, 4000, by_area=True)
    moduli, turns = layer.eigenvalues.detach().abs(), layer.phase.detach()
    assert [float(f(moduli)) for f in (torch.min, torch.mean, torch.max)] == pytest.approx(
        [0.5, 0.745, 0.99], abs=0.015
    )
    ends = [float(f(turns)) for f in (torch.min, torch.mean, torch.max)]
    assert ends == pytest.approx([0, math.pi, 2 * math.pi], abs=0.2)
    squares = wide.eigenvalues.detach().abs().square().mean()
    assert float(squares) == pytest.approx((0.5**2 + 0.99**2) / 2, abs=0.02)
    assert not layer.readout_bias.any()
    assert layer.log_gain is None
    assert LRU(2, 3, gain="learnt").log_gain is not None


def test_dtypes_of_state_and_outputs():
    assert LRU(2, 4).initial_state(3).dtype is torch.complex64
    assert LRU(2, 4).double().initial_state(3).dtype is torch.complex128
    half = LRU(2, 4).bfloat16()
    assert half.initial_state(3).dtype is torch.complex64
    assert half.eigenvalues.dtype is torch.complex64
    assert half.input_matrix.dtype is half.readout_matrix.dtype is torch.complex64
    assert bool(half.eigenvalues.detach().abs().max() < 1)


def test_the_global_seed_decides():
    first, _ = made(3, 4)
    again, _ = made(3, 4)
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert one.equal(other)
    assert not any(parameter.is_complex() for parameter in first.parameters())
    assert "inputs=3, hidden=4, outputs=3, activation='gelu'" in repr(first)


def test_the_ring_is_where_it_was_asked_for():
    layer = LRU(2, 500, r_min=0.8, r_max=0.9, max_phase=0.1)
    eigenvalues = layer.eigenvalues.detach()
    assert 0.79 < float(eigenvalues.abs().min()) < float(eigenvalues.abs().max()) < 0.91
    assert 0 <= float(eigenvalues.angle().min()) < float(eigenvalues.angle().max()) <= 0.1 + 1e-6


@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_named():
    for options, sentence in [
        ({"outputs": 4, "skip": True}, "skip needs as many outputs as inputs, got 4 and 3"),
        ({"gain": "none"}, "gain must be one of follows, learnt, got 'none'"),
        ({"r_max": 1.0}, r"0 < r_min <= r_max < 1, got 0\.5 and 1\.0"),
        ({"r_min": 0.0}, r"0 < r_min <= r_max < 1, got 0\.0 and 0\.99"),
        ({"r_min": 0.9, "r_max": 0.8}, r"0 < r_min <= r_max < 1, got 0\.9 and 0\.8"),
        ({"max_phase": 7.0}, r"max_phase must be >= 0 and <= 6.28319, got 7\.0"),
        ({"max_phase": math.nan}, "max_phase must be finite, got nan"),
        ({"width": 0}, "width must be >= 1, got 0"),
        ({"outputs": 0}, "outputs must be >= 1, got 0"),
        ({"activation": "gelo"}, "gelo"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            LRU(3, 4, **options)
    with pytest.raises(ValueError, match=r"state must have the shape \(2, 4\), got \(2, 3\)"):
        LRU(3, 4)(torch.zeros(2, 5, 3), torch.zeros(2, 3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cuda_agrees_with_the_cpu(dtype):
    layer, x = made(8, 16)
    expected = layer(x)[0]
    found = layer.to("cuda", dtype)(x.to("cuda", dtype))[0]
    assert found.dtype is dtype
    torch.testing.assert_close(found.cpu().double(), expected, atol=30 * torch.finfo(dtype).eps, rtol=0.0)
