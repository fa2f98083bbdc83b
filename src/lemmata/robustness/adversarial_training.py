r"""Training on the worst examples near those given: as a loss that `fit`, or anyone's loop, can lower."""

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.robustness.norm_ball import random_perturbation, steepest_direction
from lemmata.robustness.threat import Threat, ball_threat
from lemmata.train.callbacks import TrainingState
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.forms import accuracy

__all__ = ["AdversarialTraining", "FreeAdversarialTraining", "Replayed"]

COLLAPSED = 0.25  # accuracy that more steps take from a model which the attack of its training does not fool
LOOK = 10  # steps of the attack that looks for a collapse


@system("adversarial_training", title="Adversarial training", kind="function")
class AdversarialTraining:
    r"""The loss at the worst examples that projected gradient ascent finds near those of a batch.

    $$ \min_\theta\frac1{|B|}\sum_{(x,y)\in B}\ell(f_\theta(x+\delta^*),y), \qquad
       \delta^*\approx\arg\max_{\|\delta\|_p\le\epsilon}\ell(f_\theta(x+\delta),y) $$

    The gradient in $\theta$ is that of the loss at $x+\delta^*$, with $\delta^*$ held fixed (Danskin). With `clean` a
    part of the loss is that of the examples as they are. One step of $1.25\,\epsilon$ from a random start,
    `steps=1`, is *fast* training. It can collapse from one epoch to the next: the model learns to deceive that one
    step and falls to any other attack. `watch`, called after each epoch, attacks the last batch with ten steps, warns
    of a collapse and stops the training: `fit(model, data, loss=training, on_epoch=training.watch)`.

    Shapes:
        model(x): logits (batch, classes), batch.x: (batch, ...), batch.y: (batch,)    returns: loss and accuracies

    Claims: robust.objective, robust.danskin, robust.adversarial_training
    Source: Madry et al. 2018; Wong et al. 2020 for one step.
    Differs: the attack looks at the model in evaluation mode: no running mean learns from what lies on its way.

    >>> import torch
    >>> from lemmata.train import fit
    >>> x, model = torch.tensor([[0.2], [0.4], [0.6], [0.8]]), torch.nn.Linear(1, 2)
    >>> run = fit(model, (x, (x[:, 0] > 0.5).long()), loss=AdversarialTraining(eps=0.05), epochs=2, device="cpu")
    >>> sorted(run.scores)
    ['loss', 'robust accuracy']
    """

    def __init__(
        self,
        eps: int | float,
        steps: int = 7,
        step: int | float | None = None,
        norm: int | float = math.inf,
        bounds: tuple[float, float] = (0.0, 1.0),
        clean: int | float = 0.0,
        random_start: bool = True,
    ) -> None:
        self.threat = ball_threat(eps, norm, bounds, levels=None)
        self.steps = validate.count("steps", steps, least=0)
        usual = 1.25 * eps if steps == 1 else 2.5 * eps / max(steps, 1)
        self.step = usual if step is None else validate.number("step", step, least=0)
        self.clean = validate.fraction("clean", clean)
        self.random_start = validate.flag("random_start", random_start)
        self.last: Examples | None = None

    def __call__(self, model: nn.Module, batch: Examples) -> dict[str, Tensor]:
        if self.last is None:
            self.threat.check(batch.x)
        if model.training:
            self.last = batch
        nearby = worst_nearby(model, batch.x, batch.y, self.threat, self.steps, self.step, self.random_start)
        return _loss_and_accuracies(model, batch, nearby, self.clean)

    def watch(self, state: TrainingState) -> bool:
        """Whether the model has learnt to fool its training alone; with a warning that says so. For `on_epoch`."""
        if self.last is None:
            return False
        model, x, y = state.model, self.last.x, self.last.y
        own = worst_nearby(model, x, y, self.threat, self.steps, self.step, self.random_start)
        more = worst_nearby(model, x, y, self.threat, LOOK, 2.5 * self.threat.eps / LOOK, True)
        with evaluating(model):
            before, after = (float(accuracy(model(seen), y)) for seen in (own, more))
        collapsed = before - after > COLLAPSED
        if collapsed:
            steps = f"{self.steps} step{'s' * (self.steps != 1)}"
            fall = f"{before:.0%} right under its own attack of {steps}, {after:.0%} under {LOOK} steps"
            cure = "use more steps, or a smaller eps"
            warnings.warn(f"catastrophic overfitting in epoch {state.epoch}: {fall}; {cure}", stacklevel=2)
        return collapsed


