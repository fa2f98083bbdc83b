r"""Projected gradient ascent that finds its step by itself."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import Goal, cross_entropy_goal
from lemmata.robustness.norm_ball import per_example, random_perturbation
from lemmata.robustness.projected_gradient import ascent_direction
from lemmata.robustness.threat import ball_threat

__all__ = ["apgd"]

KEPT = 0.75  # of each step; the rest is the momentum of the one before
MOVED = 0.05  # the fraction of the values that a step in the 1-norm moves
PROGRESS = 0.75  # the fraction of the steps since a checkpoint that must climb, or the step is halved


@system("apgd", title="Adaptive projected gradient (APGD)", kind="function")
def apgd(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    steps: int = 100,
    restarts: int = 1,
    goal: Goal = cross_entropy_goal,
) -> Attack:
    r"""Projected gradient ascent with momentum, without a step to tune.

    $$ z = P\big(x_k + \eta\,d(\nabla\ell)\big), \qquad x_{k+1} = P\big(x_k + \alpha(z - x_k) +
       (1-\alpha)(x_k - x_{k-1})\big), \qquad \alpha = \tfrac34 $$

    $\eta$ begins at $2\epsilon$. At checkpoints, at 0.22 of the steps and then ever closer, it is halved, and the
    search goes on from the best point so far, where fewer than three quarters of the steps climbed above it, or where
    neither step nor best value has changed since the last checkpoint. With `goal=dlr_goal`, the difference of logits
    ratio, no scale of the logits can make the gradient vanish. Examples that are answered wrongly cost nothing more.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Source: Croce and Hein 2020.  Differs: a step counts as a climb above the best value, not above the last one; in
        the 1-norm it moves the twentieth of the values with the largest gradients that the box does not stop.

    >>> from lemmata.robustness import dlr_goal
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(apgd(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1, goal=dlr_goal))
    1 of 1 answered wrongly, median norm 0.1
    """
    threat = ball_threat(eps, norm, bounds, levels)
    validate.count("steps", steps)
    validate.count("restarts", restarts)
    drawn = fixed_generator(generator)
    with under_attack(model, x, y, threat, targeted) as attacked:
        candidates = attacked.x.clone()
        rows = attacked.rows if eps > 0 else attacked.rows[:0]
        for _ in range(restarts):
            if len(rows):
                found, wrong = _Ascent(attacked, rows, goal, steps, drawn).run()
                candidates[rows] = found
                rows = rows[~wrong]
        return attacked.result(candidates)


@dataclass
class _State:
    """What is remembered of each example that is still attacked."""

    place: Tensor  # among the rows of this ascent
    rows: Tensor
    now: Tensor
    before: Tensor
    best: Tensor
    best_value: Tensor
    best_gradient: Tensor
    gradient: Tensor
    step: Tensor
    climbed: Tensor  # steps since the checkpoint that climbed above the best value
    halved: Tensor  # whether the step was halved at the last checkpoint
    value_then: Tensor  # the best value at the last checkpoint

    def of(self, kept: Bool[Tensor, "rows"]) -> "_State":
        return _State(*(value[kept] for value in vars(self).values()))


class _Ascent:
    """One run from one random start; examples leave it as soon as they are answered wrongly."""

    def __init__(
        self, attacked: AttackedModel, rows: Int[Tensor, "rows"], goal: Goal, steps: int, generator: torch.Generator
    ):
        self.attacked, self.threat, self.goal, self.steps = attacked, attacked.threat, goal, steps
        x = attacked.x[rows]
        self.found = x.clone()
        self.wrong = torch.zeros(len(rows), dtype=torch.bool, device=x.device)
        start = self.threat.project(x, x + random_perturbation(x, self.threat.eps, self.threat.norm, generator))
        value, gradient, logits = self.ask(start, x, rows)
        zero = torch.zeros(len(rows), device=x.device, dtype=x.dtype)
        self.state = _State(
            torch.arange(len(rows), device=x.device), rows, start, start, start, value, gradient, gradient,
            torch.full_like(zero, 2 * self.threat.eps), zero, zero > 0, value,
        )  # fmt: skip
        self.take_out(attacked.wrong(logits, rows), start)

    def ask(self, images: Tensor, x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Value, gradient and logits; with levels at the point of the grid that would be returned."""
        return self.attacked.gradient(self.threat.shown(x, images), self.goal, rows)

    def take_out(self, wrong: Bool[Tensor, "rows"], images: Tensor) -> None:
        if wrong.any():
            place = self.state.place[wrong]
            self.found[place] = images[wrong]
            self.wrong[place] = True
            self.state = self.state.of(~wrong)

    def run(self) -> tuple[Float[Tensor, "rows ..."], Bool[Tensor, "rows"]]:
        """The examples that are answered wrongly, or the best that was found, and which of them are."""
        ends, last = checkpoints(self.steps), 0
        for step in range(1, self.steps + 1):
            if not len(self.state.rows):
                break
            self.climb(first=step == 1)
            if step in ends and len(self.state.rows):
                self.adapt(step - last)
                last = step
        self.found[self.state.place] = self.state.best
        return self.found, self.wrong

    def climb(self, first: bool) -> None:
        s = self.state
        x = self.attacked.x[s.rows]
        kept = 1.0 if first else KEPT
        step = per_example(s.step, x) * ascent_direction(s.gradient, s.now, self.threat, share=MOVED)
        ahead = self.threat.project(x, s.now + step)
        ahead = self.threat.project(x, s.now + kept * (ahead - s.now) + (1 - kept) * (s.now - s.before))
        value, gradient, logits = self.ask(ahead, x, s.rows)
        better = value > s.best_value
        s.climbed = s.climbed + better
        s.before, s.now, s.gradient = s.now, ahead, gradient
        s.best = torch.where(per_example(better, x), ahead, s.best)
        s.best_gradient = torch.where(per_example(better, x), gradient, s.best_gradient)
        s.best_value = torch.where(better, value, s.best_value)
        self.take_out(self.attacked.wrong(logits, s.rows), ahead)

    def adapt(self, taken: int) -> None:
        """The step halves where progress stalls, and the search goes on from the best point."""
        s = self.state
        stalled = s.climbed < PROGRESS * taken
        stalled |= ~s.halved & (s.best_value <= s.value_then)
        s.step = torch.where(stalled, s.step / 2, s.step)
        back = per_example(stalled, s.now)
        s.now, s.gradient = torch.where(back, s.best, s.now), torch.where(back, s.best_gradient, s.gradient)
        s.before = torch.where(back, s.best, s.before)
        s.climbed, s.halved, s.value_then = torch.zeros_like(s.climbed), stalled, s.best_value


def checkpoints(steps: int) -> set[int]:
    """The steps after which progress is judged: intervals that shrink from 0.22 of all steps to 0.06."""
    before, now, ends = 0.0, 0.22, []
    while now <= 1:
        ends.append(math.ceil(now * steps - 1e-9))  # 0.57 * 100 is a little more than 57
        before, now = now, now + max(now - before - 0.03, 0.06)
    return set(ends)
