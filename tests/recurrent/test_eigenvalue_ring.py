"""What the claims about rings of eigenvalues do not say: bad input, dtypes, determinism."""

import math

import pytest
import torch

from lemmata.recurrent.eigenvalue_ring import eigenvalues_on_ring, input_gain, log_rate, polar, ring_parameters


def test_the_generator_decides():
    first, again = (eigenvalues_on_ring(5, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.equal(again)
    assert first.dtype is torch.complex128


def test_a_ring_without_width_is_a_circle():
    assert torch.allclose(eigenvalues_on_ring(20, 0.7, 0.7, by_area=True).abs(), torch.tensor(0.7).double())
    assert eigenvalues_on_ring(20, 0.7, 0.7, max_phase=0.0).imag.abs().max() == 0


def test_precision_is_kept():
    for dtype, wide in ((torch.float32, torch.complex64), (torch.float64, torch.complex128)):
        nu = log_rate(torch.tensor([0.5], dtype=dtype))
        assert nu.dtype is input_gain(nu).dtype is dtype
        assert polar(nu, nu).dtype is wide


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_parameters_give_the_nearest_safe_modulus(dtype):
    ends = polar(torch.tensor([-1e4, 1e4], dtype=dtype), torch.zeros(2, dtype=dtype)).real
    kind = torch.finfo(dtype)
    assert float(1 - ends[0]) == kind.eps / 2
    assert math.log(float(ends[1])) == pytest.approx(math.log(kind.tiny), abs=1e-4)


def test_the_gain_keeps_its_digits_near_the_circle():
    nu = torch.tensor([-12.0, -14.0, -15.5])  # 1 - r is 6e-6 and less, of which single precision keeps few digits
    exact = torch.sqrt(-torch.expm1(-2 * nu.double().exp()))
    assert torch.allclose(input_gain(nu).double(), exact, rtol=1e-6)


def test_gradients_are_exact():
    nu = torch.linspace(-8, 1, 7, dtype=torch.float64, requires_grad=True)
    phase = torch.linspace(0, 6, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda n, p: torch.view_as_real(polar(n, p)), (nu, phase))
    assert torch.autograd.gradcheck(input_gain, (nu,))


@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"strictly between 0 and 1, .* got 0\.5 to 1"):
        log_rate(torch.tensor([0.5, 1.0]))
    with pytest.raises(ValueError, match=r"strictly between 0 and 1, .* got 0 to 0"):
        log_rate(torch.zeros(1))
    with pytest.raises(ValueError, match="modulus must be finite, found 1 NaN value"):
        log_rate(torch.tensor([float("nan")]))
    with pytest.raises(ValueError, match="count must be >= 1, got 0"):
        ring_parameters(0)
    with pytest.raises(ValueError, match=r"r_min must be finite|must be 0 < r_min"):
        ring_parameters(3, r_min=float("nan"))
