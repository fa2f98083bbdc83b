"""The diagonal of the Fisher information: how much each parameter matters for what a classifier says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating

__all__ = ["fisher_diagonal"]

LABELS = ("expected", "sampled", "data")
Squares = dict[str, Tensor]


@system("fisher_diagonal", title="Diagonal of the Fisher information", kind="function")
def fisher_diagonal(
    model: nn.Module,
    x: Float[Tensor, "n ..."],
    y: Int[Tensor, " n"] | None = None,
    *,
    labels: str = "expected",
    logits: Callable[[Tensor], Tensor] | None = None,
    at_once: int = 256,
    generator: torch.Generator | None = None,
) -> dict[str, Tensor]:
    r"""The mean over examples of the squared gradient of the log-likelihood, for every parameter by name.

    $$ F_{ii} = \frac1n \sum_x \mathbb E_{y \sim p_\theta(\cdot|x)}
       \Big(\frac{\partial \log p_\theta(y|x)}{\partial\theta_i}\Big)^2 $$

    The square is taken of each example's gradient: that of a batch's mean is smaller by about its size. `labels` are
    `expected` (the sum over all classes, a backward pass each), `sampled` from the model (one pass, unbiased), or
    those of the `data`, y: the empirical Fisher, which is another matrix wherever the model errs. `logits` chooses
    what of the model's output counts.

    Where all parameters are those of linear and convolutional layers used once, the squares of a whole batch come from
    one backward pass, $\sum_b (\delta_b x_b^\top)^2$; else each example is differentiated by itself.

    Shapes:
        x: (n, ...), y: (n,)    returns: by name, the shape of the parameter

    Claims: continual.kl_hessian_fisher
    Source: Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks (2017); Kunstner, Balles and
        Hennig, Limitations of the empirical Fisher approximation (2019).

    >>> model = nn.Linear(2, 3)
    >>> {name: tuple(part.shape) for name, part in fisher_diagonal(model, torch.randn(50, 2)).items()}
    {'weight': (3, 2), 'bias': (3,)}
    """
    validate.one_of("labels", labels, LABELS)
    validate.count("at_once", at_once)
    validate.floating("x", x)
    if (labels == "data") != (y is not None):
        raise ValueError('y must be given with labels="data", and with no others')
    parameters = {name: part for name, part in model.named_parameters() if part.requires_grad}
    if not parameters:
        raise ValueError("model must have parameters that learn, got none: set requires_grad")
    chosen = (lambda output: output) if logits is None else logits
    squares = _layer_squares if _has_rules(model, parameters) else _example_squares
    total = {name: torch.zeros_like(part) for name, part in parameters.items()}
    with evaluating(model), torch.enable_grad():
        for first in range(0, len(x), at_once):
            rows = slice(first, first + at_once)
            given = None if y is None else y[rows]
            found = squares(model, parameters, x[rows], given, labels, chosen, generator)
            if found is None:  # a layer was used twice: its gradients add up before they are squared
                squares = _example_squares
                found = squares(model, parameters, x[rows], given, labels, chosen, generator)
            for name, part in found.items():
                total[name] += part
    return {name: part / len(x) for name, part in total.items()}


def _weighted_labels(
    logits: Tensor, y: Tensor | None, labels: str, generator: torch.Generator | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The labels whose gradients are squared, each with its weight; both are (batch,)."""
    probability = logits.detach().softmax(1)  # (batch, classes)
    if labels == "expected":
        for k in range(logits.shape[1]):
            yield torch.full((len(logits),), k, device=logits.device), probability[:, k]
        return
    drawn = torch.multinomial(probability, 1, generator=generator)[:, 0] if y is None else y
    yield drawn, torch.ones_like(probability[:, 0])


# --- Layers whose gradients are outer products ---


def _has_rules(model: nn.Module, parameters: Mapping[str, Tensor]) -> bool:
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    owned = {id(part) for layer in layers for part in layer.parameters(recurse=False) if part.requires_grad}
    return all(map(_is_plain, layers)) and owned == {id(part) for part in parameters.values()}


