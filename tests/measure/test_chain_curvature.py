"""Hessians of chains of layers written out: the same as autograd's for every known layer, and what is left alone."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure import chain_curvature
from lemmata.measure.chain_curvature import ChainCurvature, known_chain
from lemmata.measure.curvature_products import HessianOperator

CHAINS = {
    "one layer": ([nn.Linear(5, 3)], (5,)),
    "without bias": ([nn.Linear(5, 4, bias=False), nn.Tanh(), nn.Linear(4, 3, bias=False)], (5,)),
    "deep": ([nn.Linear(5, 6), nn.GELU(), nn.Linear(6, 4), nn.Sigmoid(), nn.Linear(4, 3), nn.Softplus()], (5,)),
    "nested": ([nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.SiLU()), nn.Identity(), nn.Linear(4, 3)], (2, 3)),
    "activation first": ([nn.ReLU(inplace=True), nn.Linear(5, 4), nn.ELU(inplace=True), nn.Linear(4, 3)], (5,)),
    "pool": (
        [
            *(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(2, 3, 2), nn.LeakyReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3)),
        ],
        (1, 10, 10),
    ),
    "smooth pool": (
        [
            nn.Conv2d(2, 4, 3, stride=2, padding=(1, 0), groups=2),
            *(nn.Tanh(), nn.MaxPool2d((2, 3)), nn.Flatten(), nn.Linear(4, 3)),
        ],
        (2, 5, 9),  # three rows and four columns are pooled: some belong to no window
    ),
    "pool first": (
        [nn.MaxPool2d(2), nn.Conv2d(1, 2, 3, dilation=2, bias=False), nn.Flatten(), nn.Dropout(), nn.Linear(2, 3)],
        (1, 10, 11),
    ),
    "steps in time": ([nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3), nn.Flatten(), nn.Linear(6, 3)], (2, 5)),
    "linear along rows": (
        [nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Linear(3, 2), nn.Sigmoid(), nn.Conv2d(2, 1, 2), nn.Flatten()],
        (1, 5, 4),
    ),
}


def chain(name):
    torch.manual_seed(0)
    parts, shape = CHAINS[name]
    model = nn.Sequential(*parts).double().eval()
    for value in model.parameters():
        nn.init.normal_(value, std=0.5)
    return model, torch.randn(7, *shape).double(), torch.arange(7) % 3


@pytest.mark.parametrize("cached", [1, 1 << 10, 1 << 21])
@pytest.mark.parametrize("name", CHAINS)
def test_products_and_forms_are_those_of_autograd(monkeypatch, name, cached):
    monkeypatch.setattr(chain_curvature, "CACHED", cached)  # one example at a time, some, or all of them
    model, x, y = chain(name)
    before = x.clone()
    written = HessianOperator(model, functional.cross_entropy, (x, y))
    assert known_chain(model, written.parameters) is not None
    found = written.dense()
    assert torch.equal(x, before)
    through = HessianOperator(model, functional.cross_entropy, (x.clone(), y), at_once=True)
    expected = through.dense()
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12 * float(expected.abs().max()))
    vectors = written.start(2, 3)
    forms = torch.einsum("abn,nm,abm->ab", vectors, expected, vectors)
    for operator in (written, through):
        torch.testing.assert_close(operator.forms(vectors), forms, rtol=1e-10, atol=1e-12)


def test_a_loss_may_join_the_examples_or_have_no_curvature():
    model, x, y = chain("deep")
    for loss in (lambda f, y: f.std() + f.mean() ** 2, lambda f, y: f.sum(), lambda f, y: f.abs().sum()):
        expected = HessianOperator(model, loss, (x, y), at_once=True).dense()
        torch.testing.assert_close(HessianOperator(model, loss, (x, y)).dense(), expected, rtol=1e-9, atol=1e-12)


def test_several_batches_are_added_up():
    model, x, y = chain("pool")
    cut = [(x[:2], y[:2]), (x[2:], y[2:])]
    operators = [HessianOperator(model, functional.cross_entropy, data) for data in ((x, y), cut)]
    vectors = operators[0].start(2)
    torch.testing.assert_close(*(operator(vectors) for operator in operators), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(*(operator.forms(vectors) for operator in operators), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_batch_without_examples_adds_nothing(reduction):
    model, x, y = chain("pool")
    loss = nn.CrossEntropyLoss(reduction=reduction)
    cut = [(x[:2], y[:2]), (x[:0], y[:0]), (x[2:], y[2:])]
    for at_once in (False, True):
        operators = [HessianOperator(model, loss, data, None, reduction, at_once) for data in ((x, y), cut)]
        torch.testing.assert_close(*(operator.dense() for operator in operators), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("layers", "shape"),
    [
        ([nn.Linear(5, 3), nn.Tanh()], (5,)),
        ([nn.Conv2d(2, 3, 2), nn.Tanh()], (2, 4, 4)),
        ([nn.Linear(4, 4), nn.Tanh(), nn.MaxPool2d(2)], (2, 4, 4)),
    ],
)
def test_one_example_without_an_axis_for_the_batch_is_left_to_autograd(layers, shape):
    torch.manual_seed(0)
    model, x = nn.Sequential(*layers).double(), torch.randn(*shape).double()
    found, expected = (
        HessianOperator(model, lambda f, y: f.square().sum(), (x, None), at_once=at_once).dense()
        for at_once in (False, True)
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_the_order_of_the_parameters_is_that_of_the_names():
    model, x, y = chain("deep")
    names = [name for name, _ in model.named_parameters()]
    orders = [names[2:] + names[:2], [names[1], names[0], *names[2:]]]
    model = copy.deepcopy(model)  # others use it too
    layer = model[0]
    weight = layer.weight
    del layer.weight
    layer.weight = weight  # now it comes after the bias
    assert [name for name, _ in model.named_parameters()] == orders[1]
    for order in (*orders, None):
        written = HessianOperator(model, functional.cross_entropy, (x, y), names=order)
        through = HessianOperator(model, functional.cross_entropy, (x, y), names=order, at_once=True)
        torch.testing.assert_close(written.dense(), through.dense(), rtol=1e-10, atol=1e-12)


def hooked():
    layer = nn.Linear(4, 2)
    layer.register_forward_hook(lambda module, given, result: 2 * result)
    return nn.Sequential(layer)


def shared():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Tanh())


class Doubled(nn.Linear):
    def forward(self, input):
        return 2 * super().forward(input)


LEFT_TO_AUTOGRAD = {
    "not a chain": lambda: nn.Linear(4, 2),
    "hook": hooked,
    "shared layer": shared,
    "subclass": lambda: nn.Sequential(Doubled(4, 2)),
    "normalisation": lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)),
    "learned slope": lambda: nn.Sequential(nn.Linear(4, 2), nn.PReLU()),
    "softmax": lambda: nn.Sequential(nn.Linear(4, 2), nn.Softmax(1)),
    "flatten from the last axis": lambda: nn.Sequential(nn.Flatten(0), nn.Linear(4, 2)),
    "overlapping pool": lambda: nn.Sequential(nn.Conv2d(1, 1, 1), nn.MaxPool2d(3, stride=1)),
    "padded pool": lambda: nn.Sequential(nn.Conv2d(1, 1, 1), nn.MaxPool2d(2, padding=1)),
    "rounded-up pool": lambda: nn.Sequential(nn.Conv2d(1, 1, 1), nn.MaxPool2d(2, ceil_mode=True)),
    "pool with its places": lambda: nn.Sequential(nn.Conv2d(1, 1, 1), nn.MaxPool2d(2, return_indices=True)),
    "other padding": lambda: nn.Sequential(nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")),
    "padding in words": lambda: nn.Sequential(nn.Conv2d(1, 1, 3, padding="same")),
    "nothing": lambda: nn.Sequential(),
}


@pytest.mark.parametrize("name", LEFT_TO_AUTOGRAD)
def test_what_it_does_not_know_is_left_to_autograd(name):
    model = LEFT_TO_AUTOGRAD[name]()
    assert known_chain(model, dict(model.named_parameters())) is None


def test_frozen_or_chosen_parameters_are_left_to_autograd():
    model, x, y = chain("deep")
    assert known_chain(model, {"0.weight": model[0].weight, "0.bias": model[0].bias}) is None
    assert known_chain(model, {n: p for n, p in model.named_parameters() if n != "0.bias"}) is None
    some = HessianOperator(model, functional.cross_entropy, (x, y), names=["0.weight"])
    torch.testing.assert_close(some.dense(), HessianOperator(model, functional.cross_entropy, (x, y)).dense()[:30, :30])


def test_examples_are_cut_to_what_a_cache_holds():
    model, x, y = chain("pool")
    layers = known_chain(model, dict(model.named_parameters()))
    assert layers is not None
    assert ChainCurvature(layers, functional.cross_entropy, x, y).size == chain_curvature.CACHED // (2 * 100 * 8)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("pool", ["product", "choice", "product", "choice", "shape", "product"]),  # rectifier and pool in one
        ("smooth pool", ["product", "bend", "choice", "shape", "product"]),
        ("pool first", ["choice", "product", "shape", "product"]),  # nothing is dropped
        ("activation first", ["slope", "product", "bend", "product"]),
    ],
)
def test_no_pass_is_made_that_can_be_spared(name, kept):
    model, x, y = chain(name)
    layers = known_chain(model, dict(model.named_parameters()))
    assert layers is not None

    def kind(passed):
        words = {"product": passed.affine, "shape": passed.shape, "choice": passed.window, "bend": passed.curvature}
        return next((word for word, value in words.items() if value is not None), "slope")

    (passed,) = ChainCurvature(layers, functional.cross_entropy, x, y).chunks
    assert [kind(each) for each in passed] == kept


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 4, 5), (2, 3)])
def test_pictures_are_laid_out_with_channels_last(shape):
    x = torch.randn(shape)
    found = chain_curvature._laid_out(x)
    assert found.equal(x)
    if len(shape) == 4:
        _, channels, _, width = shape
        assert found.stride()[1:] == (1, width * channels, channels)
    else:
        assert found is x


def test_in_single_precision_it_is_as_exact_as_autograd():
    model, x, y = chain("pool")
    exact = HessianOperator(model, functional.cross_entropy, (x, y)).dense()
    found = HessianOperator(model.float(), functional.cross_entropy, (x.float(), y)).dense()
    assert found.dtype is torch.float32
    assert (found.double() - exact).norm() <= 20 * torch.finfo(torch.float32).eps * exact.norm()
