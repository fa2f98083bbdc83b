"""The inner loop of meta-learning: a few steps from given parameters, as a function that can be differentiated."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.meta.episode_norm import EpisodeNorm, check_normalization, support_statistics

__all__ = ["Parameters", "adapt", "outputs_after"]

Parameters = dict[str, Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]  # loss(output, target) -> scalar
Rates = float | Mapping[str, Tensor]
# rule(parameters, gradients, state) -> parameters, state; the state of the first step is None
Rule = Callable[[Parameters, Parameters, Any], tuple[Parameters, Any]]


@system("adapt", title="Inner-loop adaptation", kind="function")
def adapt(
    model: nn.Module,
    x: Float[Tensor, "shots ..."],
    y: Tensor,
    steps: int = 1,
    lr: Rates = 0.01,
    *,
    loss: Loss | None = None,
    parameters: Parameters | None = None,
    names: Collection[str] | None = None,
    first_order: bool = False,
    rule: Rule | None = None,
) -> Parameters:
    r"""k gradient steps on a support, from the model's parameters or others; they come back by name.

    $$ U^k(\phi) = \theta_k, \qquad \theta_0 = \phi, \qquad \theta_{j+1} = \theta_j - \epsilon \nabla L_A(\theta_j) $$

    The model itself is not touched, and nothing is kept of the steps but what a gradient through them needs: with
    `first_order` not even that, and the derivative of the result to the start is the identity. `lr` is a number, or
    one for each parameter by name, which may be learnt. `names` are the parameters that move, by default all; `rule`
    replaces the gradient step, such as `momentum_rule(0.01)`. The loss is cross-entropy for integer targets, else the
    mean squared error.

    Shapes:
        x: (shots, ...), y: (shots, ...)    returns: by name, the shape of the parameter

    Claims: meta.inner_operator, meta.maml_gradient, meta.maml_one_step, meta.reptile_k1
    Source: Finn, Abbeel and Levine, Model-agnostic meta-learning for fast adaptation of deep networks (2017).

    >>> line = nn.Linear(1, 1, bias=False)
    >>> x = torch.ones(4, 1)
    >>> adapted = adapt(line, x, 3 * x, steps=50, lr=0.3)
    >>> round(float(adapted["weight"].detach()), 3)
    3.0
    """
    validate.count("steps", steps, least=0)
    here = dict(model.named_parameters()) if parameters is None else dict(parameters)
    moving = check_names(here, names)
    criterion = loss_for(y) if loss is None else loss

    def support_loss(chosen: Parameters) -> Tensor:
        return criterion(functional_call(model, {**here, **chosen}, (x,)), y)

    now, state = {name: here[name] for name in moving}, None
    if first_order:
        now = {name: part + torch.zeros_like(part) for name, part in now.items()}  # the identity, for the derivative
    for _ in range(steps):
        gradients = grad(support_loss)({name: part.detach() for name, part in now.items()} if first_order else now)
        if first_order:
            gradients = {name: part.detach() for name, part in gradients.items()}
        if rule is not None:
            now, state = rule(now, gradients, state)
        else:
            now = {name: part - _rate_of(lr, name) * gradients[name] for name, part in now.items()}
    return {**here, **now}


def outputs_after(
    model: nn.Module, parameters: Parameters, x: Float[Tensor, "shots ..."], query_x: Float[Tensor, "queries ..."]
) -> Tensor:
    """The outputs for a query with adapted parameters; layers that normalise take their statistics of the support."""
    if not any(isinstance(part, EpisodeNorm) and part.statistics == "support" for part in model.modules()):
        return functional_call(model, parameters, (query_x,))
    with support_statistics(model, len(x)):
        return functional_call(model, parameters, (torch.cat([x, query_x]),))[len(x) :]


def momentum_rule(lr: float, momentum: float = 0.9) -> Rule:
    r"""Heavy-ball steps for `adapt`: $v \leftarrow \mu v + g$, $\theta \leftarrow \theta - \epsilon v$.

    >>> rule = momentum_rule(0.1)
    >>> rule({"w": torch.ones(())}, {"w": torch.ones(())}, None)[0]
    {'w': tensor(0.9000)}
    """

    def rule(parameters: Parameters, gradients: Parameters, state: Any) -> tuple[Parameters, Any]:
        speed = {name: part if state is None else momentum * state[name] + part for name, part in gradients.items()}
        return {name: part - lr * speed[name] for name, part in parameters.items()}, speed

    return rule


def loss_for(y: Tensor) -> Loss:
    """Cross-entropy for classes, the mean squared error for numbers."""
    return _squared_error if y.is_floating_point() else _cross_entropy


def _squared_error(output: Tensor, y: Tensor) -> Tensor:
    if output.shape != y.shape:  # which would be broadcast
        raise ValueError(f"y must have the shape of the outputs, {tuple(output.shape)} a task, got {tuple(y.shape)}")
    return functional.mse_loss(output, y)


def _cross_entropy(output: Tensor, y: Tensor) -> Tensor:
    if output.shape[:1] + output.shape[2:] != y.shape:
        outputs, cure = f"outputs of shape {tuple(output.shape)} a task", "for numbers use y.float()"
        raise ValueError(f"y must hold a class for each of the {outputs}, got {tuple(y.shape)}: {cure}")
    return functional.cross_entropy(output, y)


def check_tasks(x: Tensor, y: Tensor, query_x: Tensor) -> None:
    """Support and query of the same tasks, a row each."""
    for name, part in (("x", x), ("y", y), ("query_x", query_x)):
        if validate.tensor(name, part).ndim < 2:
            raise ValueError(f"{name} must be (tasks, examples, ...), got shape {tuple(part.shape)}")
    if x.shape[:2] != y.shape[:2]:
        raise ValueError(f"x and y must have as many tasks and shots, got {tuple(x.shape)} and {tuple(y.shape)}")
    if len(query_x) != len(x) or query_x.shape[2:] != x.shape[2:]:
        got = f"got {tuple(query_x.shape)} and {tuple(x.shape)}"
        raise ValueError(f"query_x and x must have as many tasks, and inputs of one shape, {got}")


def check_names(parameters: Mapping[str, Tensor], names: Collection[str] | None) -> list[str]:
    """The parameters that move."""
    if names is None:
        return list(parameters)
    if unknown := sorted(set(names) - set(parameters)):
        raise ValueError(f"names must be parameters of the model, got {unknown[0]}: it has {', '.join(parameters)}")
    return [name for name in parameters if name in set(names)]


def check_model(model: nn.Module) -> nn.Module:
    """A module whose layers know what a task is."""
    check_normalization(validate.module("model", model))
    return model


def _rate_of(lr: Rates, name: str) -> Any:
    return lr[name] if isinstance(lr, Mapping) else lr
