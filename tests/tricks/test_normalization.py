"""Values of mean zero and variance one: axes, gradients by differences, dtypes, refusals."""

import pytest
import torch

from lemmata.tricks import Standardized, standardize, standardize_gradient


@pytest.mark.parametrize("dim", [0, 1, -1, (0, 2), [0, 1, 2]])
def test_moments_are_those_over_the_axes(dim):
    f = 5 + 3 * torch.randn(4, 5, 6, dtype=torch.float64)
    values, mean, deviation = standardize(f, dim)
    torch.testing.assert_close(values * deviation + mean, f)
    axes = (dim,) if isinstance(dim, int) else tuple(dim)
    assert values.mean(axes).abs().max() < 1e-14
    torch.testing.assert_close(values.square().mean(axes), torch.ones_like(values.mean(axes)))
    assert mean.shape == deviation.shape == f.mean(axes, keepdim=True).shape


def test_epsilon_is_added_to_the_variance():
    f = torch.tensor([1.0, 3.0], dtype=torch.float64)
    values, _, deviation = standardize(f, 0, eps=3.0)
    assert deviation.item() == 2.0
    assert values.tolist() == [-0.5, 0.5]
    assert standardize(torch.ones(4), 0).values.isnan().all()
    assert not standardize(torch.ones(4), 0, eps=1e-5).values.any()


@pytest.mark.parametrize("dim", [0, (0, 2)])
@pytest.mark.parametrize("eps", [0.0, 0.5])
def test_the_gradient_is_that_of_automatic_differentiation_and_of_differences(dim, eps):
    f = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn_like(f)
    found = standardize(f, dim, eps)
    (expected,) = torch.autograd.grad(found.values, f, upstream)
    own = standardize_gradient(upstream, Standardized(*(part.detach() for part in found)), dim)
    torch.testing.assert_close(own, expected, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(lambda f: standardize(f, dim, eps).values, f)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dtypes_stay(dtype):
    f = torch.randn(8, 3).to(dtype)
    found = standardize(f, 0)
    assert {part.dtype for part in found} == {dtype}
    assert standardize_gradient(f, found, 0).dtype is dtype


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: standardize(torch.arange(3), 0), r"f must be floating point, got torch.int64: use f.double\(\)"),
        (lambda: standardize([1.0, 2.0], 0), r"f must be a tensor, got list: use torch.as_tensor\(f\)"),
        (
            lambda: standardize_gradient([1.0], standardize(torch.randn(3), 0), 0),
            r"upstream must be a tensor, got list: use torch.as_tensor\(upstream\)",
        ),
        (lambda: standardize(torch.randn(3), 0, eps=-1.0), "eps must be >= 0, got -1.0"),
        (
            lambda: standardize_gradient(torch.randn(2), standardize(torch.randn(3), 0), 0),
            r"upstream must have the values' shape \(3,\), got \(2,\)",
        ),
    ],
)
def test_bad_input_is_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
