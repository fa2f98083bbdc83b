"""Convolution and correlation of signals: agreement with scipy, precision, and bad input."""

import pytest
import scipy.signal
import torch

from lemmata.convolution import convolve, correlate


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_agreement_with_scipy_in_whole_numbers(axes):
    torch.manual_seed(axes)
    f, h = torch.randint(-9, 9, [4, 3, 5, 2][:axes]), torch.randint(-9, 9, [2, 5, 1, 3][:axes])
    assert torch.equal(convolve(f, h), torch.from_numpy(scipy.signal.convolve(f.numpy(), h.numpy(), method="direct")))
    expected = scipy.signal.correlate(f.numpy(), h.numpy(), method="direct")
    assert torch.equal(correlate(h, f), torch.from_numpy(expected.copy()))


def test_methods_agree():
    f, h = torch.randn(50, 40).double(), torch.randn(7, 60).double()
    expected = convolve(f, h, method="definition")
    for method in ("auto", "im2col", "torch", "fft"):
        torch.testing.assert_close(convolve(f, h, method=method), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("function", [convolve, correlate])
def test_bad_signals_are_named(unchecked, function):
    with pytest.raises(ValueError, match="as many axes, got 1 and 2"):
        function(torch.zeros(3), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="must have an axis and not be empty"):
        function(torch.zeros(3), torch.zeros(0))
    with pytest.raises(ValueError, match="must have an axis and not be empty"):
        function(torch.tensor(1.0), torch.zeros(2))
    with pytest.raises(TypeError, match=r"must have the dtype of ., torch.float64, got torch.float32: use ..to\(.\)"):
        function(torch.zeros(3).double(), torch.zeros(2))
    with pytest.raises(ValueError, match=r"must be on the device of ., cpu, got meta: use ..to\(.\)"):
        function(torch.zeros(3), torch.zeros(2, device="meta"))
    with pytest.raises(TypeError, match="must be a tensor, got list"):
        function([1.0], torch.zeros(2))
