"""Deep Sets: ragged sets by masks, PyTorch Geometric's numbers, gradients, dtypes, and refusals that name the fix."""

import math

import pytest
import torch
from torch import nn

from lemmata.geometric.deep_sets import DeepSets, EquivariantDeepSets, pool_elements

REDUCTIONS = ["sum", "mean", "max"]
MASK = torch.tensor([[True, True, False, True], [False, False, False, True], [True, True, True, True]])


def networks(inputs=3, outputs=2):
    phi = nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, 6))
    return phi, nn.Sequential(nn.Linear(outputs, 8), nn.Tanh(), nn.Linear(8, 2))


def invariant(reduce="sum"):
    return DeepSets(*networks(outputs=6), reduce).double()


def equivariant(reduce="sum"):
    return EquivariantDeepSets(*networks(outputs=3 + 6), reduce).double()


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_a_masked_set_is_the_set_of_its_elements(reduce):
    x, whole, each = torch.randn(3, 4, 3).double(), invariant(reduce), equivariant(reduce)
    for index, inside in enumerate(MASK):
        alone = x[index][inside]
        torch.testing.assert_close(whole(x, MASK)[index], whole(alone), rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(each(x, MASK)[index][inside], each(alone), rtol=1e-13, atol=1e-13)
        assert not each(x, MASK)[index][~inside].any()


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("make", [invariant, equivariant])
@pytest.mark.parametrize("padding", [math.nan, math.inf, -1e30])
def test_what_is_outside_reaches_neither_values_nor_gradients(reduce, make, padding):
    model, x = make(reduce), torch.randn(3, 4, 3).double()
    expected = torch.autograd.grad(model(x, MASK).square().sum(), list(model.parameters()))
    x[~MASK] = padding
    x.requires_grad_()
    found = model(x, MASK)
    slopes = torch.autograd.grad(found.square().sum(), [x, *model.parameters()])
    assert found.isfinite().all()
    assert not slopes[0][~MASK].any()
    torch.testing.assert_close(slopes[1:], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_nothing_adds_up_to_zero(reduce):
    x, nobody = torch.randn(2, 4, 3, requires_grad=True), torch.zeros(2, 4, dtype=torch.bool)
    found = pool_elements(x, nobody, reduce)
    assert torch.equal(found, torch.zeros(2, 3))
    found.sum().backward()
    assert not x.grad.any()
    assert torch.equal(pool_elements(torch.randn(2, 0, 3), reduce=reduce), torch.zeros(2, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("masked", [True, False])
def test_means_of_large_sets_keep_what_half_precision_can_hold(dtype, masked):
    """The sum of 1001 numbers is above float16's 65504, and 1001 is no number of bfloat16."""
    x = torch.full((1001, 1), 200.0, dtype=dtype)
    found = pool_elements(x, torch.ones(1001) > 0 if masked else None, "mean")
    assert found.dtype == dtype
    assert found.item() == 200


def test_a_maximum_may_be_negative_also_under_a_mask():
    x = torch.tensor([[-3.0], [-2.0], [5.0]])
    assert pool_elements(x, torch.tensor([True, True, False]), "max").item() == -2


def test_sums_means_and_maxima_are_torchs_own():
    x = torch.randn(5, 7, 3)
    assert torch.equal(pool_elements(x), x.sum(1))
    torch.testing.assert_close(pool_elements(x, reduce="mean"), x.mean(1))
    assert torch.equal(pool_elements(x, reduce="max"), x.amax(1))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_ragged_sets_are_pytorch_geometrics(reduce):
    aggr = pytest.importorskip("torch_geometric.nn.aggr")
    aggregates = {"sum": aggr.SumAggregation, "mean": aggr.MeanAggregation, "max": aggr.MaxAggregation}
    x, phi = torch.randn(3, 4, 3).double(), networks()[0].double()
    flat, index = x[MASK], MASK.nonzero()[:, 0]
    expected = aggregates[reduce]()(phi(flat), index, dim_size=3)
    torch.testing.assert_close(pool_elements(phi(x), MASK, reduce), expected, rtol=1e-12, atol=1e-12)
    if reduce == "sum":
        model = DeepSets(*networks(outputs=6)).double()
        theirs = aggr.DeepSetsAggregation(model.phi, model.rho)
        torch.testing.assert_close(model(x, MASK), theirs(flat, index, dim_size=3), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("make", [invariant, equivariant])
def test_gradients_are_those_of_finite_differences(reduce, make):
    model, x = make(reduce), torch.randn(2, 4, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: model(x, MASK[:2]), (x, *model.parameters()))


def test_plain_functions_do_for_networks():
    spread = DeepSets(lambda x: torch.cat([x, x**2], -1), lambda s: s[..., 1:] - s[..., :1] ** 2, "mean")
    x = torch.randn(5, 9, 1)
    torch.testing.assert_close(spread(x), x.var(1, correction=0), rtol=1e-4, atol=1e-5)
    assert not spread.state_dict()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: DeepSets(nn.Identity(), nn.Identity(), "median"), ValueError, "reduce must be one of"),
        (lambda: EquivariantDeepSets(nn.Identity(), nn.Identity(), "min"), ValueError, "reduce must be one of"),
        (lambda: pool_elements(torch.ones(3, 2), reduce="least"), ValueError, "reduce must be one of"),
        (lambda: pool_elements(torch.ones(3)), ValueError, r"x must be \(..., elements, features\), got shape \(3,\)"),
        (lambda: invariant()(torch.ones(3)), ValueError, r"x must be \(..., elements, features\)"),
        (lambda: pool_elements(torch.ones(3, 2), torch.ones(2) > 0), ValueError, r"mask must have the shape \(3,\)"),
        (lambda: pool_elements(torch.ones(3, 2).long(), reduce="max"), TypeError, r"torch.int64: use x.float\(\)"),
        (lambda: pool_elements(torch.ones(3, 2), torch.ones(3)), TypeError, "mask must be boolean"),
        (lambda: equivariant()(torch.ones(2, 4, 3), MASK), ValueError, r"mask must have the shape \(2, 4\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refusals_name_the_fix(call, error, words):
    with pytest.raises(error, match=words):
        call()
