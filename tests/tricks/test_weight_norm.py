"""Weight normalisation: torch's parametrisation, the formula and its gradients, lengths from data, refusals."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from lemmata.tricks import weight_norm_gradients, weight_normalized, weight_of

LAYERS = [
    lambda **more: nn.Linear(5, 7, **more),
    lambda **more: nn.Conv1d(5, 7, 3, **more),
    lambda **more: nn.Conv2d(5, 7, 2, **more),
]


def inputs(layer, count=40):
    rest = () if isinstance(layer, nn.Linear) else (6,) * len(layer.kernel_size)
    return 2 + 3 * torch.randn(count, 5, *rest, dtype=torch.float64)


@pytest.mark.parametrize("make", LAYERS)
def test_the_layer_computes_what_it_did_and_loads_what_torch_saves(make):
    layer, other = make().double(), make().double()
    x = inputs(layer)
    before = layer(x)
    assert weight_normalized(layer) is layer
    torch.testing.assert_close(layer(x), before, rtol=1e-12, atol=1e-12)
    parametrizations.weight_norm(other)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    parametrize.remove_parametrizations(layer, "weight")
    torch.testing.assert_close(layer(x), before, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("make", LAYERS)
def test_weights_and_gradients_are_those_of_the_formulas(make):
    layer = weight_normalized(make().double())
    length, direction = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
    nn.init.normal_(length)
    torch.testing.assert_close(weight_of(length, direction), layer.weight, rtol=1e-13, atol=1e-13)
    upstream = torch.randn_like(direction)
    expected = torch.autograd.grad(layer.weight, (length, direction), upstream)
    found = weight_norm_gradients(upstream, length.detach(), direction.detach())
    assert found.length.shape == length.shape
    torch.testing.assert_close(tuple(found), expected, rtol=1e-12, atol=1e-12)


def test_the_formula_has_the_gradients_of_differences():
    length, direction = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 1), (3, 4)))
    assert torch.autograd.gradcheck(weight_of, (length, direction))


@pytest.mark.parametrize("make", LAYERS)
def test_lengths_from_data_give_outputs_of_mean_zero_and_variance_one(make):
    layer = make().double()
    x = inputs(layer)
    y = weight_normalized(layer, x)(x).detach()
    axes = [axis for axis in range(y.ndim) if axis != 1]
    assert y.mean(axes).abs().max() < 1e-12
    torch.testing.assert_close(y.var(axes, correction=0), torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes_stay(dtype):
    layer = weight_normalized(nn.Linear(4, 3, dtype=dtype))
    x = torch.randn(2, 4).to(dtype)
    assert layer(x).dtype is dtype
    assert layer(x[:1]).shape == (1, 3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: weight_normalized(nn.ReLU()), r"layer must have weights \(outputs, ...\), such as a Linear, got ReLU"),
        (lambda: weight_normalized(nn.LayerNorm(3)), "such as a Linear, got LayerNorm"),
        (lambda: weight_normalized(weight_normalized(nn.Linear(2, 2))), "is parametrised already"),
        (lambda: weight_normalized(nn.ConvTranspose1d(2, 2, 3)), "outputs of a transposed convolution"),
        (lambda: weight_normalized(nn.Linear(2, 2, bias=False), torch.randn(5, 2)), "a layer without biases"),
        (lambda: weight_normalized(nn.Linear(2, 2), torch.ones(5, 2)), "x gives an output that never changes"),
        (
            lambda: weight_norm_gradients(torch.randn(2, 2), torch.randn(2, 1), torch.randn(2, 3)),
            r"upstream must have the shape \(2, 3\), got \(2, 2\)",
        ),
    ],
)
def test_bad_layers_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


def test_a_refused_batch_leaves_the_layer_as_it_was():
    layer = nn.Linear(2, 2)
    before = {name: values.clone() for name, values in layer.named_parameters()}
    with pytest.raises(ValueError, match="never changes"):
        weight_normalized(layer, torch.ones(5, 2))
    assert all(torch.equal(values, before[name]) for name, values in layer.named_parameters())
