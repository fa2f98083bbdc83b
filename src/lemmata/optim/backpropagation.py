r"""Backpropagation written out: deltas from the last layer to the first, every multiplication counted."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["BackwardSweep", "CountedGradient", "backpropagate", "finite_differences", "forward_mode"]

Loss = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class CountedGradient:
    """A loss, its gradient by the name of each parameter, and the multiply-adds that it took, the loss's not counted.

    >>> found = backpropagate(nn.Sequential(nn.Linear(100, 100)), torch.rand(1, 100), torch.sum)
    >>> found.forward_multiply_adds, found.multiply_adds, round(found.passes, 2)
    (10100, 30200, 2.99)
    """

    loss: Tensor
    gradients: dict[str, Tensor]
    forward_multiply_adds: int
    multiply_adds: int

    @property
    def passes(self) -> float:
        """What everything cost, the forward pass included, in forward passes."""
        return self.multiply_adds / self.forward_multiply_adds


@dataclass(frozen=True)
class BackwardSweep(CountedGradient):
    r"""A gradient with what was met on the way: $h_0, \dots, h_L$ forwards, $\delta_L, \dots, \delta_0$ backwards."""

    hidden: list[Tensor]
    deltas: list[Tensor]


class _Work:
    """Does what costs something, and counts: one multiply-add for each product, sum or value of an activation."""

    def __init__(self) -> None:
        self.multiply_adds = 0

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        self.multiply_adds += a.numel() * b.shape[-1]
        return a @ b

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        self.multiply_adds += a.numel()
        return a + b

    def total(self, a: Tensor) -> Tensor:
        self.multiply_adds += a.numel()
        return a.sum(0)

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        self.multiply_adds += a.numel()
        return a * b

    def value(self, activation: nn.Module, z: Tensor) -> Tensor:
        self.multiply_adds += z.numel()
        return activation(z.clone())  # for some activations overwrite what they are given

    def slope(self, activation: nn.Module, z: Tensor) -> Tensor:
        self.multiply_adds += z.numel()
        value, pull, *_ = torch.func.vjp(lambda z: activation(z.clone()), z)
        return pull(torch.ones_like(value))[0]  # entry by entry, since the activation works entry by entry


@system("backpropagation", title="Backpropagation", kind="function")
@torch.no_grad()
def backpropagate(network: nn.Sequential, x: Float[Tensor, "batch inputs"], loss: Loss) -> BackwardSweep:
    r"""The gradient of a loss in all parameters by one sweep forwards and one backwards, layer by layer.

    $$ h_\ell = F_\ell(h_{\ell-1}), \qquad \delta_L = \frac{\partial \ell}{\partial h_L}, \qquad
       \delta_{\ell-1} = \Big[\frac{\partial h_\ell}{\partial h_{\ell-1}}\Big]^\top \delta_\ell, \qquad
       \frac{\partial \ell}{\partial \theta_\ell} =
       \Big[\frac{\partial h_\ell}{\partial \theta_\ell}\Big]^\top \delta_\ell $$

    The network is a chain of `nn.Linear` and activations that work entry by entry; each module is a layer. A loss is
    any function from outputs to one number, and hands over $\delta_L$. Multiply-adds are counted as they are done:
    together never more than three times those of the pass forwards. On the meta device nothing else is done. It shows
    how gradients come about; `loss.backward()` gives the same numbers and is what to train with.

    Shapes:
        x: (batch, inputs), loss: from (batch, outputs) to ()
        returns: hidden and deltas (batch, width of the layer), gradients as the parameters

    Claims: backprop.delta_recurrence, backprop.param_gradient, backprop.ridge_layer, backprop.linear_time
    Source: Rumelhart, Hinton and Williams, Learning representations by back-propagating errors (1986); Linnainmaa 1970.

    >>> network, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), torch.rand(5, 3)
    >>> found = backpropagate(network, x, lambda outputs: outputs.square().mean())
    >>> network(x).square().mean().backward()
    >>> all(torch.allclose(found.gradients[name], p.grad) for name, p in network.named_parameters())
    True
    """
    layers, names, work = _layer_chain(network), _parameter_names(network), _Work()
    hidden = [_checked_input(x, layers)]
    for layer in layers:
        hidden.append(_forward_value(layer, hidden[-1], work))  # (batch, width)
    forward = work.multiply_adds
    delta, value = _loss_gradient(loss, hidden[-1])
    deltas, gradients = [delta], {}
    for layer, before in zip(reversed(layers), reversed(hidden[:-1]), strict=True):
        if isinstance(layer, nn.Linear):
            _add_gradient(gradients, names, layer.weight, work.product(delta.mT, before))  # (outputs, inputs)
            if layer.bias is not None:
                _add_gradient(gradients, names, layer.bias, work.total(delta))
            delta = work.product(delta, layer.weight)  # rows are examples: the transpose of the Jacobian, W
        else:
            delta = work.times(delta, work.slope(layer, before))
        deltas.append(delta)
    ordered = {name: gradients[name] for name in names.values()}
    return BackwardSweep(value, ordered, forward, work.multiply_adds, hidden, deltas[::-1])


@torch.no_grad()
def forward_mode(network: nn.Sequential, x: Float[Tensor, "batch inputs"], loss: Loss) -> CountedGradient:
    r"""The same gradient the other way round: a tangent for each parameter is carried forwards, from its layer on.

    $$ \dot h_\ell = \frac{\partial h_\ell}{\partial h_{\ell-1}} \dot h_{\ell-1}, \qquad
       \frac{\partial \ell}{\partial \theta_p} = \delta_L^\top \dot h_L^{(p)} $$

    Its cost grows with the number of parameters times that of a pass, and so does its memory: for comparison only.

    Shapes:
        x: (batch, inputs), loss: from (batch, outputs) to ()    returns: gradients as the parameters

    Claims: backprop.linear_time

    >>> network, x = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 9)), torch.rand(5, 3)
    >>> one, other = forward_mode(network, x, torch.sum), backpropagate(network, x, torch.sum)
    >>> torch.allclose(one.gradients["0.weight"], other.gradients["0.weight"]), one.passes > 20 * other.passes
    (True, True)
    """
    layers, names, work, once = _layer_chain(network), _parameter_names(network), _Work(), _Work()
    hidden = _checked_input(x, layers)
    tangents, owners = hidden.new_empty(0, *hidden.shape), []  # (parameters so far, batch, width)
    for layer in layers:
        if isinstance(layer, nn.Linear):
            tangents = work.product(tangents, layer.weight.mT)
            alone = torch.eye(layer.out_features, dtype=hidden.dtype, device=hidden.device)
            # The derivative of output k in weight (i, j) is the input j where i = k: placed, not computed.
            fresh = [torch.einsum("ik,bj->ijbk", alone, hidden).flatten(0, 1)]
            owners.append(layer.weight)
            if layer.bias is not None:
                fresh.append(alone[:, None, :].expand(-1, len(hidden), -1))
                owners.append(layer.bias)
            tangents = torch.cat([tangents, *fresh])
        else:
            tangents = work.times(tangents, work.slope(layer, hidden))
        hidden = _forward_value(layer, hidden, once)
    delta, value = _loss_gradient(loss, hidden)
    directional = work.product(tangents.flatten(1), delta.flatten()[:, None])[:, 0]  # (parameters,)
    gradients: dict[str, Tensor] = {}
    for owner, part in zip(owners, directional.split([p.numel() for p in owners]), strict=True):
        _add_gradient(gradients, names, owner, part.reshape(owner.shape))
    return CountedGradient(value, gradients, once.multiply_adds, work.multiply_adds + once.multiply_adds)


@torch.no_grad()
def finite_differences(
    network: nn.Sequential, x: Float[Tensor, "batch inputs"], loss: Loss, step: int | float | None = None
) -> CountedGradient:
    r"""The gradient by moving each parameter a little up and down: two passes for each, and never quite exact.

    $$ \frac{\partial \ell}{\partial \theta_p} \approx
       \frac{\ell(\theta + \epsilon e_p) - \ell(\theta - \epsilon e_p)}{2\epsilon} $$

    The error is $O(\epsilon^2)$ from the formula and $O(u/\epsilon)$ from rounding; the default step, the cube root of
    the rounding unit $u$, balances them.

    Shapes:
        x: (batch, inputs), loss: from (batch, outputs) to ()    returns: gradients as the parameters

    >>> network, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).double(), torch.rand(5, 3).double()
    >>> one, other = finite_differences(network, x, torch.sum), backpropagate(network, x, torch.sum)
    >>> torch.allclose(one.gradients["0.weight"], other.gradients["0.weight"]), one.passes
    (True, 33.0)
    """
    moved = copy.deepcopy(network)
    layers, work = _layer_chain(moved), _Work()
    x = _checked_input(x, layers)
    size = torch.finfo(x.dtype).eps ** (1 / 3) if step is None else float(validate.positive("step", step))

    def value() -> Tensor:
        hidden = x
        for layer in layers:
            hidden = _forward_value(layer, hidden, work)
        return loss(hidden)

    here = value()
    forward, gradients = work.multiply_adds, {}
    for name, parameter in moved.named_parameters():
        entries, found = parameter.view(-1), torch.empty_like(parameter).view(-1)
        for k, entry in enumerate(entries.clone()):
            entries[k] = entry + size
            above = value()
            entries[k] = entry - size
            found[k] = (above - value()) / (2 * size)
            entries[k] = entry
        gradients[name] = found.view(parameter.shape)
    return CountedGradient(here, gradients, forward, work.multiply_adds)


def _forward_value(layer: nn.Module, before: Tensor, work: _Work) -> Tensor:
    if not isinstance(layer, nn.Linear):
        return work.value(layer, before)
    product = work.product(before, layer.weight.mT)
    return product if layer.bias is None else work.add(product, layer.bias)


def _loss_gradient(loss: Loss, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of the loss in the outputs, and its value."""

    def checked(outputs: Tensor) -> Tensor:
        value = loss(outputs)
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise ValueError(f"loss must give one number, got {_value_in_words(value)}: take its mean or sum")
        return value.reshape(())

    return torch.func.grad_and_value(checked)(outputs)  # type: ignore[return-value]


