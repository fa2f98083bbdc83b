"""Batch normalisation: torch's numbers, running statistics and names, by the kernel and by the formula."""

import copy

import pytest
import torch
from torch import nn

from lemmata.tricks import BatchNorm

TORCHS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
SHAPES = [(8, 5), (8, 5, 7), (4, 5, 3, 3), (2, 5, 2, 3, 2)]
CHOICES = [
    {},
    {"momentum": None},
    {"momentum": 0.7, "eps": 0.1},
    {"affine": False},
    {"track_running_stats": False},
    {"momentum": 0.0},
    {"momentum": None, "affine": False},
]


def pair(shape, **choice):
    """Ours, torch's, and ours again, with the same weights."""
    ours, torchs = BatchNorm(5, **choice).double(), TORCHS[len(shape)](5, **choice).double()
    for values in torchs.parameters():
        nn.init.normal_(values)
    ours.load_state_dict(torchs.state_dict())
    return ours, torchs, copy.deepcopy(ours)


def test_state_dicts_from_before_batches_were_counted_load_as_in_torch():
    old = {name: values + 2 for name, values in BatchNorm(5).state_dict().items() if name != "num_batches_tracked"}
    ours, torchs = BatchNorm(5), nn.BatchNorm1d(5)
    for layer in (ours, torchs):
        layer(torch.randn(8, 5))
        layer.load_state_dict(dict(old))
    torch.testing.assert_close(dict(ours.state_dict()), dict(torchs.state_dict()))
    assert ours.num_batches_tracked == 1
    bare = BatchNorm(5, device="meta")
    bare.load_state_dict(dict(old), assign=True)
    assert bare.num_batches_tracked == 0
    with pytest.raises(RuntimeError, match="running_mean"):
        ours.load_state_dict({"weight": torch.ones(5), "bias": torch.ones(5)})


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_gradients_and_running_statistics_are_torchs(shape, choice):
    ours, torchs, formula = pair(shape, **choice)
    by = (ours, torchs, formula.by_formula)
    for layer in (ours, torchs, formula):
        layer.train()
    for _ in range(3):
        x = 3 + 2 * torch.randn(shape, dtype=torch.float64)
        inputs = [x.clone().requires_grad_() for _ in by]
        outputs = [layer(given) for layer, given in zip(by, inputs, strict=True)]
        upstream = torch.randn_like(x)
        found = []
        for layer, output, given in zip((ours, torchs, formula), outputs, inputs, strict=True):
            found.append(torch.autograd.grad(output, [given, *layer.parameters()], upstream))
        for k in (0, 2):
            torch.testing.assert_close(outputs[k], outputs[1], rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(found[k], found[1], rtol=1e-10, atol=1e-10)
    for layer in (ours, formula):
        assert layer.state_dict().keys() == torchs.state_dict().keys()
        torch.testing.assert_close(dict(layer.state_dict()), dict(torchs.state_dict()), rtol=1e-12, atol=1e-12)
        layer.eval()
    torchs.eval()
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(ours(x), torchs(x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(formula.by_formula(x), torchs(x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(dict(ours.state_dict()), dict(torchs.state_dict()), rtol=1e-12, atol=1e-12)


def test_weights_load_both_ways_and_statistics_can_be_forgotten():
    ours, torchs = BatchNorm(4), nn.BatchNorm2d(4)
    ours(torch.randn(9, 4))
    torchs.load_state_dict(ours.state_dict())
    assert torchs.num_batches_tracked == 1
    ours.reset_parameters()
    fresh = nn.BatchNorm1d(4).state_dict()
    assert all(torch.equal(values, fresh[name]) for name, values in ours.state_dict().items())


def test_gradients_are_those_of_finite_differences():
    layer = BatchNorm(3, track_running_stats=False).double()
    x = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
    for call in (layer, layer.by_formula):
        assert torch.autograd.gradcheck(lambda x, *_, call=call: call(x), (x, *layer.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_formula_is_the_layer_in_every_dtype(dtype):
    layer = BatchNorm(3, dtype=dtype)
    x = torch.randn(5, 3).to(dtype)
    torch.testing.assert_close(layer.by_formula(x), layer(x), atol=0.05 if dtype is torch.bfloat16 else 1e-5, rtol=0)


def test_short_numbers_may_meet_parameters_in_single_precision():
    x = torch.randn(50, 3).bfloat16()
    layer = BatchNorm(3)
    assert layer(x).dtype is torch.bfloat16
    layer.by_formula(x)
    assert layer.running_mean.dtype is torch.float32


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BatchNorm(0), "features must be >= 1, got 0"),
        (lambda: BatchNorm(2, eps=0.0), "eps must be > 0, got 0.0"),
        (lambda: BatchNorm(2, momentum=1.5), "momentum must be >= 0 and <= 1, got 1.5"),
        (lambda: BatchNorm(2, affine=1), "affine must be True or False, got 1"),
        (lambda: BatchNorm(2, track_running_stats=0), "track_running_stats must be True or False, got 0"),
        (lambda: BatchNorm(2)(torch.randn(1, 2)), r"one value for each feature has no variance"),
        (lambda: BatchNorm(2).by_formula(torch.randn(1, 2, 1)), r"use a larger one, or eval\(\)"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


def test_a_refused_batch_counts_for_nothing():
    layer = BatchNorm(2)
    with pytest.raises(ValueError, match="no variance"):
        layer(torch.randn(1, 2))
    assert layer.num_batches_tracked == 0


def test_what_a_layer_is_can_be_read():
    text = "BatchNorm(3, eps=1e-05, momentum=None, affine=False, track_running_stats=True)"
    assert repr(BatchNorm(3, momentum=None, affine=False)) == text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gpu_gives_the_numbers_of_the_cpu(dtype):
    here, there = BatchNorm(5, dtype=dtype), BatchNorm(5, dtype=dtype, device="cuda")
    x = torch.randn(64, 5, 3, dtype=dtype)
    torch.testing.assert_close(there(x.cuda()).cpu(), here(x))
    torch.testing.assert_close({name: part.cpu() for name, part in there.state_dict().items()}, dict(here.state_dict()))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([1.0], r"x must be a tensor, got list: use torch.as_tensor\(x\)"),
        (torch.ones(3, 4, dtype=torch.long), r"x must hold floating-point numbers, got torch.int64: use x.float\(\)"),
    ],
)
def test_what_is_no_tensor_of_floating_point_numbers_is_answered_in_words(x, said):
    layer = BatchNorm(4)
    for call in (layer, layer.by_formula):
        with pytest.raises(TypeError, match=said):
            call(x)
    assert layer.num_batches_tracked == 0