@system("free_adversarial_training", title="Free adversarial training", kind="function")
class FreeAdversarialTraining:
    r"""Adversarial training at the cost of ordinary training: one backward pass moves weights and perturbation both.

    $$ \theta \leftarrow \theta - \eta\nabla_\theta\ell(f_\theta(x+\delta),y), \qquad
       \delta \leftarrow \mathcal P_\epsilon\big[\delta + \epsilon\,d_p(\nabla_x\ell(f_\theta(x+\delta),y))\big] $$

    Each batch comes several times in a row, `fit(model, Replayed(loader, 4), loss=FreeAdversarialTraining(0.1))`, and
    $\delta$ goes on from one batch to the next. Evaluated, it is the loss without any perturbation.

    Shapes:
        model(x): logits (batch, classes), batch.x: (batch, ...), batch.y: (batch,)    returns: loss and accuracies

    Source: Shafahi et al. 2019.  Differs: $\delta$ is no part of a checkpoint: a resumed run begins with $\delta=0$.

    >>> import torch
    >>> model, training = torch.nn.Linear(2, 2), FreeAdversarialTraining(eps=0.1)
    >>> batch = Examples(x=torch.full((4, 2), 0.5), y=torch.tensor([0, 1, 0, 1]))
    >>> training(model, batch)["loss"].backward()
    >>> bool((training.perturbation.abs() <= 0.1 + 1e-6).all()), bool(training.perturbation.any())
    (True, True)
    """

    def __init__(
        self, eps: int | float, norm: int | float = math.inf, bounds: tuple[float, float] = (0.0, 1.0)
    ) -> None:
        self.threat = ball_threat(eps, norm, bounds, levels=None)
        self.perturbation: Tensor | None = None

    def __call__(self, model: nn.Module, batch: Examples) -> dict[str, Tensor]:
        x = batch.x
        if not model.training:
            return _loss_and_accuracies(model, batch, x, 0.0)
        found = self.perturbation
        if found is None or found.shape[1:] != x.shape[1:] or len(found) < len(x) or found.device != x.device:
            self.threat.check(x)
            found = self.perturbation = torch.zeros_like(x)
        nearby = self.threat.project(x, x + found[: len(x)]).requires_grad_()

        def move(gradient: Tensor) -> None:
            ahead = nearby.detach() + self.threat.eps * steepest_direction(gradient, self.threat.norm)
            found[: len(x)] = self.threat.project(x, ahead) - x

        nearby.register_hook(move)
        return _loss_and_accuracies(model, batch, nearby, 0.0)


class Replayed:
    """Batches that come several times each, one after the other, for free adversarial training.

    >>> list(Replayed(["a", "b"], 2))
    ['a', 'a', 'b', 'b']
    """

    def __init__(self, batches: Iterable[Any], times: int) -> None:
        self.batches, self.times = batches, validate.count("times", times)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            for _ in range(self.times):
                yield batch


def worst_nearby(
    model: nn.Module,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    threat: Threat,
    steps: int,
    step: int | float,
    random_start: bool,
) -> Float[Tensor, "batch ..."]:
    """Where the ascent ends: `pgd` without its checks and verification, which a training would pay at every batch.

    Without any step it is the random start: noise of the size of the attack.
    """
    nearby = x.detach()
    if random_start:
        noise = random_perturbation(nearby, threat.eps, threat.norm, torch.default_generator)
        nearby = threat.project(x, nearby + noise)
    with evaluating(model), torch.enable_grad():
        for _ in range(steps):
            nearby.requires_grad_()
            loss = functional.cross_entropy(model(nearby), y, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, nearby)
            nearby = threat.project(x, nearby.detach() + step * steepest_direction(gradient, threat.norm))
    return nearby


def _loss_and_accuracies(model: nn.Module, batch: Examples, nearby: Tensor, clean: float) -> dict[str, Tensor]:
    """The loss to lower, and how many answers are right under the attack; clean ones where they are part of it."""
    logits = model(nearby)
    loss = functional.cross_entropy(logits, batch.y)
    found = {"robust accuracy": accuracy(logits, batch.y)}
    if clean:
        plain = model(batch.x)
        loss = clean * functional.cross_entropy(plain, batch.y) + (1 - clean) * loss
        found["accuracy"] = accuracy(plain, batch.y)
    return {"loss": loss, **found}