def _value_in_words(value: Any) -> str:
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _parameter_names(network: nn.Module) -> dict[int, str]:
    """The name of each parameter by its identity, so that one used twice gets the sum of both gradients."""
    return {id(parameter): name for name, parameter in network.named_parameters()}


def _add_gradient(gradients: dict[str, Tensor], names: dict[int, str], parameter: Tensor, gradient: Tensor) -> None:
    name = names[id(parameter)]
    gradients[name] = gradients[name] + gradient if name in gradients else gradient


def _checked_input(x: Tensor, layers: list[nn.Module]) -> Tensor:
    if x.device.type != "meta" or x.ndim != 2:  # where there are no numbers, only shapes are followed and counted
        validate.matrix("x", x, "batch, inputs")
    first = next((layer for layer in layers if isinstance(layer, nn.Linear)), None)
    if first is None:
        raise ValueError("network must hold at least one nn.Linear, got none")
    validate.last_axis("x", x, first.in_features, "input")
    if x.dtype != first.weight.dtype:
        raise TypeError(f"x must be {first.weight.dtype} as the network, got {x.dtype}")
    return x.detach()


def _layer_chain(network: nn.Sequential) -> list[nn.Module]:
    """The layers in their order, chains within the chain unrolled; a sentence where one of them is not known."""
    if not isinstance(network, nn.Sequential):
        raise TypeError(f"network must be an nn.Sequential, got {type(network).__name__}")
    layers = list(_unroll_layers(network))
    for layer in layers:
        if not isinstance(layer, nn.Linear) and not _works_entry_by_entry(layer):
            known = "nn.Linear and activations without parameters or chance that work entry by entry"
            raise TypeError(f"network must hold {known}, got {layer}")
    return layers


def _unroll_layers(network: nn.Sequential) -> Iterator[nn.Module]:
    for layer in network:
        if isinstance(layer, nn.Sequential):
            yield from _unroll_layers(layer)
        else:
            yield layer


def _works_entry_by_entry(layer: nn.Module) -> bool:
    """Whether numbers together give what they give apart, with nothing to learn and nothing drawn."""
    if next(layer.parameters(), None) is not None or next(layer.buffers(), None) is not None:
        return False
    numbers = torch.linspace(-3, 3, 8, device="cpu")[None]  # (1, 8)
    with torch.random.fork_rng(devices=[]):
        before = torch.random.get_rng_state()
        try:
            together, apart = layer(numbers.clone()), [layer(part.clone()) for part in numbers.split([1, 7], 1)]
        except (IndexError, RuntimeError, ValueError):
            return False
        drawn = not torch.equal(before, torch.random.get_rng_state())
    return not drawn and together.shape == numbers.shape and torch.allclose(together, torch.cat(apart, 1), atol=1e-6)