def _is_plain(layer: nn.Module) -> bool:
    """Whether a layer is one product of a weight and its unfolded input."""
    if isinstance(layer, nn.Conv2d):
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return True


def _layer_squares(
    model: nn.Module,
    parameters: Mapping[str, Tensor],
    x: Tensor,
    y: Tensor | None,
    labels: str,
    logits: Callable[[Tensor], Tensor],
    generator: torch.Generator | None,
) -> Squares | None:
    """Sums over a batch of squared gradients, by a backward pass for each set of labels; None where it cannot be."""
    names = {id(part): name for name, part in parameters.items()}
    total = {name: torch.zeros_like(part) for name, part in parameters.items()}
    with _recorded_calls(model) as calls:
        output = logits(model(x))
        if len({id(layer) for layer, _, _ in calls}) < len(calls):
            return None
        calls = [call for call in calls if call[2].requires_grad]  # frozen layers before all others do not
        log_probability = output.log_softmax(1)
        outputs = [out for _, _, out in calls]
        for label, weight in _weighted_labels(output, y, labels, generator):
            picked = log_probability.gather(1, label[:, None])[:, 0]
            value = (picked * weight.sqrt()).sum()  # each example's gradient, so that its square has the weight
            deltas = torch.autograd.grad(value, outputs, retain_graph=True, allow_unused=True)
            for (layer, inputs, _), delta in zip(calls, deltas, strict=True):
                if delta is None:
                    continue
                for part, square in _squares_of_layer(layer, inputs, delta):
                    if id(part) in names:
                        total[names[id(part)]] += square
    return total


def _squares_of_layer(layer: Any, x: Tensor, delta: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Parameters of a layer, each with the sum over examples of its squared gradient."""
    if isinstance(layer, nn.Conv2d):
        x = functional.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # type: ignore[arg-type]
        x, delta = x.mT, delta.flatten(2).mT  # (batch, positions, inputs * kernel), (batch, positions, outputs)
    if x.ndim == 2:
        to_weight, to_bias = delta.square().mT @ x.square(), delta.square().sum(0)
    else:
        x, delta = x.flatten(1, -2), delta.flatten(1, -2)  # (batch, positions, features)
        to_weight = (delta.mT @ x).square().sum(0)  # positions of one example share their gradient
        to_bias = delta.sum(1).square().sum(0)
    yield layer.weight, to_weight.reshape(layer.weight.shape)
    if layer.bias is not None:
        yield layer.bias, to_bias


@contextmanager
def _recorded_calls(model: nn.Module) -> Iterator[list[tuple[nn.Module, Tensor, Tensor]]]:
    """Each use of a layer with weights: layer, input and output."""
    calls: list[tuple[nn.Module, Tensor, Tensor]] = []

    def record(layer: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> None:
        calls.append((layer, inputs[0].detach(), output))

    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    handles = [layer.register_forward_hook(record) for layer in layers]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


# --- Any module ---


def _example_squares(
    model: nn.Module,
    parameters: Mapping[str, Tensor],
    x: Tensor,
    y: Tensor | None,
    labels: str,
    logits: Callable[[Tensor], Tensor],
    generator: torch.Generator | None,
) -> Squares:
    """The same sums by a gradient for each example."""
    free = {name: part.detach() for name, part in parameters.items()}

    def log_likelihood(values: Squares, example: Tensor, label: Tensor) -> Tensor:
        return logits(functional_call(model, values, (example[None],))).log_softmax(1)[0].gather(0, label[None])[0]

    gradients = vmap(grad(log_likelihood), (None, 0, 0), randomness="different")
    with torch.no_grad():
        output = logits(model(x))
    total = {name: torch.zeros_like(part) for name, part in free.items()}
    for label, weight in _weighted_labels(output, y, labels, generator):
        for name, each in gradients(free, x, label).items():
            total[name] += (each.square() * weight.reshape(-1, *[1] * (each.ndim - 1))).sum(0)
    return total
