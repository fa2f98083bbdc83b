"""torch's kernels as operators: what a compiler is told of them, and their gradients, which are written out."""

import pytest
import torch

from lemmata.fast.sequence_kernels import KERNELS, run_kernel

BLOCKS = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def drawn(kernel, dtype=torch.float64, batch=3, time=6):
    rows = 5 * BLOCKS[kernel]
    shapes = [(batch, time, 4), *[(batch, 5)] * (2 if kernel == "lstm" else 1), (rows, 4), (rows, 5), (rows,), (rows,)]
    return [torch.randn(shape, dtype=dtype).mul_(0.7).requires_grad_() for shape in shapes]


def operator(kernel, x, hidden, *rest):
    cell, *weights = rest if kernel == "lstm" else (None, *rest)
    return torch.ops.lemmata.sequence_kernel(kernel, x, hidden, cell, *weights)


@every_kernel
@pytest.mark.parametrize(("batch", "time"), [(3, 6), (1, 1), (2, 1), (1, 40)])
def test_the_operator_gives_the_kernels_values_and_gradients(kernel, batch, time):
    leaves = drawn(kernel, batch=batch, time=time)
    states = 2 if kernel == "lstm" else 1
    outputs, ends = run_kernel(kernel, leaves[0], tuple(leaves[1 : 1 + states]), leaves[1 + states :])
    found, cell = operator(kernel, *leaves)
    torch.testing.assert_close(found, outputs)
    goals = torch.randn_like(outputs), torch.randn_like(ends[-1])
    expected, ours = (outputs * goals[0]).sum(), (found * goals[0]).sum()
    if kernel == "lstm":
        torch.testing.assert_close(cell, ends[1])
        expected, ours = expected + (ends[1] * goals[1]).sum(), ours + (cell * goals[1]).sum()
    for slope, wanted in zip(*(torch.autograd.grad(value, leaves) for value in (ours, expected)), strict=True):
        torch.testing.assert_close(slope, wanted, rtol=1e-10, atol=1e-12)


@every_kernel
def test_the_gradients_are_those_of_differences(kernel):
    leaves = drawn(kernel, batch=2, time=3)
    assert torch.autograd.gradcheck(lambda *given: operator(kernel, *given)[: 2 if kernel == "lstm" else 1], leaves)


@every_kernel
def test_a_compiler_is_told_the_truth(kernel):
    x, hidden, *rest = drawn(kernel)
    cell, *weights = rest if kernel == "lstm" else (None, *rest)
    torch.library.opcheck(torch.ops.lemmata.sequence_kernel.default, (kernel, x, hidden, cell, *weights))


def test_gates_beyond_the_largest_number_have_finite_gradients():
    x, hidden, cell, weight, *others = drawn("lstm", torch.float32)
    large = torch.finfo(torch.float32).max
    with torch.no_grad():
        weight[:5], weight[5:10] = -large, large  # shuts the input gate, and keeps the cell
    _, last = operator("lstm", x.detach().abs(), hidden, cell, weight, *others)
    assert torch.equal(last, cell)
    assert all(slope.isfinite().all() for slope in torch.autograd.grad(last.sum(), [hidden, cell, weight, *others]))
