"""The cross-entropies: torch's values and gradients to rounding, all its transformations, and refusals."""

import subprocess
import sys

import pytest
import torch
from torch.nn import functional

from lemmata.feedforward import binary_cross_entropy, cross_entropy

EPS = torch.finfo(torch.double).eps


def value_and_gradient(loss, logits):
    at = logits.clone().requires_grad_()
    value = loss(at)
    (value * torch.linspace(1, 2, value.numel()).to(value).reshape(value.shape)).sum().backward()
    return value.detach(), at.grad


def same(ours, theirs, logits, ulps=32):
    """Both within some roundings of the largest term that was added."""
    room = ulps * torch.finfo(logits.dtype).eps * (1 + float(logits.abs().max()))
    for left, right in zip(value_and_gradient(ours, logits), value_and_gradient(theirs, logits), strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert (left - right).abs().max() <= room * (1 + right.abs().max())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("soft", [False, True])
def test_it_is_torchs_cross_entropy(reduction, smoothing, scale, soft):
    torch.manual_seed(1)
    logits = scale * torch.randn(9, 5, dtype=torch.double)
    y = torch.rand(9, 5, dtype=torch.double).softmax(1) if soft else torch.arange(9) % 5
    same(
        lambda z: cross_entropy(z, y, smoothing, reduction),
        lambda z: functional.cross_entropy(z, y, label_smoothing=smoothing, reduction=reduction),
        logits,
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [None, 2, -100])
def test_weights_and_ignored_examples_are_torchs(reduction, smoothing, weighted, ignore_index):
    torch.manual_seed(2)
    logits, y = torch.randn(9, 5, dtype=torch.double), torch.arange(9) % 5
    weight = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0], dtype=torch.double) if weighted else None
    if ignore_index == -100:
        y[[1, 4]] = -100
    same(
        lambda z: cross_entropy(z, y, smoothing, reduction, weight, ignore_index),
        lambda z: functional.cross_entropy(
            z,
            y,
            weight,
            label_smoothing=smoothing,
            reduction=reduction,
            ignore_index=-1 if ignore_index is None else ignore_index,
        ),
        logits,
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (2, 1, 3)])
def test_what_is_called_on_a_gpu_is_the_same_function(reduction, smoothing, weighted, shape):
    from lemmata.feedforward.softmax import _torch_losses

    logits = torch.randn(*shape, 5, dtype=torch.double, requires_grad=True)
    y = torch.randint(5, shape).to(torch.int32)
    weight = torch.rand(5, dtype=torch.double) if weighted else None
    there, here = (
        _torch_losses(logits, y, smoothing, reduction, weight),
        cross_entropy(logits, y, smoothing, reduction, weight),
    )
    torch.testing.assert_close(there, here)
    torch.testing.assert_close(*(torch.autograd.grad(loss.sum(), logits)[0] for loss in (there, here)))
    with pytest.raises(IndexError, match="out of bounds"):  # torch would have left it out
        _torch_losses(logits, y * 0 - 100, smoothing, reduction, weight)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_of_probabilities_are_torchs(reduction):
    torch.manual_seed(3)
    logits, y = torch.randn(4, 3, dtype=torch.double), torch.rand(4, 3, dtype=torch.double).softmax(1)
    weight = torch.tensor([0.5, 0.0, 2.0], dtype=torch.double)
    same(
        lambda z: cross_entropy(z, y, 0.2, reduction, weight),
        lambda z: functional.cross_entropy(z, y, weight, label_smoothing=0.2, reduction=reduction),
        logits,
    )


def test_a_row_that_is_ignored_has_no_gradient_whatever_it_holds():
    logits = torch.tensor([[0.0, 1.0], [torch.nan, torch.inf]], requires_grad=True)
    loss = cross_entropy(logits, torch.tensor([0, -100]), ignore_index=-100)
    loss.backward()
    assert loss.item() == pytest.approx(functional.cross_entropy(logits[:1], torch.tensor([0])).item())
    assert logits.grad[1].tolist() == [0.0, 0.0]
    assert cross_entropy(logits, torch.tensor([-100, -100]), ignore_index=-100).isnan()  # a mean of nothing


