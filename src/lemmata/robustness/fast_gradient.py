r"""Attacks that follow the sign of the gradient: one step, several, or towards the least likely class."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, Classifier, under_attack
from lemmata.robustness.goals import cross_entropy_goal
from lemmata.robustness.norm_ball import steepest_direction
from lemmata.robustness.projected_gradient import climb
from lemmata.robustness.threat import ball_threat

__all__ = ["fgsm", "iterative_fgsm", "least_likely_attack"]


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

    Claims: attack.adversarial_example, attack.goals, attack.linear_linf, attack.fgsm, attack.fgsm_optimal
    Source: Goodfellow et al. 2015.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(fgsm(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1))
    1 of 1 answered wrongly, median norm 0.1
    """
    threat = ball_threat(eps, norm, bounds, levels)
    with under_attack(model, x, y, threat, targeted) as attacked:
        rows = attacked.rows
        candidates = attacked.x.clone()
        if len(rows):
            _, gradient, _ = attacked.gradient(candidates[rows], cross_entropy_goal, rows)
            candidates[rows] += eps * steepest_direction(gradient, threat.norm)
        return attacked.result(candidates)


@system("iterative_fgsm", title="Iterative fast gradient sign method", kind="function")
def iterative_fgsm(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    steps: int = 10,
    step: int | float | None = None,
) -> Attack:
    r"""Several smaller steps from x itself, each clipped to the ball around x and to the box.

    $$ x^{(m)} = \mathrm{Clip}_{x,\epsilon}\big(x^{(m-1)}
       + \alpha\,\mathrm{sign}(\nabla_x\mathcal L(f(x^{(m-1)}), y))\big), \qquad x^{(0)} = x $$

    A step is $\alpha=2.5\,\epsilon/\mathrm{steps}$, at most $\epsilon$, unless `step` says another one. Also called
    basic iterative method; it is `pgd` without a random start. Nothing is drawn.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.ifgsm
    Source: Kurakin et al. 2017.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(iterative_fgsm(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1, steps=5))
    1 of 1 answered wrongly, median norm 0.1
    """
    with under_attack(model, x, y, ball_threat(eps, norm, bounds, levels), targeted) as attacked:
        return attacked.result(climb(attacked, steps, _step_length(eps, steps, step)))


@system("least_likely_attack", title="Least-likely-class attack", kind="function")
def least_likely_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    steps: int = 1,
    step: int | float | None = None,
) -> Attack:
    r"""Down the loss of the class that the model found least likely for x: gross mistakes rather than many.

    $$ x' = x - \epsilon\,\mathrm{sign}(\nabla_x\mathcal L(f(x), y_{LL})), \qquad
       y_{LL} = \arg\min_c p(c\mid x) $$

    for one step, or several that are clipped as those of `iterative_fgsm`. Any wrong answer is a success; an attack
    that must reach the class says `fgsm(..., targeted=model(x).argmin(1))`. Nothing is drawn.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.least_likely, attack.least_likely_strength
    Source: Kurakin et al. 2017.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(least_likely_attack(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1))
    1 of 1 answered wrongly, median norm 0.1
    """
    if targeted is not None:
        raise ValueError("least_likely_attack chooses its targets itself: give targeted to fgsm or iterative_fgsm")
    with under_attack(model, x, y, ball_threat(eps, norm, bounds, levels)) as attacked:
        attacked.targets = attacked.clean_logits.argmin(1)
        candidates = climb(attacked, steps, _step_length(eps, steps, step))
        attacked.targets = None  # success is any wrong answer
        return attacked.result(candidates)


def _step_length(eps: int | float, steps: int, step: int | float | None) -> int | float:
    """The step that is given, or one with which the steps reach every corner of the ball and turn on the way."""
    return min(eps, 2.5 * eps / validate.count("steps", steps)) if step is None else step
