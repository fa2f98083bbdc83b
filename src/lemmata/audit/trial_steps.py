r"""A few steps of the optimiser on a copy of the network: what a learning rate does, rather than what it should do."""

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.audit.clock import Clock
from lemmata.audit.learning_form import LearningForm
from lemmata.audit.subject import Training
from lemmata.audit.update_rule import gradient_moments, kind_of

__all__ = []  # for the probe of the step size

STEPS = 30  # an unstable direction grows by a factor of three and more in each, beyond twice the limit
RISE = 0.2  # of the loss at the start: more than the edge of stability does in a step, far less than divergence
RUIN = 1.5  # times what a constant answer costs, and times the start, in the whole last third of the steps
DESTROYED = 10.0  # times the same, once: steps of a trained network that lost its optimiser's state cost less
HOPELESS = 100.0  # times that: no need to go on
WARM = 1e6  # steps after which Adam's correction for its start is gone


@dataclass(frozen=True)
class Trial:
    """The loss before each step, and what a constant answer costs."""

    losses: list[float]
    constant: float

    @property
    def rises(self) -> bool:
        """Whether the loss rises by a fifth above the start, or is lost altogether."""
        start, peak = self.losses[0], self.peak
        return not peak - start <= RISE * abs(start) + 1e-6 * abs(self.constant)

    @property
    def ruins(self) -> bool:
        """Whether at the end the network is much worse than one that answers all examples alike."""
        worst = max(self.losses[0], self.constant)
        last = self.losses[-max(len(self.losses) // 3, 1) :]
        return any(not math.isfinite(value) for value in last) or min(last) > worst + (RUIN - 1) * abs(worst)

    @property
    def destroys(self) -> bool:
        """Whether at some time the network is far worse than one that answers all examples alike."""
        worst = max(self.losses[0], self.constant)
        return self.ruins or not self.peak - worst <= (DESTROYED - 1) * abs(worst)

    @property
    def peak(self) -> float:
        """The highest loss on the way; infinite where it was no number."""
        return max(value if math.isfinite(value) else math.inf for value in self.losses)


def tried(form: LearningForm, training: Training, clock: Clock, factor: float = 1.0) -> Trial:
    """Steps, `factor` times as long, of the optimiser on all examples of the sample, from these weights and its state.

    An optimiser of which only the name is known starts with the moments of the gradients at these weights, as if it had
    been here for long: what it does in its very first steps would say more about its start than about the step size.
    """
    network, optimizer = _copy_together(form, training)
    for group in optimizer.param_groups:
        group["lr"] = factor * group["lr"]
    batches, total = form.batches, sum(len(targets) for _, targets in form.batches)
    constant = _constant_loss(form, network)
    losses: list[float] = []

    def closure() -> Any:
        optimizer.zero_grad()
        value = torch.zeros((), device=form.subject.device)
        for inputs, targets in batches:
            with torch.enable_grad():
                part = form.subject.loss(network(*inputs), targets) * (len(targets) / total)
                part.backward()
            value += part.detach()
        losses.append(float(value))
        return value

    started = clock.now()
    for step in range(STEPS):
        before = len(losses)
        optimizer.step(closure)
        del losses[before + 1 :]  # some optimisers ask several times for a step
        worst = max(losses[0], constant)
        if not math.isfinite(losses[-1]) or losses[-1] > HOPELESS * max(worst, 0.0) + RUIN * abs(worst):
            return Trial(losses, constant)
        taken = (clock.now() - started) / (step + 1)
        if taken > clock.left():
            break
    closure()
    return Trial(losses, constant)


def _copy_together(form: LearningForm, training: Training) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The network and its optimiser, copied together so that they stay a pair."""
    if training.running is None:
        network = copy.deepcopy(form.network)
        return network, _make_optimizer(form, network, training)
    # The optimiser holds the parameters of the model itself, which may be of lower precision than the form.
    pair: Any = (form.subject.network, training.running)
    network, optimizer = copy.deepcopy(pair)
    for mine, shown in zip(network.modules(), form.network.modules(), strict=True):
        mine.training = shown.training
    if next(form.network.parameters()).dtype != next(network.parameters()).dtype:
        network.float()
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.is_floating_point() and value.dtype.itemsize < 4:
                state[name] = value.float()
    return network, optimizer


def _make_optimizer(form: LearningForm, network: nn.Module, training: Training) -> torch.optim.Optimizer:
    """The optimiser of this name, warmed up where its steps depend on past gradients."""
    named = {name: value for name, value in network.named_parameters() if value.requires_grad}
    lr, decay, kind = training.lr or 0.0, training.weight_decay, kind_of(training)
    values = list(named.values())
    if kind == "adagrad":
        return torch.optim.Adagrad(values, lr=lr, weight_decay=decay)
    if kind not in ("adam", "adamw", "rmsprop"):
        nesterov = training.nesterov and training.momentum > 0
        return torch.optim.SGD(values, lr=lr, momentum=training.momentum, nesterov=nesterov, weight_decay=decay)
    first, second = gradient_moments(form, list(named))
    if kind == "rmsprop":
        optimizer: Any = torch.optim.RMSprop(values, lr=lr, momentum=training.momentum, weight_decay=decay)
    else:
        maker = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
        optimizer = maker(values, lr=lr, betas=training.betas, eps=training.eps, weight_decay=decay)
    for name, value in named.items():
        state = {"step": torch.tensor(WARM)}
        if kind == "rmsprop":
            state |= {"square_avg": second[name].clone()}
            state |= {"momentum_buffer": torch.zeros_like(value)} if training.momentum else {}
        else:
            state |= {"exp_avg": first[name].clone(), "exp_avg_sq": second[name].clone()}
        optimizer.state[value] = state
    return optimizer


def _constant_loss(form: LearningForm, network: nn.Module) -> float:
    """The loss of a network that gives its mean output to all examples."""
    inputs, targets = form.batches[0]
    with torch.no_grad():
        outputs = network(*inputs)
        return float(form.subject.loss(outputs.mean(0, keepdim=True).expand_as(outputs), targets))
