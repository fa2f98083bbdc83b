r"""What goes on inside a network while it computes: every product with weights, whoever calls it."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lemmata.audit.subject import Subject

__all__ = []  # for probes

# Functions that multiply what they are given by weights, by the names torch calls them.
PRODUCTS = frozenset(
    """linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d matmul __matmul__
    __rmatmul__ mm bmm addmm baddbmm addbmm einsum tensordot lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell multi_head_attention_forward""".split()
)


@dataclass(frozen=True)
class WeightProduct:
    """One product with weights: the layer's name, what it was given, its weights and what came out. `learned` says
    that parameters stand before it, so that what it was given is not the data themselves; `then` names the functions
    that were called between it and the next one.
    """

    name: str
    function: str
    given: Tensor
    learned: bool
    weight: Tensor
    bias: Tensor | None
    output: Tensor
    then: list[str]


def weight_products(
    subject: Subject, inputs: Iterable[Tensor], see: Callable[[WeightProduct], None]
) -> tuple[Tensor, list[str]]:
    """Run the network on a batch and hand each product with weights to `see` as it happens. Returns the outputs, and
    the layers that normalise the data themselves.

    Modules and plain functions of tensors are seen alike, since both end in torch's functions.
    """
    for values in subject.model.parameters():
        if values.is_floating_point():
            values.requires_grad_(True)  # what depends on a parameter, wants a gradient: so it is told apart from data
    watch = _Watch(layer_names(subject.model), see)
    with torch.enable_grad(), plain_attention(), watch:
        outputs = subject.network(*inputs)
    return outputs, watch.normalised


class _Watch(TorchFunctionMode):
    def __init__(self, owned: dict[int, tuple[str, Tensor]], see: Callable[[WeightProduct], None]):
        super().__init__()
        # By identity, with the tensor itself held, so that no other one can come to have the same.
        self.owned = owned
        self.see, self.then, self.normalised = see, [], []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        first = _first_tensor(output)
        if first is None:
            return output
        function = getattr(func, "__name__", "")
        tensors = list(_tensors_in([args, list(kwargs.values())]))
        owned = [self.owned[id(one)] for one in tensors if id(one) in self.owned]
        others = [one for one in tensors if id(one) not in self.owned]
        if owned and not others:
            self.owned[id(first)] = owned[0][0], first  # made of weights alone, as by weight normalisation: weights
        elif owned and function in PRODUCTS:
            self._note_product(function, owned, others, first)
        else:
            self.then.append(function)
            if "norm" in function and owned and not others[0].requires_grad:
                self.normalised.append(owned[0][0])
        return output

    def _note_product(
        self, function: str, owned: "list[tuple[str, Tensor]]", others: list[Tensor], output: Tensor
    ) -> None:
        matrices = [(name, values) for name, values in owned if values.ndim > 1]
        given = next((one for one in others if one.is_floating_point()), None)
        if matrices and given is not None:
            name, weight = matrices[0]
            bias = next((values for _, values in owned if values.ndim == 1), None)
            self.then = []
            learned = any(one.requires_grad for one in others)
            self.see(WeightProduct(name, function, given, learned, weight, bias, output, self.then))


def layer_names(model: nn.Module) -> dict[int, tuple[str, Tensor]]:
    """The layer of each parameter, by its identity: the module that holds it, or its own name where a module that is
    not torch's holds several matrices, each a layer of its own.
    """
    found: dict[int, tuple[str, Tensor]] = {}
    for name, part in model.named_modules(remove_duplicate=False):
        own = list(part.named_parameters(recurse=False))
        listed = isinstance(part, nn.ParameterList | nn.ParameterDict) or not type(part).__module__.startswith(
            "torch.nn"
        )
        alone = not name or (listed and sum(values.ndim > 1 for _, values in own) > 1)
        name = ".".join(word for word in name.split(".") if word != "_orig_mod")  # of a compiled part
        layer = name.partition(".parametrizations")[0]
        for short, values in own:
            found.setdefault(id(values), (f"{name}.{short}".lstrip(".") if alone else layer, values))
    return found


def _tensors_in(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors_in(value)


def _first_tensor(output: Any) -> Tensor | None:
    return next((one for one in _tensors_in(output) if one.is_floating_point()), None)


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Attention by separate steps: its fused path for evaluation hides what goes on inside."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def by_batch(values: Tensor, number: int) -> Tensor | None:
    """(examples, everything else): the axis of examples is that of their number, or they lie in the first one."""
    axis = next((axis for axis, size in enumerate(values.shape) if size == number), None)
    if axis is not None:
        return values.movedim(axis, 0).reshape(number, -1)
    if values.ndim and len(values) and len(values) % number == 0:
        return values.reshape(number, -1)
    return None


def use_batch_statistics(model: nn.Module, always: bool = False) -> None:
    """Let layers that keep running statistics use those of the batch: always, or where they never saw one and would
    normalise by their initial zeros and ones.
    """
    for part in model.modules():
        if getattr(part, "running_mean", None) is not None:
            seen = getattr(part, "num_batches_tracked", None)
            part.training = always or (seen is not None and int(seen) == 0)


def units_first(values: Tensor, units: int | None, examples: int) -> Tensor:
    """(units, everything else). Units are the channels of a convolution, (batch, channels, ...), and the last axis of
    anything else; their number decides where it is known and stands for one axis alone.
    """
    axes = [axis for axis, size in enumerate(values.shape) if size == units and (axis or units != examples)]
    axis = axes[0] if len(axes) == 1 else 1 if values.ndim >= 4 else values.ndim - 1
    return values.movedim(axis, 0).reshape(values.shape[axis], -1)
