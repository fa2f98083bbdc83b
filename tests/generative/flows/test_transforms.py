"""Laws of the layers: there and back, log-determinants of the full Jacobian, images, precision, and bad input."""

import pytest
import torch
from torch.func import jacrev, vmap

from lemmata.generative.flows import (
    ActNorm,
    AffineCoupling,
    Flow,
    InvertibleConvolution,
    MaskedAffine,
    MaskedAutoregressiveFlow,
    Permutation,
    RealNVP,
    StandardNormal,
)

LAYERS = {
    "actnorm": lambda n: ActNorm(n),
    "permutation": lambda n: Permutation(tuple(reversed(range(n)))),
    "convolution": lambda n: InvertibleConvolution(n),
    "coupling": lambda n: AffineCoupling(n, widths=(8,)),
    "flipped coupling": lambda n: AffineCoupling(n, flipped=True, widths=(8,)),
    "masked": lambda n: MaskedAffine(n, widths=(8,)),
    "flipped masked": lambda n: MaskedAffine(n, flipped=True, widths=(8,)),
}


def drawn(module, size=0.5):
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(size * torch.randn_like(value))
    return module


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("features", [2, 3, 7])
def test_there_and_back_with_the_log_determinant_of_the_jacobian(name, features):
    layer = drawn(LAYERS[name](features)).double()
    z = torch.randn(5, features).double()
    x, there = layer(z)
    again, back = layer.inverse(x)
    jacobian = vmap(jacrev(lambda row: layer(row[None])[0][0]))(z)
    torch.testing.assert_close(again, z, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(there, -back, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(there, torch.linalg.slogdet(jacobian).logabsdet, rtol=1e-9, atol=1e-9)
    assert there.shape == (5,)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("dtype", "off"), [(torch.float32, 1e-4), (torch.bfloat16, 0.3)])
def test_other_precisions_come_back_roughly(name, dtype, off):
    layer = drawn(LAYERS[name](3), 0.2).to(dtype)
    z = torch.randn(4, 3).to(dtype)
    x, log_det = layer(z)
    assert x.dtype == log_det.dtype == dtype
    assert float((layer.inverse(x)[0] - z).detach().abs().max()) < off


def test_a_convolution_is_the_same_at_each_pixel():
    layer, z = drawn(InvertibleConvolution(3)).double(), torch.randn(2, 3, 4, 5).double()
    x, log_det = layer(z)
    flat, one = layer(z.movedim(1, -1).reshape(-1, 3))
    torch.testing.assert_close(x.movedim(1, -1).reshape(-1, 3), flat)
    torch.testing.assert_close(log_det, 20 * one[:2])
    torch.testing.assert_close(layer.inverse(x)[0], z)
    torch.testing.assert_close(torch.linalg.slogdet(layer.weight).logabsdet, layer.log_scale.sum())


def test_a_convolution_begins_nearly_as_a_rotation_that_keeps_volume():
    layer = InvertibleConvolution(6)
    assert float((layer.weight @ layer.weight.mT - torch.eye(6)).detach().abs().max()) < 2e-3
    assert float(layer(torch.randn(1, 6))[1].detach()) == 0.0


def test_actnorm_standardizes_and_keeps_what_does_not_vary():
    layer, x = ActNorm(3), torch.randn(500, 3) * torch.tensor([5.0, 0.01, 0.0]) + 2
    layer.standardize(x)
    z, _ = layer.inverse(x)
    torch.testing.assert_close(z.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(z.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", [RealNVP, MaskedAutoregressiveFlow])
def test_flows_begin_as_the_identity_and_can_be_standardized(kind):
    flow, x = kind(4, widths=(8,)), 3 * torch.randn(200, 4) + 1
    torch.testing.assert_close(flow.log_prob(x), StandardNormal(4).log_prob(x))
    flow.standardize(x)
    assert float(flow.encode(x).std().detach()) == pytest.approx(1, abs=0.02)


def test_samples_come_from_the_generator_and_have_gradients():
    flow = drawn(RealNVP(3, widths=(8,), couplings=2))
    one, other = (flow.sample(4, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(one, other)
    x, log_prob = flow.sample_and_log_prob(6, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(flow.log_prob(x), log_prob, rtol=1e-3, atol=1e-3)
    x.sum().backward()
    assert all(value.grad is not None for value in flow.parameters())


def test_a_flow_is_moved_to_another_precision_with_its_noise():
    flow = RealNVP(2, couplings=2, dtype=torch.float64)
    assert flow.sample(3).dtype == torch.float64
    assert flow.float().sample(3).dtype == torch.float32
    assert "base.origin" not in flow.state_dict()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: AffineCoupling(1), ValueError, "features must be >= 2, got 1"),
        (lambda: AffineCoupling(2, max_log_scale=0.0), ValueError, "max_log_scale must be > 0"),
        (lambda: AffineCoupling(2, conditioner=3), TypeError, "conditioner must be an nn.Module, got int"),
        (lambda: RealNVP(2, couplings=1), ValueError, "couplings must be >= 2, got 1"),
        (lambda: Permutation((0, 2)), ValueError, r"order must hold each of 0 to 1 once, got \[0, 2\]"),
        (lambda: Flow(StandardNormal(2), [ActNorm(3)]), ValueError, "as many features each, got"),
        (lambda: ActNorm(2)(torch.randn(3)), ValueError, "z must"),
        (lambda: ActNorm(2)(torch.ones(3, 2).long()), TypeError, "z must hold floating-point numbers"),
        (lambda: InvertibleConvolution(2)(torch.randn(3, 4)), ValueError, r"z must be \(batch, 2\)"),
        (lambda: StandardNormal(2).sample(0), ValueError, "n must be >= 1, got 0"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()
