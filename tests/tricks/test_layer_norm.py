"""Layer normalisation: torch's numbers and names, by the kernel and by the formula."""

import pytest
import torch
from torch import nn

from lemmata.tricks import LayerNorm, standardize, standardize_gradient


@pytest.mark.parametrize(("shape", "lead"), [(5, (8,)), ((5,), ()), ((3, 5), (2, 4)), (5, (2, 3))])
@pytest.mark.parametrize("choice", [{}, {"eps": 0.3}, {"affine": False}, {"bias": False}])
def test_outputs_and_gradients_are_torchs(shape, lead, choice):
    ours = LayerNorm(shape, **choice).double()
    renamed = {("elementwise_affine" if name == "affine" else name): value for name, value in choice.items()}
    torchs = nn.LayerNorm(shape, **renamed).double()
    for values in torchs.parameters():
        nn.init.normal_(values)
    ours.load_state_dict(torchs.state_dict())
    x = 3 + 2 * torch.randn(*lead, *ours.shape, dtype=torch.float64)
    upstream = torch.randn_like(x)
    found = []
    for layer, call in ((torchs, torchs), (ours, ours), (ours, ours.by_formula)):
        given = x.clone().requires_grad_()
        output = call(given)
        found.append((output, *torch.autograd.grad(output, [given, *layer.parameters()], upstream)))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-12, atol=1e-12)


def test_the_gradient_along_features_is_that_of_batches_along_examples():
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn_like(x)
    (expected,) = torch.autograd.grad(LayerNorm(5, eps=0.0, affine=False)(x), x, upstream)
    own = standardize_gradient(upstream, standardize(x.detach(), 1), 1)
    torch.testing.assert_close(own, expected, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_finite_differences():
    layer = LayerNorm((2, 3)).double()
    x = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    for call in (layer, layer.by_formula):
        assert torch.autograd.gradcheck(lambda x, *_, call=call: call(x), (x, *layer.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_formula_is_the_layer_in_every_dtype(dtype):
    layer = LayerNorm(6, dtype=dtype)
    x = torch.randn(5, 6).to(dtype)
    torch.testing.assert_close(layer.by_formula(x), layer(x), atol=0.05 if dtype is torch.bfloat16 else 1e-5, rtol=0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LayerNorm(0), "shape must be >= 1, got 0"),
        (lambda: LayerNorm(()), r"shape must name at least one axis, got \(\)"),
        (lambda: LayerNorm(2, eps=-1.0), "eps must be >= 0, got -1.0"),
        (lambda: LayerNorm(2, affine=1), "affine must be True or False, got 1"),
        (lambda: LayerNorm(2, bias=1), "bias must be True or False, got 1"),
        (lambda: LayerNorm((2, 3)).by_formula(torch.randn(3)), r"x must be a \(..., 2, 3\) tensor, got shape \(3,\)"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


def test_what_a_layer_is_can_be_read():
    assert repr(LayerNorm(3, affine=False)) == "LayerNorm((3,), eps=1e-05, affine=False)"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_gpu_gives_the_numbers_of_the_cpu():
    layer, x = LayerNorm(64), torch.randn(30, 64)
    torch.testing.assert_close(layer.cuda()(x.cuda()).cpu(), layer.cpu()(x))
