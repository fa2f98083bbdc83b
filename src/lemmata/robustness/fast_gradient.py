r"""Attacks that follow the sign of the gradient: one step, several, or towards the least likely class."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, Classifier, under_attack
from lemmata.robustness.goals import cross_entropy_goal
from lemmata.robustness.norm_ball import steepest_direction
from lemmata.robustness.threat import Threat

__all__ = ["fgsm"]


@system("fgsm", title="Fast gradient sign method", kind="function")
def fgsm(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
) -> Attack:
    r"""One step to the boundary of the ball, along the gradient of the loss.

    $$ x' = x + \epsilon\,\mathrm{sign}(\nabla_x\mathcal L(f(x), y)), \qquad \|x'-x\|_\infty\le\epsilon $$

    the maximiser of the *linearised* loss; of the loss itself only where that is monotone in one linear score. Other
    norms take their own steepest direction. Nothing is drawn: `generator` is there as in all attacks.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.fgsm, attack.fgsm_optimal
    Source: Goodfellow et al. 2015.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(fgsm(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1))
    1 of 1 answered wrongly, median norm 0.1
    """
    threat = Threat(eps, norm, bounds, levels)
    with under_attack(model, x, y, threat, targeted) as attacked:
        rows = attacked.rows
        candidates = attacked.x.clone()
        if len(rows):
            _, gradient, _ = attacked.gradient(candidates[rows], cross_entropy_goal, rows)
            candidates[rows] += eps * steepest_direction(gradient, norm)
        return attacked.result(candidates)
