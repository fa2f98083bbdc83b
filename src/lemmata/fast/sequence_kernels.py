r"""torch's kernels for whole sequences, each as one operator: a compiler neither looks inside nor unrolls the time.

Traced, a kernel falls apart into the steps of one length, which takes minutes to compile, again for each length.
"""

from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.fast.sequence_gradients import check_alike, kernel_gradients

__all__ = []  # for the recurrent layers

KERNELS = {"rnn_tanh": torch.rnn_tanh, "rnn_relu": torch.rnn_relu, "gru": torch.gru, "lstm": torch.lstm}
GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}  # rows of a weight for each hidden unit
Ends = tuple[Tensor, ...]  # the hidden state (batch, hidden), and for an lstm the cell


def run_kernel(kernel: str, x: Tensor, start: Ends, weights: list[Tensor]) -> tuple[Tensor, Ends]:
    r"""One layer and direction of torch's recurrent modules on whole sequences.

    Shapes:
        x: (batch, time, inputs), at least one of each    start: the hidden state (batch, hidden), and for lstm the cell
        weights: for input (rows, inputs) and state (rows, hidden), and their two biases (rows,), in torch's order
        returns: outputs (batch, time, hidden), and the states after the last step

    Claims: rnn.elman, rnn.lstm
    Differs: compiled, gradients are those of `kernel_gradients`, of first order only. Exported for one length, torch's
    kernel is in the graph, which then needs no lemmata; exported for any length (not `strict`), our operator.

    >>> weights = [torch.zeros(5, 3), torch.zeros(5, 5), torch.ones(5), torch.zeros(5)]
    >>> outputs, (hidden,) = run_kernel("rnn_relu", torch.randn(2, 7, 3), (torch.zeros(2, 5),), weights)
    >>> outputs.shape, bool((hidden == 1).all())
    (torch.Size([2, 7, 5]), True)
    """
    if not torch.compiler.is_compiling() or (torch.compiler.is_exporting() and isinstance(x.shape[1], int)):
        return _run_kernel(kernel, x, start, weights, torch.is_grad_enabled())
    if torch.is_autocast_enabled(x.device.type):  # whose rules hold while tracing, and not inside an operator
        dtype = torch.get_autocast_dtype(x.device.type)
        x, start, weights = x.to(dtype), tuple(part.to(dtype) for part in start), [part.to(dtype) for part in weights]
    hidden, *cells = start
    outputs, cell = torch.ops.lemmata.sequence_kernel(kernel, x, hidden, cells[0] if cells else None, *weights)
    return outputs, (outputs[:, -1], *([cell] if cells else []))


def in_one_piece(*weights: Tensor) -> list[Tensor]:
    """The same weights as views of one tensor, in their order; gradients flow back to each of them.

    Given input weights, recurrent weights and both biases in this order, cuDNN takes them as they lie: weights in
    several pieces it copies at every call, with a warning, and so it does where the biases are left out.

    >>> first, second = in_one_piece(torch.ones(2, 3), torch.zeros(4))
    >>> first.shape, second.shape, first.data_ptr() + 6 * 4 == second.data_ptr()
    (torch.Size([2, 3]), torch.Size([4]), True)
    """
    pieces = torch.cat([weight.reshape(-1) for weight in weights]).split([weight.numel() for weight in weights])
    return [piece.view(weight.shape) for piece, weight in zip(pieces, weights, strict=True)]


def _run_kernel(kernel: str, x: Tensor, start: Ends, weights: list[Tensor], train: bool) -> tuple[Tensor, Ends]:
    states = [part[None] for part in start]  # (1, batch, hidden): torch counts layers
    if kernel == "lstm" and x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        # Without this torch would ask oneDNN for a kernel in half precision, also where it has none.
        x = x.to(torch.get_autocast_dtype("cpu"))
    if x.is_cuda:
        weights = in_one_piece(*weights)
    # With biases, one layer, no dropout, gradients or not, one direction, batch first.
    options = weights, True, 1, 0.0, train, False, True
    outputs, *ends = KERNELS[kernel](x, tuple(states) if kernel == "lstm" else states[0], *options)
    return outputs, tuple(end[0] for end in ends)


# --- The operator that torch.compile sees. Outputs are contiguous, as the compiler is told ---

_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define(
    "sequence_kernel(str kernel, Tensor x, Tensor hidden, Tensor? cell, Tensor input_weight, Tensor recurrent_weight,"
    " Tensor input_bias, Tensor recurrent_bias) -> (Tensor, Tensor)"
)


def _forward_pass(
    kernel: str, x: Tensor, hidden: Tensor, cell: Tensor | None, *weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs (batch, time, hidden) and the last cell (batch, hidden), of which only an lstm has one."""
    _check_sequence(kernel, x, hidden, cell, *weights)
    outputs, ends = _run_kernel(kernel, x, (hidden,) if cell is None else (hidden, cell), list(weights), train=False)
    return outputs.contiguous(), x.new_empty(0) if cell is None else ends[1].contiguous()


def _check_sequence(kernel: str, x: Tensor, hidden: Tensor, cell: Tensor | None, *weights: Tensor) -> None:
    """Refuse what does not fit: an operator is called by hand too, and oneDNN reads as much as it expects."""
    validate.one_of("kernel", kernel, KERNELS)
    names = "input_weight", "recurrent_weight", "input_bias", "recurrent_bias"
    for name, value in zip(("x", "hidden", *names), (x, hidden, *weights), strict=True):
        validate.tensor(name, value)
    if x.ndim != 3 or 0 in x.shape or not x.is_floating_point() or x.layout is not torch.strided:
        told = f"{x.dtype} {x.layout} of shape {tuple(x.shape)}"
        raise ValueError(f"x must be dense floating point (batch, time, inputs), at least one of each, got {told}")
    if hidden.ndim != 2 or not hidden.shape[1]:
        raise ValueError(f"hidden must be (batch, hidden), got shape {tuple(hidden.shape)}")
    if (cell is None) == (kernel == "lstm"):
        raise ValueError(f"cell must be given for lstm and for nothing else, got {cell is not None} for {kernel}")
    (batch, _, inputs), size = x.shape, hidden.shape[1]
    rows, state = GATES[kernel] * size, (batch, size)
    shapes = state, state, (rows, inputs), (rows, size), (rows,), (rows,)
    check_alike("x", x, *zip(("hidden", "cell", *names), (hidden, cell, *weights), shapes, strict=True))


def _forward_like(
    kernel: str, x: Tensor, hidden: Tensor, cell: Tensor | None, *weights: Tensor
) -> tuple[Tensor, Tensor]:
    return x.new_empty(*x.shape[:2], hidden.shape[1]), x.new_empty(0 if cell is None else cell.shape)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.kernel, *tensors = inputs
    ctx.save_for_backward(*tensors, output[0])


def _backward_pass(ctx: Any, grad: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
    return None, *kernel_gradients(ctx.kernel, grad, grad_cell, *ctx.saved_tensors)


_library.impl("sequence_kernel", _forward_pass, "CompositeExplicitAutograd")
torch.library.register_fake("lemmata::sequence_kernel", _forward_like, lib=_library)
torch.library.register_autograd(
    "lemmata::sequence_kernel", _backward_pass, setup_context=_save_for_backward, lib=_library
)
