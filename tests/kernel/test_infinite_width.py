"""Networks of infinite width: closed forms against quadrature and against networks, extremes, gradients, bad input."""

import math

import pytest
import torch
from torch.nn import functional

from lemmata.kernel import activation_kernel, infinite_kernels, infinite_ntk, nngp, ntk, ntk_mlp
from lemmata.kernel.activation_kernels import CLOSED
from lemmata.tricks.mean_field import expected_profile

FUNCTIONS = {
    "relu": lambda z: z.clamp(min=0), "erf": lambda z: torch.erf(z), "gelu": lambda z: functional.gelu(z) * 1,
    "linear": lambda z: z * 1, "cos": lambda z: z.cos(), "sin": lambda z: z.sin(),
}  # fmt: skip


def pairs():
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.rand(60, generator=generator, dtype=torch.float64) + 0.01 for _ in range(2))
    rho = 2 * torch.rand(60, generator=generator, dtype=torch.float64) - 1
    rho[:4] = torch.tensor([1.0, -1.0, 0.0, 1 - 1e-9])
    return a, b, rho * (a * b).sqrt()


def points(*, extremes=True):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return torch.cat([x, x[:2], -x[:1], 2 * x[1:2], 0 * x[:1]]) if extremes else x


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_equal_quadrature(name):
    closed, quadrature = activation_kernel(name), activation_kernel(FUNCTIONS[name])
    assert closed.how == "closed form"
    assert quadrature.how.startswith("polar quadrature")
    for ours, theirs in zip(closed(*pairs()), quadrature(*pairs()), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-8)
    kinked = name in ("relu", "linear")
    assert not kinked or torch.allclose(closed(*pairs())[0], quadrature(*pairs())[0], atol=1e-13)


def test_any_function_has_a_kernel():
    one = torch.ones(1, dtype=torch.float64)
    leaky = activation_kernel(functools_leaky)(one, one, one)[0]
    assert float(leaky) == pytest.approx((1 + 0.01**2) / 2, abs=1e-13)
    assert activation_kernel(torch.relu).how == "closed form"
    assert activation_kernel("tanh").how == activation_kernel(torch.nn.Tanh()).how
    assert torch.allclose(activation_kernel("tanh")(*pairs())[1], activation_kernel(torch.nn.Tanh())(*pairs())[1])


def functools_leaky(z):
    return functional.leaky_relu(z, 0.01)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sigmoid"])
def test_the_diagonal_is_the_expected_profile(name):
    widths = [3, 50, 60, 70, 1]
    known = expected_profile(widths, name, "he", square=0.7).forward
    x = torch.full((1, 3), math.sqrt(0.7), dtype=torch.float64)
    found = [nngp(x, depth=depth, activation=name).item() for depth in range(1, 5)]
    assert found == pytest.approx(known.tolist(), rel=2e-6)


@pytest.mark.parametrize("name", [*CLOSED, "tanh"])
@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_values_and_gradients_at_equal_opposite_and_zero_inputs(name, bias):
    x = points().requires_grad_()
    kernel = infinite_ntk(x, depth=3, activation=name, bias_variance=bias)
    (slope,) = torch.autograd.grad(kernel.sum(), x)
    assert bool(slope.isfinite().all())
    plain = infinite_ntk(x.detach(), depth=3, activation=name, bias_variance=bias)
    assert torch.allclose(plain, kernel.detach(), atol=1e-13)
    assert torch.allclose(plain[0], plain[5], rtol=0, atol=1e-13)  # equal inputs have equal kernels
    assert torch.allclose(
        plain, infinite_ntk(x.detach(), x.detach().clone(), depth=3, activation=name, bias_variance=bias)
    )
    assert float(torch.linalg.eigvalsh(plain)[0]) > -1e-12 * float(plain.max())


@pytest.mark.parametrize("name", ["relu", "erf", "gelu"])
def test_gradients_are_those_of_differences(name):
    x, y = points(extremes=False), points(extremes=False).flip(0) + 0.1
    assert torch.autograd.gradcheck(
        lambda x: infinite_ntk(x, y, depth=3, activation=name, bias_variance=0.1), x[:2].clone().requires_grad_()
    )


def test_single_precision_is_exact_for_duplicates():
    x = points().float()
    wide, narrow = infinite_ntk(x.double(), depth=4), infinite_ntk(x, depth=4)
    assert torch.allclose(narrow.double(), wide, rtol=2e-4, atol=1e-6)
    assert narrow[0, 5] == narrow[0, 0]


@pytest.mark.parametrize("parametrisation", ["ntk", "standard"])
def test_wide_networks_have_the_kernel(parametrisation):
    torch.manual_seed(0)
    x, words = points(extremes=False), {"bias_variance": 0.2}
    known = infinite_ntk(
        x, depth=3, parametrisation=parametrisation, widths=None if parametrisation == "ntk" else 600, **words
    )
    found = []
    for _ in range(4):
        model = ntk_mlp([3, 600, 600, 1], dtype=torch.float64, **words)
        if parametrisation == "standard":
            plain = []
            for layer in model:
                if hasattr(layer, "inputs"):
                    made = torch.nn.Linear(layer.inputs, layer.outputs, dtype=torch.float64)
                    made.weight.data = layer.weight.data * math.sqrt(2 / layer.inputs)
                    made.bias.data = layer.bias.data * math.sqrt(0.2)
                    layer = made
                plain.append(layer)
            model = torch.nn.Sequential(*plain)
        found.append(ntk(model, x)[..., 0, 0])
    assert float((torch.stack(found).mean(0) - known).norm() / known.norm()) < 0.08


def test_one_layer_is_the_linear_kernel():
    x = points()
    assert torch.allclose(nngp(x, depth=1, bias_variance=0.5), 2 / 3 * x @ x.mT + 0.5, atol=1e-13)
    both = infinite_kernels(x, depth=1, bias_variance=0.5)
    assert torch.allclose(both.ntk, both.nngp)


def test_blocks_change_nothing(monkeypatch):
    import lemmata.kernel.infinite_width as module

    whole = infinite_kernels(points(), depth=3)
    monkeypatch.setattr(module, "BAND", 40)
    monkeypatch.setattr(module, "TILE", 7)
    parts = infinite_kernels(points(), depth=3)
    assert torch.allclose(whole.ntk, parts.ntk, atol=1e-14)
    assert torch.allclose(whole.nngp, parts.nngp, atol=1e-14)


def test_huge_and_tiny_inputs():
    x = points(extremes=False)
    for scale in (1e-120, 1e120):
        assert torch.allclose(infinite_ntk(scale * x, depth=3) / scale**2, infinite_ntk(x, depth=3))


def test_bad_input_is_answered_in_a_sentence():
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="x1 must be finite, found 6 NaN"):
        infinite_ntk(x * torch.nan)
    with pytest.raises(ValueError, match="x2 must be"):
        nngp(x, torch.ones(2, 4))
    with pytest.raises(ValueError, match="did you mean relu"):
        nngp(x, activation="rleu")
    with pytest.raises(ValueError, match="weight_variance must be > 0"):
        nngp(x, weight_variance=0.0)
    with pytest.raises(ValueError, match="widths must be 1 hidden widths"):
        infinite_ntk(x, parametrisation="standard")
    with pytest.raises(ValueError, match="widths must be None"):
        infinite_ntk(x, widths=100)
    with pytest.raises(ValueError, match="must not be empty"):
        nngp(x[:0])
