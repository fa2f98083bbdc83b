"""What the checks of this chapter must notice beyond their own lies, and what they say of the sources."""

from typing import Any

import pytest
import torch

from lemmata.convolution.claims import (
    convolution_layer,
    discrete_convolution,
    fourier,
    integral_operators,
    temporal_convolution,
    wavenet,
)
from lemmata.convolution.convolution_cost import fft_operations
from lemmata.convolution.discrete_convolution import correlate
from lemmata.convolution.fourier import fourier_transform
from lemmata.convolution.padding import pad_space
from lemmata.judge.runner import attempt


def holds(claim, seed=0, **changed):
    found = attempt(claim, seed, changed)
    if isinstance(found, BaseException):
        raise found
    return found.holds


@pytest.mark.parametrize("seed", [13, 15, 36])
def test_gaussians_of_every_seed_fade_inside_the_band(seed):
    assert holds(fourier.twice_is_a_reflection, seed)


@pytest.mark.parametrize("wrong", [lambda *sizes: 0.5 * fft_operations(*sizes), lambda x, weight: 7.5 * x[2] * 10.0])
def test_operations_by_spectra_are_counted_not_told(monkeypatch, wrong):
    monkeypatch.setattr(discrete_convolution, "fft_operations", wrong)
    assert not holds(discrete_convolution.spectra_pay_for_long_kernels)


def test_a_transform_that_costs_more_is_counted(monkeypatch):
    """Every sum written out: n² operations, whose growth is not n log n."""

    def written_out(x, counts):
        n = x.shape[-1]
        waves = fourier.turn(-torch.outer(torch.arange(n), torch.arange(n)).double() / n)
        counts.append(8 * n * x.numel())
        return x @ waves

    monkeypatch.setattr(discrete_convolution, "_counted_transform", written_out)
    assert not holds(discrete_convolution.spectra_pay_for_long_kernels)


def test_a_fourier_transform_that_is_not_linear_is_noticed(monkeypatch):
    def squared(f, t):
        return fourier_transform(f.square(), t)

    monkeypatch.setattr(integral_operators, "fourier_transform", squared)
    assert not holds(integral_operators.integral_transforms_are_linear)


@pytest.mark.parametrize("always", [True, False])
def test_cross_correlation_is_convolution_with_symmetric_kernels_alone(always):
    claim = discrete_convolution.cross_correlation_slides_a_kernel
    assert not holds(claim, symmetric=lambda kernels: torch.full((len(kernels),), always))


def test_convolution_in_place_of_cross_correlation_is_noticed():
    def turned(h, f):
        return correlate(h.flip(0), f)

    assert not holds(discrete_convolution.cross_correlation_slides_a_kernel, operation=turned)


def without_edges(x, amounts, mode="zeros"):
    """Reflection that repeats the last value where both sides differ."""
    uneven = mode == "reflect" and any(before != after for before, after in amounts)
    return pad_space(x, amounts, "replicate" if uneven else mode)


def test_borders_of_two_widths_are_looked_at(monkeypatch):
    monkeypatch.setattr(convolution_layer, "pad_space", without_edges)
    assert not holds(convolution_layer.padding_extends_each_side)


def test_same_padding_counts_the_gaps(monkeypatch):
    own = convolution_layer.conv_nd

    def without_gaps(x, weight, *given, padding=0, dilation=1, **named):
        if padding == "same" and dilation == 2:
            return own(x, weight, *given, padding=weight.shape[-1] // 2, dilation=dilation, **named)
        return own(x, weight, *given, padding=padding, dilation=dilation, **named)

    monkeypatch.setattr(convolution_layer, "conv_nd", without_gaps)
    assert not holds(convolution_layer.padding_extends_each_side)


class WithoutResiduals(temporal_convolution.TCN):
    """Blocks whose input is not added; a factor of nearly zero keeps what an output depends on."""

    def forward(self, x):
        block: Any
        h = x.mT
        for block in self.blocks:
            h = block.second(block.first(h).relu()).relu() + 1e-9 * block(h)
        return self.head(h.mT)


def test_the_residuals_of_a_temporal_network_are_looked_at():
    assert not holds(temporal_convolution.a_temporal_network_sees_its_receptive_field, network=WithoutResiduals)


def test_the_gates_of_a_wavenet_are_looked_at():
    class Ungated(wavenet.WaveNet):
        """Filters whose gates do not count."""

        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            layer: Any
            for layer in self.layers:
                layer.forward = lambda x, layer=layer: self._open(layer, x)

        def _open(self, layer, x):
            values, gate = layer.gated(x).chunk(2, dim=1)
            out = layer.out(values.tanh() + 0 * gate)
            return x + out[:, : layer.channels], out[:, layer.channels :]

    assert not holds(wavenet.a_wavenet_is_a_law_of_samples_given_those_before, network=Ungated)
