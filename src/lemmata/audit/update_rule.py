r"""How far an optimiser goes along each entry of a gradient, and from which curvature on its steps are unstable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata.audit.learning_form import LearningForm
from lemmata.audit.subject import Training

__all__ = []  # for the probe of the step size

KINDS = {
    "sgd": "sgd", "gradientdescent": "sgd", "heavyball": "sgd", "momentum": "sgd", "nesterov": "nesterov",
    "adamw": "adamw", "adam": "adam", "rmsprop": "rmsprop", "adagrad": "adagrad",
}  # fmt: skip
SQUARES = {"adam": "exp_avg_sq", "adamw": "exp_avg_sq", "rmsprop": "square_avg", "adagrad": "sum"}
STATE = "the optimiser's state"
OLD = 50  # steps before which a state says more about the first few batches than about the rates to come
BATCHES = 8  # of which the mean square of gradients is taken: fewer are often all small in some entry by chance


@dataclass(frozen=True)
class UpdateRule:
    r"""On a quadratic with Hessian $H$ steps are stable iff $\lambda_{\max}(D^{1/2} H D^{1/2}) < c$.

    $D$ is diagonal: `rates`, one tensor or number for each parameter, is what a small constant gradient is multiplied
    with. `limit` is $c$: 2 for gradient descent. `decay` is added to the Hessian, `decoupled` to its scaled form.
    """

    kind: str
    lr: float
    rates: "dict[str, Tensor | float]"
    limit: float
    formula: str
    source: str
    decay: float = 0.0
    decoupled: float = 0.0

    @property
    def adaptive(self) -> bool:
        """Whether entries have rates of their own."""
        return self.kind in SQUARES

    @property
    def known(self) -> bool:
        """Whether the rates are those of the optimiser. From the gradients of one place they come out too large where
        past ones were larger, at the end of a training: by a factor of ten and more.
        """
        return self.source in ("", STATE)

    def scaled(self, hessian: Callable[[Tensor], Tensor], flat: Tensor) -> Callable[[Tensor], Tensor]:
        """The product with the scaled Hessian; `flat` is a vector of the rates."""
        root = flat.sqrt()

        def product(vectors: Tensor) -> Tensor:
            image = hessian(root * vectors) + self.decay * root * vectors
            return root * image + self.decoupled * vectors

        return product


def kind_of(training: Training) -> str:
    """The family of the optimiser, gradient descent where none was named; empty for one that is not known."""
    if training.running is None:
        return KINDS.get(training.optimizer or "sgd", "")
    names = [part.__name__.lower() for part in type(training.running).__mro__]
    return next((KINDS[name] for name in names if name in KINDS), "")


def limit_of(kind: str, momentum: float = 0.0, nesterov: bool = False) -> tuple[float, str]:
    r"""The largest stable product of rate and curvature, and its formula.

    On one eigenvalue the steps are linear recurrences; with $q = 1 - \eta\lambda$ their characteristic polynomials are
    $z^2 - (q + \beta) z + \beta$ for the heavy ball and $z^2 - (1 + \beta) q z + \beta q$ for Nesterov's method, and
    $z = -1$ is their root at the limit. Adam's momentum is an average: its step is $1 - \beta$ of the heavy ball's.

    >>> limit_of("sgd"), limit_of("sgd", 0.9)[0], round(limit_of("adam", 0.9)[0], 6)
    ((2.0, '2/λ'), 3.8, 38.0)
    """
    if kind in ("adam", "adamw"):
        return 2 * (1 + momentum) / (1 - momentum), "2(1+β₁)/((1-β₁)λ)"
    if momentum == 0:
        return 2.0, "2/λ"
    if nesterov or kind == "nesterov":
        return 2 * (1 + momentum) / (1 + 2 * momentum), "2(1+β)/((1+2β)λ)"
    return 2 * (1 + momentum), "2(1+β)/λ"


def update_rule(form: LearningForm, training: Training) -> UpdateRule | None:
    """What the optimiser does at these weights, from its own state where it was given, else from the gradients here.

    None where the optimiser is not known, holds none of the parameters, or adds up all gradients and its sum was not
    given.
    """
    kind = kind_of(training)
    groups = _parameter_options(form, training)
    if not kind or not groups:
        return None
    squares, source = _squared_gradients(form, training, kind, groups)
    if kind == "adagrad" and source != STATE:
        return None
    rates: dict[str, Tensor | float] = {}
    limits = []
    for name, group in groups.items():
        rate = float(group["lr"]) * (1 - float(group.get("dampening", 0.0)))
        if group.get("lr_decay"):
            rate /= 1 + (_steps_taken(training, form.original(name)) - 1) * group["lr_decay"]
        rates[name] = rate / (squares[name].sqrt() + group.get("eps", 0.0)) if kind in SQUARES else rate
        momentum = group["betas"][0] if kind in ("adam", "adamw") else group.get("momentum", 0.0)
        limits.append(limit_of(kind, float(momentum), bool(group.get("nesterov", False))))
    limit, formula = max(limits)  # where groups differ, the least strict
    decay = min(float(group.get("weight_decay", 0.0)) for group in groups.values())
    apart = kind == "adamw" or any(group.get("decoupled_weight_decay", False) for group in groups.values())
    lr = max(float(group["lr"]) for group in groups.values())
    decoupled = lr * decay if apart else 0.0
    return UpdateRule(kind, lr, rates, limit, formula, source, 0.0 if apart else decay, decoupled)


def _parameter_options(form: LearningForm, training: Training) -> dict[str, dict[str, Any]]:
    """The options that hold for each parameter, by its name; only those that learn."""
    names = [name for name, value in form.network.named_parameters() if value.requires_grad]
    if training.running is None:
        options = {name: getattr(training, name) for name in ("momentum", "nesterov", "betas", "weight_decay")}
        eps = training.eps if (training.optimizer or "") in SQUARES else 0.0
        group = options | {"lr": training.lr or 1.0, "eps": eps}
        return dict.fromkeys(names, group)
    held = {id(value): group for group in training.running.param_groups for value in group["params"]}
    originals = {name: id(form.original(name)) for name in names}
    return {name: held[key] for name, key in originals.items() if key in held}


def _squared_gradients(
    form: LearningForm, training: Training, kind: str, groups: dict[str, dict[str, Any]]
) -> tuple[dict[str, Tensor], str]:
    """The mean squares of gradients by which an adaptive optimiser divides, and where they were taken from."""
    if kind not in SQUARES:
        return {}, ""
    running = training.running
    if running is not None:
        states = {name: running.state.get(form.original(name), {}) for name in groups}
        if all(SQUARES[kind] in state and state.get("step", OLD) >= OLD for state in states.values()):
            return {name: _of_state(state, kind, groups[name]) for name, state in states.items()}, STATE
    return gradient_moments(form, list(groups))[1], "the gradients at these weights"


def _of_state(state: dict[str, Any], kind: str, group: dict[str, Any]) -> Tensor:
    square = state.get("max_exp_avg_sq", state[SQUARES[kind]])
    square = square.to(torch.promote_types(square.dtype, torch.float32))
    if "grad_avg" in state:  # RMSProp that divides by the deviation
        square = (square - state["grad_avg"].to(square.dtype).square()).clamp(min=0)
    if kind in ("adam", "adamw"):
        square = square / (1 - group["betas"][1] ** max(float(state["step"]), 1.0))
    return square


def _steps_taken(training: Training, parameter: Tensor) -> float:
    state = training.running.state.get(parameter, {}) if training.running is not None else {}
    return max(float(state.get("step", 1)), 1.0)


def gradient_moments(form: LearningForm, names: list[str]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The mean of the gradients of batches and that of their squares, entry by entry.

    Where the sample has few batches of the size that is trained with, smaller ones are taken; their noise is larger, so
    that the squares come out too large and the steps too short: no step is called too large for this.
    """
    parameters = dict(form.network.named_parameters())
    chosen = [parameters[name] for name in names]
    size = max(min(form.size, len(form.sample) // BATCHES), min(2, len(form.sample)))
    batches = form.batches_of(form.sample, size)
    first = [torch.zeros_like(value) for value in chosen]
    second = [torch.zeros_like(value) for value in chosen]
    for inputs, targets in batches:
        with torch.enable_grad():
            loss = form.subject.loss(form.network(*inputs), targets)
            found = torch.autograd.grad(loss, chosen, materialize_grads=True)
        for one, two, gradient in zip(first, second, found, strict=True):
            one += gradient.detach() / len(batches)
            two += gradient.detach().square() / len(batches)
    return dict(zip(names, first, strict=True)), dict(zip(names, second, strict=True))
