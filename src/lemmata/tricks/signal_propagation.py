r"""How large signals and gradients are in every layer of a network: the profile of their variance through depth."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["VarianceProfile", "variance_profile"]


@dataclass(frozen=True)
class VarianceProfile:
    """The mean squares of what each layer hands on, and of the gradients that come back to it, in order."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    forward: Tensor
    backward: Tensor

    def of(self, kind: str) -> "VarianceProfile":
        """The layers of one kind alone, such as "Linear" or "ReLU"."""
        chosen = [index for index, own in enumerate(self.kinds) if own == kind]
        if not chosen:
            raise ValueError(f"kind must be one of {', '.join(sorted(set(self.kinds)))}, got {kind!r}")
        names = tuple(self.names[index] for index in chosen)
        return VarianceProfile(names, (kind,) * len(chosen), self.forward[chosen], self.backward[chosen])


@system("variance_profile", title="Variance of signals and gradients through depth", kind="function")
def variance_profile(
    model: nn.Module, x: Float[Tensor, "batch ..."], generator: torch.Generator | None = None
) -> VarianceProfile:
    r"""The mean square of every layer's output, and of the gradient there, for a gradient of variance one at the end.

    $$ q_l = \frac1{|B|\,n_l}\sum_{x, i} (h^l_i(x))^2, \qquad
       \tilde q_l = \frac1{|B|\,n_l}\sum_{x, i} \Big(\frac{\partial \langle g, f(x)\rangle}{\partial h^l_i}\Big)^2,
       \qquad g \sim \mathcal N(0, I) $$

    Over symmetric weights with mean zero these are estimates of the variance of a unit and of its gradient. The layers
    are the modules without parts of their own, each time one is called; one whose output nothing depends on has the
    gradient NaN. Model and random numbers are left as they were, gradients of parameters too.

    Shapes:
        x: (batch, ...)    returns: `forward` and `backward` (calls of layers,)

    Source: X. Glorot and Y. Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).

    >>> model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    >>> profile = variance_profile(model, torch.randn(32, 64))
    >>> profile.names, profile.kinds, profile.forward.shape
    (('0', '1', '2'), ('Linear', 'ReLU', 'Linear'), torch.Size([3]))
    """
    validate.module("model", model)
    if not validate.tensor("x", x).is_floating_point():
        told = "a model of tokens is looked at behind its embedding, else use x.float()"
        raise TypeError(f"x must be floating point, got {x.dtype}: {told}")
    validate.floating("x", x)
    calls: list[_Call] = []

    def watch(name: str) -> Any:
        def see(module: nn.Module, given: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.is_floating_point():
                calls.append(_Call(name, type(module).__name__, output, _mean_square(output), output._version))

        return see

    leaves = [(name, module) for name, module in model.named_modules() if not any(True for _ in module.children())]
    hooks = [module.register_forward_hook(watch(name)) for name, module in leaves]
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[x.get_device()] if x.is_cuda else []):
            # The input wants a gradient too: without weights of its own a layer's output would have none.
            output = model(x.detach().clone().requires_grad_())
        backward = _mean_square_gradients(output, calls, generator)
    finally:
        for hook in hooks:
            hook.remove()
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(kept[name])
    names, kinds = tuple(call.name for call in calls), tuple(call.kind for call in calls)
    return VarianceProfile(names, kinds, torch.stack([call.square for call in calls]), backward)


class _Call(NamedTuple):
    name: str
    kind: str
    output: Tensor
    square: Tensor
    version: int


def _mean_square_gradients(output: Any, calls: list[_Call], generator: torch.Generator | None) -> Tensor:
    """The mean square of the gradient at the output of each call."""
    if not isinstance(output, Tensor):
        raise TypeError(f"model must return a tensor, got {type(output).__name__}")
    if not calls:
        told = "no layer of the model returns a tensor of floating-point numbers"
        raise ValueError(f"{told}: layers that return tuples, such as nn.LSTM, are not looked at")
    for call in calls:
        if call.output._version != call.version:
            told = f"the output of {call.name} ({call.kind}) is changed in place by what follows"
            raise ValueError(f"{told}: use inplace=False")
    nan = torch.tensor(float("nan"), dtype=torch.float64, device=output.device)
    squares = [nan] * len(calls)
    # What was computed without gradients, nothing depends on as far as they can tell.
    reached = [index for index, call in enumerate(calls) if call.output.requires_grad and output.requires_grad]
    if not reached:
        return torch.stack(squares)
    where = output.device if generator is None else generator.device
    upstream = torch.randn(output.shape, generator=generator, dtype=output.dtype, device=where).to(output.device)
    found = torch.autograd.grad(output, [calls[index].output for index in reached], upstream, allow_unused=True)
    for index, gradient in zip(reached, found, strict=True):
        squares[index] = nan if gradient is None else _mean_square(gradient)
    return torch.stack(squares)


def _mean_square(values: Tensor) -> Tensor:
    return values.detach().double().square().mean()
