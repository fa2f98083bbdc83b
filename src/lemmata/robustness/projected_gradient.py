r"""Projected gradient ascent: many small steps within a ball, from one or several places in it."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import Goal, cross_entropy_goal, margin_goal
from lemmata.robustness.norm_ball import per_example, random_perturbation, steepest_direction
from lemmata.robustness.threat import Threat, ball_threat

__all__ = ["pgd"]


@system("pgd", title="Projected gradient attack", kind="function")
def pgd(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    steps: int = 20,
    step: int | float | None = None,
    restarts: int = 1,
    random_start: bool = True,
    early_stop: bool = False,
    goal: Goal = cross_entropy_goal,
) -> Attack:
    r"""Steps along the steepest direction of the goal, each followed by the way back into ball and box.

    $$ \delta \leftarrow \mathcal P_{\|\delta\|_p\le\epsilon}\big[\delta
       + \alpha\,d_p(\nabla_\delta\ell(f(x+\delta),y))\big], \qquad d_\infty=\mathrm{sign}(g),\ d_2=g/\|g\|_2 $$

    In the 1-norm a step is shared by the largest hundredth of the values that the box lets move. The ball stays around
    the original x, and a random start is a point of it. `step` is $2.5\,\epsilon/\mathrm{steps}$ unless it is given.
    All `restarts` are in one batch, and the best of their examples returns. That is the last one of a path, or the last
    that was answered wrongly; with `early_stop` the first, and nothing more is asked about that image.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.pgd, attack.pgd_vs_fgsm, attack.loss_maximisation
    Source: Madry et al. 2018; Tramèr and Boneh 2019 for the 1-norm.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(pgd(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1, norm=2))
    1 of 1 answered wrongly, median norm 0.1
    """
    threat = ball_threat(eps, norm, bounds, levels)
    validate.count("restarts", restarts)
    if restarts > 1 and not random_start:
        raise ValueError(f"restarts={restarts} need random_start=True, or all of them are the same")
    with under_attack(model, x, y, threat, targeted) as attacked:
        start = fixed_generator(generator) if random_start else None
        length = 2.5 * eps / validate.count("steps", steps) if step is None else step
        return attacked.result(climb(attacked, steps, length, start, restarts, early_stop, goal))


def climb(
    attacked: AttackedModel,
    steps: int,
    step: int | float,
    start: torch.Generator | None = None,
    restarts: int = 1,
    early_stop: bool = False,
    goal: Goal = cross_entropy_goal,
) -> Float[Tensor, "batch ..."]:
    """Where projected ascent leads each example: the last iterate, or the last one that reached what is wanted."""
    validate.count("steps", steps)
    validate.number("step", step, least=0)
    threat, rows = attacked.threat, attacked.rows.repeat(restarts)  # one entry a path
    candidates, origin = attacked.x.clone(), attacked.x[rows]
    images = origin.clone()
    if start is not None:
        images = threat.project(origin, origin + random_perturbation(origin, threat.eps, threat.norm, start))
    best, margins = images.clone(), torch.zeros(len(rows), device=origin.device)  # a margin is positive on arrival
    going: Tensor | slice = slice(None)
    for left in reversed(range(steps + 1)):
        asked = rows[going]
        if not len(asked):
            break
        here = threat.shown(origin[going], images[going])
        if left:
            _, gradient, logits = attacked.gradient(here, goal, asked)
        else:
            gradient, logits = None, attacked.logits(here, asked)
        margin = margin_goal(logits, attacked.y[asked], attacked.targets_of(asked)).to(margins)
        margin = torch.where(attacked.wrong(logits, asked), margin, 0)
        better = (margin > 0) | (margins[going] == 0)
        best[going] = torch.where(per_example(better, here), here, best[going])
        margins[going] = torch.where(better, margin, margins[going])
        if gradient is not None:
            ahead = images[going] + step * ascent_direction(gradient, here, threat)
            images[going] = threat.project(origin[going], ahead)
        if early_stop:
            arrived = margins.view(restarts, -1).amax(0) > 0  # by any of its paths
            going = (~arrived).repeat(restarts).nonzero()[:, 0]
    chosen = margins.view(restarts, -1).argmax(0)
    paths = best.view(restarts, -1, *best.shape[1:])  # (restarts, rows, ...)
    candidates[attacked.rows] = paths[chosen, torch.arange(len(chosen), device=chosen.device)]
    return candidates


def ascent_direction(
    gradient: Float[Tensor, "paths ..."], images: Float[Tensor, "paths ..."], threat: Threat, share: float = 0.01
) -> Float[Tensor, "paths ..."]:
    """The steepest direction; in the 1-norm, where it is one value that soon meets the box, a share of all of them."""
    if threat.norm != 1:
        return steepest_direction(gradient, threat.norm)
    least, most = threat.bounds
    free = torch.where(gradient > 0, images < most, images > least)
    size = (gradient.abs() * free).flatten(1)  # (paths, values)
    largest = size.topk(max(1, int(share * size.shape[1])), dim=1).values
    shared = (size >= largest[:, -1:]) & (size > 0)
    return gradient.sign() * (shared / shared.sum(1, keepdim=True).clamp(min=1)).view_as(gradient)
