"""Curvature products: exact against dense matrices of small networks, blocks and batches, habits and refusals."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jacrev
from torch.nn import functional

from lemmata.measure.chain_curvature import ChainCurvature
from lemmata.measure.curvature_products import (
    EmpiricalFisherOperator,
    FisherOperator,
    GaussNewtonOperator,
    HessianOperator,
)

CLASSES = 3


def perceptron():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, CLASSES)).double(), torch.randn(6, 4).double()


def convolutional():
    torch.manual_seed(0)
    parts = [nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, CLASSES)]
    return nn.Sequential(*parts).double(), torch.randn(6, 1, 6, 6).double()


def normalised():
    torch.manual_seed(0)
    parts = [nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.BatchNorm1d(4), nn.Linear(4, CLASSES, bias=False)]
    return nn.Sequential(*parts).double().eval(), torch.randn(6, 4).double()


NETWORKS = [perceptron, convolutional, normalised]
LABELS = torch.tensor([0, 1, 2, 2, 1, 0])


def losses(outputs, targets):
    return functional.cross_entropy(outputs, targets, reduction="none")


def flat(model):
    """The outputs as a function of one vector of parameters, and that vector."""
    names, values = zip(*model.named_parameters(), strict=True)
    sizes, shapes = [v.numel() for v in values], [v.shape for v in values]

    def outputs(vector, x):
        parts = [part.view(shape) for part, shape in zip(vector.split(sizes), shapes, strict=True)]
        return functional_call(model, dict(zip(names, parts, strict=True)), (x,))

    return outputs, torch.cat([v.detach().flatten() for v in values])


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12 * float(expected.abs().max()))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("make", NETWORKS)
def test_the_hessian_is_the_dense_one(make, at_once):
    model, x = make()
    outputs, here = flat(model)
    # Not torch.func.hessian, which goes forwards and is wrong for layer_norm: the next test has differences.
    expected = jacrev(grad(lambda vector: functional.cross_entropy(outputs(vector, x), LABELS)))(here)
    operator = HessianOperator(model, functional.cross_entropy, (x, LABELS), at_once=at_once)
    same(operator.dense(), expected)
    vector = torch.randn(operator.size, dtype=torch.float64)
    same(operator @ vector, expected @ vector)
    block = operator.start(2, 3)
    same(operator(block), block @ expected)
    same(operator @ block[0].mT, expected @ block[0].mT)


@pytest.mark.parametrize("make", [perceptron, normalised])
def test_the_hessian_is_that_of_differences(make):
    model, x = make()
    outputs, here = flat(model)
    gradient = grad(lambda vector: functional.cross_entropy(outputs(vector, x), LABELS))
    step = 1e-5  # the error is a third derivative times 1e-10, and rounding over 1e-5
    rows = [(gradient(here + step * e) - gradient(here - step * e)) / (2 * step) for e in torch.eye(len(here)).double()]
    operator = HessianOperator(model, functional.cross_entropy, (x, LABELS))
    torch.testing.assert_close(operator.dense(), torch.stack(rows), rtol=0, atol=1e-8)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("make", NETWORKS)
def test_gauss_newton_and_fisher_are_those_of_the_definitions(make, at_once):
    model, x = make()
    outputs, here = flat(model)
    jacobian = jacrev(lambda vector: outputs(vector, x))(here)  # (batch, classes, parameters)
    p = torch.softmax(outputs(here, x), 1)
    inner = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    expected = torch.einsum("bcn,bcd,bdm->nm", jacobian, inner, jacobian) / 6
    gauss_newton = GaussNewtonOperator(model, functional.cross_entropy, (x, LABELS), at_once=at_once)
    same(gauss_newton.dense(), expected)
    same(FisherOperator(model, (x, None), at_once=at_once).dense(), expected)
    # The Fisher information from its definition: labels drawn from the network, all of them with their probability.
    slopes = jacrev(lambda vector: torch.log_softmax(outputs(vector, x), 1))(here)
    same(torch.einsum("bc,bcn,bcm->nm", p, slopes, slopes) / 6, expected)
    single = slopes[torch.arange(6), LABELS]
    same(EmpiricalFisherOperator(model, losses, (x, LABELS), at_once=at_once).dense(), single.mT @ single / 6)
    outer = torch.einsum("bcn,bcm->nm", jacobian, jacobian) / 6
    same(FisherOperator(model, (x, None), "gaussian", at_once=at_once).dense(), outer)
    q = torch.sigmoid(outputs(here, x))
    weighted = torch.einsum("bcn,bc,bcm->nm", jacobian, q * (1 - q), jacobian) / 6
    same(FisherOperator(model, (x, None), "bernoulli", at_once=at_once).dense(), weighted)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_batches_of_unequal_size_give_the_matrix_of_all_examples(reduction):
    model, x = perceptron()

    def loss(outputs, targets):
        return functional.cross_entropy(outputs, targets, reduction=reduction)

    def each(outputs, targets):
        return functional.cross_entropy(outputs, targets, reduction="none")

    cut = [(x[:1], LABELS[:1]), (x[1:3], LABELS[1:3]), (x[3:], LABELS[3:])]
    for make in (HessianOperator, GaussNewtonOperator):
        whole = make(model, loss, (x, LABELS), reduction=reduction).dense()
        same(make(model, loss, cut, reduction=reduction).dense(), whole)
    for make in (
        lambda data: FisherOperator(model, data, reduction=reduction),
        lambda data: EmpiricalFisherOperator(model, each, data, reduction=reduction),
    ):
        same(make(cut).dense(), make((x, LABELS)).dense())


def test_the_matrix_of_a_sum_is_that_of_the_mean_times_the_examples():
    model, x = perceptron()
    for make in (
        lambda how: HessianOperator(model, nn.CrossEntropyLoss(reduction=how), (x, LABELS), reduction=how),
        lambda how: GaussNewtonOperator(model, nn.CrossEntropyLoss(reduction=how), (x, LABELS), reduction=how),
        lambda how: FisherOperator(model, (x, None), reduction=how),
        lambda how: FisherOperator(model, (x, None), "gaussian", reduction=how),
        lambda how: FisherOperator(model, (x, None), "bernoulli", reduction=how),
        lambda how: EmpiricalFisherOperator(model, losses, (x, LABELS), reduction=how),
    ):
        same(make("sum").dense(), 6 * make("mean").dense())
        vectors = make("sum").start(3)
        for how in ("sum", "mean"):
            same(make(how).forms(vectors), torch.einsum("bn,nm,bm->b", vectors, make(how).dense(), vectors))


@pytest.mark.parametrize("at_once", [True, False])
def test_products_with_one_batch_share_a_pass_and_those_with_several_do_not(at_once):
    model, x = perceptron()
    passes = []

    def loss(outputs, targets):
        passes.append(len(outputs))
        return functional.cross_entropy(outputs, targets)

    cut = [(x[:2], LABELS[:2]), (x[2:], LABELS[2:])]  # the graphs of many would not fit into memory
    for batches, expected in (((x, LABELS), [6]), ([(x, LABELS)], [6]), (cut, 3 * [2, 4])):
        passes.clear()
        operator = HessianOperator(model, loss, batches, at_once=at_once)
        for _ in range(3):
            operator(operator.start(2))
        assert passes == expected


def test_chains_are_written_out_on_a_processor_and_else_left_to_autograd():
    model, x = perceptron()
    operator = HessianOperator(model, functional.cross_entropy, (x, LABELS))
    assert not operator.at_once
    assert isinstance(operator._prepare_product(x, LABELS), ChainCurvature)
    assert not isinstance(operator._prepare_product((x,), LABELS), ChainCurvature)
    whole = HessianOperator(model, functional.cross_entropy, (x, LABELS), at_once=True)
    assert not isinstance(whole._prepare_product(x, LABELS), ChainCurvature)
    single = HessianOperator(model.float(), functional.cross_entropy, (x.float(), LABELS))
    assert isinstance(single._prepare_product(x.float(), LABELS), ChainCurvature)
    narrow = HessianOperator(model.bfloat16(), functional.cross_entropy, (x.bfloat16(), LABELS))
    assert not isinstance(narrow._prepare_product(x.bfloat16(), LABELS), ChainCurvature)


def test_classes_may_have_positions_behind_them():
    torch.manual_seed(0)
    model, x = nn.Conv1d(2, CLASSES, 1).double(), torch.randn(4, 2, 5).double()
    loss = nn.CrossEntropyLoss(reduction="sum")
    expected = GaussNewtonOperator(model, loss, (x, torch.zeros(4, 5).long()), reduction="sum").dense()
    for at_once in (True, False):
        same(FisherOperator(model, (x, None), reduction="sum", at_once=at_once).dense(), expected)


def test_some_of_the_parameters_and_those_that_are_frozen():
    model, x = perceptron()
    whole = HessianOperator(model, functional.cross_entropy, (x, LABELS)).dense()
    last = HessianOperator(model, functional.cross_entropy, (x, LABELS), names=["2.weight", "2.bias"])
    same(last.dense(), whole[25:, 25:])
    model[0].requires_grad_(False)
    same(HessianOperator(model, functional.cross_entropy, (x, LABELS)).dense(), whole[25:, 25:])
    assert {name: tuple(part.shape) for name, part in last.split(last.start(7)).items()} == {
        "2.weight": (7, CLASSES, 5),
        "2.bias": (7, CLASSES),
    }


def test_a_parameter_that_two_layers_share_answers_to_both_names():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).double()
    model[2].weight = model[0].weight
    data = torch.randn(6, 4).double(), LABELS
    one, other = (HessianOperator(model, functional.cross_entropy, data, names=[f"{k}.weight"]) for k in (0, 2))
    whole = HessianOperator(model, functional.cross_entropy, data).dense()
    same(one.dense(), whole[:16, :16])
    same(other.dense(), whole[:16, :16])


def test_it_is_the_curvature_where_the_parameters_were():
    model, x = perceptron()
    operator = HessianOperator(model, functional.cross_entropy, (x, LABELS))
    before = operator.dense()
    with torch.no_grad():
        for value in model.parameters():
            value.add_(1.0)
    same(operator.dense(), before)
    assert all(value.grad is None for value in model.parameters())
    with torch.no_grad():  # also where gradients are switched off
        same(HessianOperator(model, functional.cross_entropy, (x, LABELS)).dense() * 0 + before, operator.dense())


def test_measuring_leaves_the_counts_of_batch_normalisation_alone():
    model, x = normalised()
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    cut = [(x[:3], LABELS[:3]), (x[3:], LABELS[3:])]
    operators = [make(model, functional.cross_entropy, cut) for make in (HessianOperator, GaussNewtonOperator)]
    operators += [FisherOperator(model, cut), EmpiricalFisherOperator(model, losses, cut)]
    for operator in operators:
        operator.dense()
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.eval()
    operator = HessianOperator(model, functional.cross_entropy, cut)
    here = operator.dense()
    model[3].running_mean += 1.0  # as of the parameters, the operator has a copy
    same(operator.dense(), here)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_loss_without_curvature_has_none(at_once):
    model, x = nn.Linear(3, 1).double(), torch.randn(4, 3).double()
    assert not HessianOperator(model, lambda f, y: f.sum(), (x, None), at_once=at_once).dense().any()
    assert not GaussNewtonOperator(model, lambda f, y: f.sum(), (x, None), at_once=at_once).dense().any()
    apart = nn.ModuleDict({"used": nn.Linear(3, 1), "unused": nn.Linear(2, 2)}).double()
    apart.forward = lambda x: apart["used"](x)
    found = HessianOperator(apart, functional.mse_loss, (x, torch.zeros(4, 1).double()), at_once=at_once).dense()
    assert found[:4, :4].any()
    assert not found[4:].any()
    assert not found[:, 4:].any()


def test_inputs_may_be_several_and_blocks_empty():
    model = nn.Bilinear(2, 3, 1).double()
    x, y = torch.randn(5, 2).double(), torch.randn(5, 3).double()
    operator = HessianOperator(model, functional.mse_loss, ((x, y), torch.zeros(5, 1).double()))
    products = torch.cat([(x[:, :, None] * y[:, None, :]).flatten(1), torch.ones(5, 1).double()], 1)
    same(operator.dense(), 2 / 5 * products.mT @ products)
    assert operator(torch.empty(0, 7).double()).shape == (0, 7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes_are_kept(dtype):
    model, x = perceptron()
    exact = HessianOperator(model, functional.cross_entropy, (x, LABELS)).dense()
    found = HessianOperator(model.to(dtype), functional.cross_entropy, (x.to(dtype), LABELS)).dense()
    assert found.dtype is dtype
    assert (found.double() - exact).norm() <= 20 * torch.finfo(dtype).eps * exact.norm()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_it_works_on_a_gpu():
    model, x = convolutional()
    exact = HessianOperator(model, functional.cross_entropy, (x, LABELS)).dense()
    found = HessianOperator(model.cuda(), functional.cross_entropy, (x.cuda(), LABELS.cuda()))
    assert found.at_once
    torch.testing.assert_close(found.dense().cpu(), exact, rtol=1e-9, atol=1e-12)


X, Y = torch.ones(2, 4).double(), torch.zeros(2).long()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m: HessianOperator(m, functional.cross_entropy, []), "batches must hold at least one example"),
        (
            lambda m: HessianOperator(m, functional.cross_entropy, [("x", Y)]),
            "with tensors as inputs, got <class 'str'>",
        ),
        (
            lambda m: HessianOperator(m, functional.cross_entropy, zip([X], [Y], strict=True)),
            r"batches must be gone through again and again, got an iterator: use list\(batches\)",
        ),
        (
            lambda m: FisherOperator(m, (pair for pair in [(X, Y)])),
            r"batches must be gone through again and again, got an iterator: use list\(batches\)",
        ),
        (lambda m: HessianOperator(m, losses, (X, Y)).dense(), r"loss must give one number, got shape \(2,\)"),
        (lambda m: GaussNewtonOperator(m, losses, (X, Y)).dense(), r"loss must give one number, got shape \(2,\)"),
        (
            lambda m: EmpiricalFisherOperator(m, nn.CrossEntropyLoss(), (X, Y)).dense(),
            r"must give \(2,\) numbers, one for",
        ),
        (
            lambda m: HessianOperator(m.requires_grad_(False), losses, (X, Y)),
            "must have parameters that require gradients",
        ),
        (
            lambda m: HessianOperator(m, losses, (X, Y), reduction="none"),
            "reduction must be one of mean, sum, got 'none'",
        ),
        (
            lambda m: FisherOperator(m, (X, Y), "poisson"),
            "distribution must be one of categorical, bernoulli, gaussian",
        ),
        (lambda m: FisherOperator(nn.Sequential(m, nn.Flatten(0)), (X, Y)).dense(), r"must be \(batch, classes, ...\)"),
        (lambda m: HessianOperator(nn.Sequential(m, nn.Dropout()), losses, (X, Y)), r"call model.eval\(\) first"),
        (lambda m: HessianOperator(m, losses, (X, Y), names="0.weight"), r"got '0.weight': use \['0.weight'\]"),
        (
            lambda m: HessianOperator(m, losses, (X, Y), names=["0.weight", "1.weight"]),
            "names must be one of 0.weight, 0.bias, 2.weight, 2.bias, got '1.weight'",
        ),
        (lambda m: HessianOperator(m.to("meta"), losses, (X, Y)), "got parameters on the meta device: load it on"),
        (lambda m: HessianOperator(m, losses, (X, Y), at_once="no"), "at_once must be True or False, got 'no'"),
        (lambda m: HessianOperator(m, losses, (X, Y))(torch.ones(3).double()), "vectors must have 43 numbers"),
        (
            lambda m: HessianOperator(m, losses, (X, Y))(torch.ones(43)),
            "vectors must be torch.float64 as the parameters",
        ),
        (
            lambda m: HessianOperator(nn.Sequential(m, nn.Linear(3, 3)), losses, (X, Y)),
            "parameters must have one dtype",
        ),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make(perceptron()[0])


def test_operators_have_a_shape_and_say_what_they_are():
    hessian = HessianOperator(nn.Linear(3, 1), functional.mse_loss, (torch.rand(5, 3), torch.rand(5, 1)))
    assert hessian.shape == hessian.dense().shape == (4, 4)
    assert repr(hessian) == "HessianOperator(4 x 4, torch.float32, 5 examples)"
