r"""Examples made on one classifier, shown to another."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, Classifier, under_attack
from lemmata.robustness.goals import cross_entropy_goal
from lemmata.robustness.norm_ball import per_example, steepest_direction
from lemmata.robustness.threat import ball_threat

__all__ = ["transfer_attack"]


@system("transfer_attack", title="Transfer attack from a surrogate", kind="function")
def transfer_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    *,
    surrogate: Classifier,
    steps: int = 20,
    momentum: int | float = 1.0,
) -> Attack:
    r"""Climb the loss of a surrogate with momentum, and ask the model for nothing but its answer to what is found.

    $$ g \leftarrow \mu g + \frac{\nabla_x\mathcal L_s}{\|\nabla_x\mathcal L_s\|_1}, \qquad
       x \leftarrow P\big(x + \eta\,d(g)\big), \qquad \eta = 2.5\,\epsilon/\text{steps} $$

    The ascent does not end where the surrogate is fooled: what lies far behind its boundary is what carries over.
    Nothing is drawn: `generator` is there as in all attacks.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack on the model, examples (batch, ...)

    Claims: attack.threat_knowledge
    Source: Dong et al. 2018 (momentum); Papernot et al. 2017 (surrogates).

    >>> model, surrogate = torch.nn.Linear(2, 2).eval(), torch.nn.Linear(2, 2).eval()
    >>> eye = {"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)}
    >>> _ = model.load_state_dict(eye), surrogate.load_state_dict({**eye, "bias": torch.tensor([0.1, 0.0])})
    >>> print(transfer_attack(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1, surrogate=surrogate))
    1 of 1 answered wrongly, median norm 0.1
    """
    threat = ball_threat(eps, norm, bounds, levels)
    validate.count("steps", steps)
    validate.number("momentum", momentum, least=0)
    step = 2.5 * eps / steps
    with under_attack(surrogate, x, y, threat, targeted) as lent:
        candidates, direction = lent.x.clone(), torch.zeros_like(lent.x)
        for _ in range(steps if eps > 0 else 0):
            _, gradient, _ = lent.gradient(candidates, cross_entropy_goal)
            size = gradient.flatten(1).abs().sum(1).clamp(min=torch.finfo(gradient.dtype).tiny)
            direction = momentum * direction + gradient / per_example(size, gradient)
            candidates = threat.project(lent.x, candidates + step * steepest_direction(direction, threat.norm))
        flags = lent.flags
    with under_attack(model, x, y, threat, targeted) as attacked:
        return attacked.result(candidates, *(f"of the surrogate: {flag}" for flag in flags))
