r"""What a second-order method learns from a closure: the loss, the gradient, and products with the Hessian."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = []  # Newton and NewtonCG are what users call


class Curvature(NamedTuple):
    """A loss at one place: its value, its gradient, and the graph that gives the gradient's derivatives."""

    loss: Any
    gradient: Tensor  # (parameters,), without a graph
    differentiable: Sequence[Tensor]
    parameters: Sequence[Tensor]

    def product(self, vector: Tensor) -> Tensor:
        """The Hessian times a vector, of shape (parameters,)."""
        return self._second_derivative(_parameter_parts(vector, self.parameters), batched=False)

    def hessian(self) -> Tensor:
        """The Hessian, of shape (parameters, parameters)."""
        unit = torch.eye(len(self.gradient), dtype=self.gradient.dtype, device=self.gradient.device)
        matrix = self._second_derivative(_parameter_parts(unit, self.parameters), batched=True)
        return (matrix + matrix.mT) / 2

    def _second_derivative(self, vectors: list[Tensor], batched: bool) -> Tensor:
        reached = [(grad, v) for grad, v in zip(self.differentiable, vectors, strict=True) if grad.requires_grad]
        lead = vectors[0].shape[:1] if batched else ()
        if not reached:  # the loss is linear in every parameter
            return self.gradient.new_zeros(*lead, len(self.gradient))
        # A parameter whose gradient is constant has no second derivatives, and one left out of backward none wanted.
        bent = [p for p, grad in zip(self.parameters, self.differentiable, strict=True) if grad.requires_grad]
        found = torch.autograd.grad(
            [grad for grad, _ in reached],
            bent,
            [v.to(grad.dtype) for grad, v in reached],
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=batched,
        )
        parts = {id(p): part for p, part in zip(bent, found, strict=True) if part is not None}
        flat = [
            parts[id(p)].reshape(*lead, -1) if id(p) in parts else p.new_zeros((*lead, p.numel()))
            for p in self.parameters
        ]
        return torch.cat([part.to(self.gradient) for part in flat], dim=-1)


class _KeepGraph(TorchFunctionMode):
    """Lets `backward` inside an ordinary closure keep what second derivatives need."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        super().__init__()
        self.parameters, self.gradients = parameters, [torch.zeros_like(p) for p in parameters]
        self.called = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not Tensor.backward:
            return func(*args, **(kwargs or {}))
        words = kwargs or {}  # Tensor.backward hands all of its own on by name
        inputs = words.get("inputs")
        chosen = None if inputs is None else {id(p) for p in ([inputs] if isinstance(inputs, Tensor) else inputs)}
        wanted = [place for place, p in enumerate(self.parameters) if chosen is None or id(p) in chosen]
        self.called = True
        if not wanted:
            return None
        found = torch.autograd.grad(
            args[0],
            [self.parameters[place] for place in wanted],
            words.get("gradient"),
            create_graph=True,
            allow_unused=True,
        )
        for place, part in zip(wanted, found, strict=True):
            if part is not None:
                self.gradients[place] = self.gradients[place] + part
            self.parameters[place].grad = self.gradients[place].detach().clone()
        return None

    def refuse(self, _: Tensor) -> None:
        """Called where torch itself adds to a parameter's gradient, and has let go of the graph."""
        raise ValueError("closure must call loss.backward(), not torch.autograd.backward, which keeps no graph")


def curvature_of(closure: Callable[[], Any], parameters: Sequence[Tensor]) -> Curvature:
    """Call a closure once and keep the graph of its gradient.

    The closure is the usual one: it sets gradients to zero, computes the loss, calls `backward` and returns the loss.
    One that only returns the loss will do. Several calls of `backward` add up, with their `gradient` and `inputs`.
    """
    with torch.enable_grad():
        keep = _KeepGraph(parameters)
        hooks = [p.register_post_accumulate_grad_hook(keep.refuse) for p in parameters]
        try:
            with keep:
                loss = closure()
        finally:
            for hook in hooks:
                hook.remove()
        if not keep.called:
            if not (isinstance(loss, Tensor) and loss.requires_grad):
                raise ValueError("closure must return the loss or call its backward, and the loss depend on params")
            with keep:
                loss.backward()
    flat = torch.cat([gradient.detach().reshape(-1) for gradient in keep.gradients])
    if not flat.isfinite().all():  # it would reach every parameter
        raise ValueError("the gradient is not finite: look for NaN and overflow in the data and in the loss")
    wide = torch.promote_types(flat.dtype, torch.float32)  # a linear system is not solved in bfloat16
    return Curvature(loss, flat.to(wide), keep.gradients, parameters)


def learnt(groups: Sequence[dict[str, Any]], name: str) -> list[Tensor]:
    """The parameters of all groups, one after the other; they must be real numbers."""
    parameters = [p for group in groups for p in group["params"] if p.requires_grad]
    if any(p.is_complex() for p in parameters):
        raise TypeError(f"{name} takes real parameters, got complex ones: use torch.view_as_real")
    return parameters


def spread(groups: Sequence[dict[str, Any]], word: str, like: Tensor) -> Tensor:
    """A number of each group, for each of its parameters' entries: (parameters,)."""
    sizes = [(group[word], p.numel()) for group in groups for p in group["params"] if p.requires_grad]
    return torch.cat([like.new_full((size,), float(value)) for value, size in sizes])


@torch.no_grad()
def move(parameters: Sequence[Tensor], change: Tensor) -> None:
    """Add a vector of shape (parameters,) to the parameters."""
    for parameter, part in zip(parameters, _parameter_parts(change, parameters), strict=True):
        parameter.add_(part.to(parameter.dtype))


def _parameter_parts(vectors: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """(..., parameters) -> one (..., *shape) for each parameter."""
    pieces = vectors.split([p.numel() for p in parameters], dim=-1)
    return [piece.reshape((*vectors.shape[:-1], *p.shape)) for piece, p in zip(pieces, parameters, strict=True)]
