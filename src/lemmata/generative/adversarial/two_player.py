r"""Two players who learn at once, each by its own loss: simultaneously, in turn, or by extragradient steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.optim.extragradient import Extragradient
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.optimizers import lr_factor

__all__ = ["Player", "TwoPlayer"]

PLAYS = ("alternating", "simultaneous", "extragradient")


def adam(parameters: Sequence[nn.Parameter], lr: float) -> Optimizer:
    """Adam with a short memory: with the usual 0.9 a player would go on for long where the other has moved away."""
    fused = all(each.device.type in ("cpu", "cuda") and each.is_floating_point() for each in parameters)
    return torch.optim.Adam(parameters, lr=lr, betas=(0.5, 0.999), fused=fused)


@dataclass(frozen=True)
class Player:
    """Parameters, and what they lower; who wants to raise a value lowers its negative."""

    parameters: Sequence[nn.Parameter]
    loss: Callable[[Any, Examples], Tensor]  # loss(system, batch) -> one number
    lr: float = 1e-3
    optimizer: Callable[..., Optimizer] = adam  # optimizer(parameters, lr=lr); extragradient play has its own
    after: Callable[[], None] | None = None  # after each of its moves, such as the clipping of weights

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", list(self.parameters))
        if not self.parameters:
            raise ValueError("parameters must hold at least one parameter: use module.parameters()")
        validate.positive("lr", self.lr)


class TwoPlayer:
    r"""A learner for `fit`: the first player lowers $\ell_1$ in $\theta$, the second $\ell_2$ in $\varphi$.

    $$ \theta' = \theta - \eta \nabla_\theta \ell_1(\theta, \varphi), \qquad
       \varphi' = \varphi - \eta \nabla_\varphi \ell_2(\theta', \varphi) $$

    So it is where `play` is alternating. In simultaneous play $\varphi'$ is found at the old $\theta$, in extragradient
    play both at $(\theta - \eta\nabla_\theta \ell_1, \varphi - \eta\nabla_\varphi \ell_2)$, one step ahead of both.
    With `critic_steps` of n the first player moves in every n-th step only, the first of all included.

    Each player's gradient is taken in its own parameters alone. With `ema_decay` a moving average of all weights is
    evaluated and kept. All that the next step depends on is in `state`, so that a run that was stopped goes on to the
    same bits; a loss that is not finite stops `fit`, which names it.

    Claims: gan.alternating, gan.gda_bilinear, gan.extragradient, gan.system
    Source: G. Korpelevich 1976; I. Goodfellow et al. 2014; G. Gidel et al. 2019.
    Differs: extragradient steps are those of gradients, not of Adam's directions.

    >>> game = nn.Linear(1, 1).double()
    >>> _ = game.weight.data.fill_(1.0), game.bias.data.fill_(1.0)
    >>> value = lambda game, batch: (game.weight * game.bias).sum()
    >>> first = Player([game.weight], value, lr=0.1, optimizer=torch.optim.SGD)
    >>> second = Player([game.bias], lambda *both: -value(*both), lr=0.1, optimizer=torch.optim.SGD)
    >>> _ = TwoPlayer(game, first, second).step(Examples(x=torch.zeros(1)), 0.0)
    >>> game.weight.item(), game.bias.item()
    (0.9, 1.09)
    """

    def __init__(
        self,
        system: Any,
        first: Player,
        second: Player,
        *,
        play: str = "alternating",
        critic_steps: int = 1,
        schedule: str = "constant",
        ema_decay: float | None = None,
        metrics: Callable[[Any, Examples], Mapping[str, float]] | None = None,
    ) -> None:
        self.system, self.first, self.second, self.metrics = system, first, second, metrics
        self.play = validate.one_of("play", play, PLAYS)
        self.critic_steps = validate.count("critic_steps", critic_steps)
        self.schedule = validate.one_of("schedule", schedule, ("constant", "cosine", "linear"))
        if play == "extragradient" and critic_steps != 1:
            raise ValueError(
                f"critic_steps must be 1 in extragradient play, got {critic_steps}: both look ahead at once"
            )
        shared = {id(each) for each in first.parameters} & {id(each) for each in second.parameters}
        if shared:
            raise ValueError(f"each parameter must belong to one player, found {len(shared)} that both have")
        self.averaged = None  # what is evaluated and kept: where two circle, their mean is nearer to the middle
        if ema_decay is not None:
            validate.number("ema_decay", ema_decay, above=0, below=1)
            self.averaged = AveragedModel(system, multi_avg_fn=get_ema_multi_avg_fn(ema_decay), use_buffers=True)
        self.steps = 0
        self.loss = torch.zeros(())  # of the first player's last move
        if play == "extragradient":
            groups = [{"params": each.parameters, "lr": each.lr} for each in (first, second)]
            self.optimizers: list[Optimizer] = [Extragradient(groups)]
        else:
            self.optimizers = [each.optimizer(each.parameters, lr=each.lr) for each in (first, second)]
        self.highest = [group["lr"] for optimizer in self.optimizers for group in optimizer.param_groups]

    def step(self, batch: Examples, progress: float) -> dict[str, Tensor | float]:
        """One move of the second player, and of the first where it is its turn."""
        self._set_rates(progress)
        turn = self.steps % self.critic_steps == 0
        self.steps += 1
        if self.play == "extragradient":
            second = self._look_ahead(batch)
        elif self.play == "simultaneous":
            second = self._move_at_once(batch, turn)
        else:
            if turn:
                self.loss = self._player_gradient(self.first, batch)
                self._move_player(0)
            second = self._player_gradient(self.second, batch)
            self._move_player(1)
        if self.averaged is not None:
            self.averaged.update_parameters(self.system)
        return {"loss": self.loss, "critic_loss": second}

    def evaluate(self, examples: Examples) -> Mapping[str, float]:
        """The metrics, in evaluation mode."""
        if self.metrics is None:
            return {}
        home = self.first.parameters[0]
        system = self.system if self.averaged is None else self.averaged.module
        with evaluating(system):
            return self.metrics(system, examples.to(home.device))

    def finish(self) -> None:
        """Leave the averaged weights in the system: they are what was evaluated."""
        if self.averaged is not None:
            self.system.load_state_dict(self.averaged.module.state_dict())

    def state(self) -> dict[str, Any]:
        """Whose turn it is, the loss last seen, the optimisers, and the averaged weights."""
        average = None if self.averaged is None else self.averaged.state_dict()
        optimizers = [each.state_dict() for each in self.optimizers]
        return {"steps": self.steps, "loss": self.loss, "optimizers": optimizers, "average": average}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned; learning rates follow from the players, and may be others now."""
        if len(state["optimizers"]) != len(self.optimizers):
            raise ValueError("it was played in another way: play cannot change on the way")
        self.steps, self.loss = state["steps"], state["loss"]
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        if self.averaged is not None:
            self.averaged.load_state_dict(state["average"])

    # --- Gradients and moves ---

    def _player_gradient(self, player: Player, batch: Examples) -> Tensor:
        """Leave the gradient of a player's loss in its own parameters alone."""
        for parameter in player.parameters:
            parameter.grad = None
        loss = player.loss(self.system, batch)
        loss.backward(inputs=player.parameters)
        return loss.detach()

    def _move_player(self, number: int) -> None:
        self.optimizers[number].step()
        if after := (self.first, self.second)[number].after:
            after()

    def _move_at_once(self, batch: Examples, turn: bool) -> Tensor:
        """Both gradients where both players stand, then both moves."""
        if turn:
            self.loss = self._player_gradient(self.first, batch)
        second = self._player_gradient(self.second, batch)
        if turn:
            self._move_player(0)
        self._move_player(1)
        return second

    def _look_ahead(self, batch: Examples) -> Tensor:
        """A step with both gradients where a first step of both would lead; the losses are those before it."""
        losses: list[Tensor] = []

        def both() -> Tensor:
            losses.extend(self._player_gradient(player, batch) for player in (self.first, self.second))
            return losses[0]

        self.optimizers[0].step(both)  # type: ignore[arg-type] - Extragradient takes any closure
        for player in (self.first, self.second):
            if player.after:
                player.after()
        self.loss = losses[0]
        return losses[1]

    def _set_rates(self, progress: float) -> None:
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        for group, highest in zip(groups, self.highest, strict=True):
            group["lr"] = highest * lr_factor(progress, 1, self.schedule)