@pytest.mark.parametrize("shape", [(4, 3, 6), (6,), (1, 1), (2, 2, 2, 7)])
def test_the_classes_are_on_the_last_axis_of_any_batch(shape):
    logits = torch.randn(shape, dtype=torch.double)
    y = torch.randint(shape[-1], shape[:-1])
    rows = functional.cross_entropy(logits.reshape(-1, shape[-1]), y.reshape(-1), reduction="none")
    torch.testing.assert_close(cross_entropy(logits, y, reduction="none"), rows.reshape(shape[:-1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_dtypes_keep_theirs(dtype):
    logits, y = torch.randn(6, 5).to(dtype).requires_grad_(), torch.arange(6) % 5
    loss = cross_entropy(logits, y, 0.1)
    loss.backward()
    assert loss.dtype == logits.grad.dtype == dtype
    torch.testing.assert_close(
        loss.float(), functional.cross_entropy(logits.float(), y, label_smoothing=0.1), rtol=0.02, atol=0.02
    )


def test_under_autocast_the_gradient_has_the_dtype_of_the_logits():
    logits = torch.randn(6, 5, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        loss = cross_entropy(logits, torch.arange(6) % 5)
        assert loss.dtype is functional.cross_entropy(logits, torch.arange(6) % 5).dtype
    loss.backward()
    assert logits.grad.dtype is torch.bfloat16


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_first_and_second_derivatives_are_those_of_finite_differences(smoothing):
    logits, y = torch.randn(3, 4, dtype=torch.double, requires_grad=True), torch.tensor([0, 3, 1])
    assert torch.autograd.gradcheck(lambda z: cross_entropy(z, y, smoothing, "none"), logits, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda z: cross_entropy(z, y, smoothing, "none"), logits)


def test_derivatives_that_are_differentiated_again_keep_all_digits_of_double_precision():
    logits, y = torch.randn(40, 7, dtype=torch.double), torch.randint(7, (40,))
    found = []
    for loss in (
        lambda z: cross_entropy(z, y, 0.1),
        lambda z: torch.nn.functional.cross_entropy(z, y, label_smoothing=0.1),
    ):
        given = logits.clone().requires_grad_()
        slope = torch.autograd.grad(loss(given), given, create_graph=True)[0]
        found.append([slope.detach(), torch.autograd.grad(slope.square().sum(), given)[0]])
    for ours, torchs in zip(*found, strict=True):
        torch.testing.assert_close(ours, torchs, rtol=1e-12, atol=1e-14 * float(torchs.abs().max()))


def test_torch_func_and_batched_gradients():
    logits, y = torch.randn(3, 4, dtype=torch.double), torch.tensor([0, 3, 1])

    def theirs(z):
        return functional.cross_entropy(z, y)

    each = torch.func.vmap(cross_entropy)(logits, y)
    torch.testing.assert_close(each, functional.cross_entropy(logits, y, reduction="none"))
    ours = torch.func.hessian(lambda z: cross_entropy(z, y))(logits)
    torch.testing.assert_close(ours, torch.func.hessian(theirs)(logits), rtol=1e-12, atol=1e-14)
    rows = torch.autograd.functional.jacobian(lambda z: cross_entropy(z, y, 0.1, "none"), logits, vectorize=True)
    wanted = torch.autograd.functional.jacobian(
        lambda z: functional.cross_entropy(z, y, label_smoothing=0.1, reduction="none"), logits
    )
    torch.testing.assert_close(rows, wanted, rtol=1e-12, atol=1e-14)


def test_a_loss_that_nobody_asks_of_has_no_gradient():
    logits = torch.randn(3, 4, requires_grad=True)
    other = torch.ones(1, requires_grad=True)
    loss = cross_entropy(logits, torch.zeros(3).long(), reduction="none")
    (grad,) = torch.autograd.grad((other * loss[:0].sum()).sum() + other.sum(), logits, allow_unused=True)
    assert grad is None or not grad.any()


COMPILE = """
import torch
from lemmata.feedforward.softmax import binary_cross_entropy, cross_entropy
z, y = torch.randn(6, 5, requires_grad=True), torch.arange(6) % 5
for f in (lambda z: cross_entropy(z, y, 0.1), lambda z: binary_cross_entropy(z[:, 0], (y > 2).float())):
    quick = torch.compile(f, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(quick(z), f(z))
    torch.testing.assert_close(torch.autograd.grad(quick(z), z), torch.autograd.grad(f(z), z))
"""


def test_it_compiles_as_a_whole_with_its_gradient():
    # In a process of its own, without the shape checks that tests add.
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0, 1e4])
def test_it_is_torchs_binary_cross_entropy(reduction, scale):
    torch.manual_seed(1)
    logits = scale * torch.randn(30, dtype=torch.double)
    for y in (torch.arange(30) % 2, torch.rand(30, dtype=torch.double)):
        same(
            lambda z, y=y: binary_cross_entropy(z, y, reduction),
            lambda z, y=y: functional.binary_cross_entropy_with_logits(z, y.double(), reduction=reduction),
            logits,
        )


def test_small_losses_and_their_gradients_keep_their_digits():
    logits = torch.tensor([-60.0, 60.0], dtype=torch.double, requires_grad=True)
    loss = binary_cross_entropy(logits, torch.tensor([0, 1]), "none")
    loss.sum().backward()
    expected = torch.exp(torch.tensor(-60.0, dtype=torch.double))
    torch.testing.assert_close(loss.detach(), expected.expand(2), rtol=8 * EPS, atol=0)
    torch.testing.assert_close(logits.grad, expected * torch.tensor([1.0, -1.0]).double(), rtol=64 * EPS, atol=0)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    logits, numbers = torch.zeros(3, 4), torch.zeros(3).long()
    for bad in (
        lambda: cross_entropy(logits, [0, 1, 2]),
        lambda: cross_entropy(logits, numbers.numpy()),
        lambda: cross_entropy(logits.tolist(), numbers),
        lambda: cross_entropy(logits, numbers, weight=[1.0] * 4),
        lambda: binary_cross_entropy(logits, [0]),
        lambda: binary_cross_entropy([0.0], numbers),
    ):
        with pytest.raises(TypeError, match=r"must be a tensor, got (list|ndarray): use torch\.as_tensor"):
            bad()
    for loss in (cross_entropy, binary_cross_entropy):
        with pytest.raises(TypeError, match=r"logits must be floating point, got torch\.int64: use logits\.float\(\)"):
            loss(logits.long(), numbers)
    with pytest.raises(ValueError, match=r"got torch\.float32 of shape \(3,\): use y\.long\(\)"):
        cross_entropy(logits, numbers.float())
    with pytest.raises(ValueError, match=r"got shape \(3, 4\): use y\.argmax\(-1\)"):
        cross_entropy(logits, torch.ones(3, 4).long())
    with pytest.raises(ValueError, match=r"logits must have the classes on their last axis, got shape \(\)"):
        cross_entropy(torch.tensor(1.0), torch.tensor(0))
    with pytest.raises(ValueError, match=r"weight must have one entry for each of 4 classes, got shape \(3,\)"):
        cross_entropy(logits, numbers, weight=torch.ones(3))
    with pytest.raises(ValueError, match="got -100 to 1: use ignore_index=-100"):
        cross_entropy(logits, torch.tensor([0, -100, 1]))
    with pytest.raises(ValueError, match="ignore_index must be left out for probabilities"):
        cross_entropy(logits, logits, ignore_index=0)
    with pytest.raises(ValueError, match=r"y must lie from 0 to 1, got -1 to 1: use \(y \+ 1\) / 2"):
        binary_cross_entropy(torch.zeros(2), torch.tensor([-1, 1]))
    with pytest.raises(ValueError, match=r"y must lie from 0 to 1, got 0 to 2$"):
        binary_cross_entropy(torch.zeros(2), torch.tensor([2, 0]))
    with pytest.raises(ValueError, match="y must hold classes from 0 to 3, got -1 to 0"):
        cross_entropy(logits, torch.tensor([0, -1, 0]))
    with pytest.raises(
        ValueError, match=r"y must hold a class of shape \(3,\) for logits of shape \(3, 4\), got shape \(2,\)"
    ):
        cross_entropy(logits, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"y must hold class numbers, or probabilities of shape \(3, 4\)"):
        cross_entropy(logits, torch.zeros(3))
    with pytest.raises(ValueError, match=r"smoothing must be in \[0, 1\], got 1.5"):
        cross_entropy(logits, torch.tensor([0, 1, 2]), smoothing=1.5)
    with pytest.raises(ValueError, match="reduction must be one of mean, sum, none, got 'average'"):
        cross_entropy(logits, torch.tensor([0, 1, 2]), reduction="average")
    with pytest.raises(ValueError, match="reduction must be one of mean, sum, none, got 'average'"):
        binary_cross_entropy(logits, logits, reduction="average")
    with pytest.raises(ValueError, match=r"y must have the shape of logits, \(3, 4\), got \(3,\)"):
        binary_cross_entropy(logits, torch.zeros(3))


@pytest.mark.parametrize("most", [0, 1 << 18], ids=["one pass", "torch's kernels"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [None, 1])
def test_every_way_has_the_same_values_and_derivatives(monkeypatch, most, smoothing, weighted, ignore_index):
    monkeypatch.setattr("lemmata.feedforward.softmax.FEW", most)
    logits = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    y, towards = torch.randint(5, (4, 3)), torch.randn(4, 3, dtype=torch.float64)
    weight = torch.rand(5, dtype=torch.float64) + 0.1 if weighted else None
    ignored = torch.zeros_like(y, dtype=torch.bool) if ignore_index is None else y == ignore_index

    def loss(z):
        return cross_entropy(z, y, smoothing, "none", weight, ignore_index)

    target = (1 - smoothing) * functional.one_hot(y, 5).double() + smoothing / 5
    plain = -((target if weight is None else weight * target) * logits.log_softmax(-1)).sum(-1).masked_fill(ignored, 0)
    torch.testing.assert_close(loss(logits), plain, rtol=0, atol=1e-13)
    slope = torch.autograd.grad(plain.sum(), logits, retain_graph=True)[0]
    for create_graph in (False, True):
        found = torch.autograd.grad(loss(logits), logits, towards, create_graph=create_graph)[0]
        wanted = torch.autograd.grad(plain, logits, towards, create_graph=True)[0]
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-13)
    twice = torch.autograd.grad(found.sin().sum(), logits)[0]
    torch.testing.assert_close(twice, torch.autograd.grad(wanted.sin().sum(), logits)[0], rtol=0, atol=1e-12)
    with torch.autograd.forward_ad.dual_level():
        pushed = loss(torch.autograd.forward_ad.make_dual(logits.detach(), torch.ones_like(logits) * logits.detach()))
        tangent = torch.autograd.forward_ad.unpack_dual(pushed).tangent
    torch.testing.assert_close(tangent, (slope * logits.detach()).sum(-1), rtol=0, atol=1e-13)
    broken = logits.detach().masked_fill(ignored[..., None], torch.nan).requires_grad_()
    found = torch.autograd.grad(loss(broken).sum(), broken)[0]
    assert bool(found.isfinite().all())
