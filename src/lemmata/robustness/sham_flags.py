r"""Signs that a classifier only hides from attacks: failure of an attack that cannot work shows no robustness."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.adaptive_gradient import apgd
from lemmata.robustness.attacked_model import AttackedModel, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import cross_entropy_goal, dlr_goal, margin_goal
from lemmata.robustness.norm_ball import steepest_direction
from lemmata.robustness.square_search import square_attack
from lemmata.robustness.threat import ball_threat
from lemmata.robustness.transfer import transfer_attack

__all__ = ["sham_robustness"]

FEW = 0.1  # of the examples: what is rarer may be chance
NEAR = 0.1  # of the radius: a step so short that the gradient must still say what it changes


@system("sham_robustness", title="Signs of sham robustness", kind="function")
def sham_robustness(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    generator: torch.Generator | None = None,
    steps: int = 20,
    queries: int = 200,
    surrogate: Classifier | None = None,
) -> tuple[str, ...]:
    r"""What is suspicious about a classifier's answers and gradients on some examples; nothing for an honest one.

    - softmax as logits: the outputs are probabilities, of which a second softmax leaves hardly a gradient
    - random answers: the same image is answered otherwise when it is asked again
    - zero gradients: exactly zero for more than one example in ten
    - shattered gradients: a tenth of the way along the gradient, the margin does not change by
      $\tfrac{\epsilon}{10}\|g\|_q$, by a factor of two, for most of the examples
    - black box beats white box: random search or a surrogate fools more than one in ten that no APGD does
    - more steps still gain: four times the steps of APGD fool more than one in ten more

    Shapes:
        x: (batch, ...), y: (batch,)    returns: one sentence a sign

    Source: Athalye et al. 2018; Carlini et al. 2019.

    >>> honest = torch.nn.Linear(2, 2).eval()
    >>> x = torch.rand(40, 2, generator=torch.Generator().manual_seed(0))
    >>> y = honest(x).argmax(1)
    >>> sham_robustness(honest, x, y, eps=0.1)
    ()
    >>> sham_robustness(lambda x: honest(x).softmax(1), x, y, eps=0.1)
    ('softmax as logits: all outputs are probabilities',)
    """
    threat = ball_threat(eps, norm, bounds, None)
    validate.number("eps", eps, above=0)
    with under_attack(model, x, y, threat) as lent:
        flags = [*_answer_flags(lent), *_gradient_flags(lent)]
    own = fixed_generator(generator)
    found = apgd(model, x, y, eps, norm, bounds, generator=own, steps=steps)
    longer = apgd(model, x, y, eps, norm, bounds, generator=own, steps=4 * steps).success
    ratio = apgd(model, x, y, eps, norm, bounds, generator=own, steps=steps, goal=dlr_goal).success
    white = found.success | longer | ratio
    others = {"random search": square_attack(model, x, y, eps, norm, bounds, generator=own, queries=queries)}
    if surrogate is not None:
        others["a surrogate"] = transfer_attack(model, x, y, eps, norm, bounds, surrogate=surrogate)
    for what, other in others.items():
        if (missed := int((other.success & ~white).sum())) > FEW * len(x):
            flags.append(f"black box beats white box: {what} fools {missed} examples that APGD does not")
    if (gained := int(longer.sum() - found.success.sum())) > FEW * len(x):
        flags.append(f"more steps still gain: {4 * steps} instead of {steps} fool {gained} examples more")
    return tuple(flags)


def _answer_flags(lent: AttackedModel) -> list[str]:
    logits = lent.clean_logits.double()
    flags = []
    if bool((logits >= 0).all()) and bool(((logits.sum(1) - 1).abs() < 1e-3).all()):
        flags.append("softmax as logits: all outputs are probabilities")
    again = lent.logits(lent.x).double()
    # Sums in another order differ by rounding, where a device does not fix it.
    if bool(((again - logits).abs().amax(1) > 1e-3 * logits.abs().amax(1)).any()):
        flags.append("random answers: the same image is answered otherwise when it is asked again")
    return flags


def _gradient_flags(lent: AttackedModel) -> list[str]:
    if not len(lent.rows):
        return []
    x, rows, eps = lent.x[lent.rows], lent.rows, lent.threat.eps
    _, slope, _ = lent.gradient(x, cross_entropy_goal, rows)
    zero = (slope.flatten(1) == 0).all(1)
    margin, gradient, _ = lent.gradient(x, margin_goal, rows)
    step = NEAR * eps * steepest_direction(gradient, lent.threat.norm)
    ahead = margin_goal(lent.logits(x + step, rows), lent.y[rows]).double()
    expected = (step * gradient).flatten(1).sum(1).double()
    moved = (ahead - margin.double()) / expected.clamp(min=torch.finfo(torch.float64).tiny)
    seen = expected > 1e-3 * margin.abs()  # else rounding of the logits decides
    flags = []
    if (count := int(zero.sum())) > FEW * len(rows):
        flags.append(f"zero gradients: exactly zero for {count} of {len(rows)} examples")
    if int(seen.sum()) and float(((moved > 0.5) & (moved < 2))[seen].double().mean()) < 0.5:
        flags.append("shattered gradients: a short step along the gradient does not change the answers as it says")
    return flags
