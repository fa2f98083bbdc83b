r"""DeepFool: the nearest boundary of the linearised classifier, again and again until the answer changes."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, under_attack
from lemmata.robustness.goals import margin_rounding
from lemmata.robustness.norm_ball import per_example, steepest_direction
from lemmata.robustness.threat import Threat
from lemmata.robustness.way_back import halved_back, possible

__all__ = ["deepfool"]


@system("deepfool", title="DeepFool", kind="function")
def deepfool(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float = math.inf,
    norm: int | float = 2,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    steps: int = 50,
    overshoot: int | float = 0.02,
    rivals: int = 10,
    halvings: int = 10,
) -> Attack:
    r"""A small perturbation that changes the answer: steps to the nearest boundary of the linearised classifier.

    $$ i^* = \arg\min_{i\ne y}\frac{f_y(x)-f_i(x)}{\|\nabla f_y-\nabla f_i\|_q}, \qquad
       \Delta\nu = \frac{f_y-f_{i^*}}{\|a\|_q}\,d_p(a), \quad a = \nabla f_{i^*}-\nabla f_y $$

    with the steepest direction $d_p$ of the norm, 2 or infinity, and its dual norm $q$; for $p=2$ the step is
    $(f_y-f_{i^*})\,a/\|a\|_2^2$, over the pixels that the box lets move. What is tried is
    $x+(1+\text{overshoot})\sum\Delta\nu$, cut to the box. What fools the classifier goes back towards x by `halvings`
    bisections, so that little remains of what the last step did too much. Only the `rivals` classes that look best for
    x are looked at; with `targeted` only that class. Success outside the ball of `eps` is none. Nothing is drawn.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.deepfool, attack.fixed_vs_minimal
    Source: Moosavi-Dezfooli, Fawzi and Frossard 2016.  Differs: pixels at the end of their range, and the way back.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(deepfool(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0])))  # sqrt(1/2) / 10
    1 of 1 answered wrongly, median norm 0.0707
    """
    threat = Threat(eps, norm, bounds, levels)
    if threat.norm not in (2, math.inf):
        raise ValueError(f"norm must be 2 or inf for DeepFool, got {norm!r}")
    validate.count("steps", steps)
    validate.number("overshoot", overshoot, least=0)
    validate.count("rivals", rivals)
    validate.count("halvings", halvings, least=0)
    with under_attack(model, x, y, threat, targeted) as attacked:
        return attacked.result(across_boundaries(attacked, steps, overshoot, rivals, halvings)[0])


def across_boundaries(
    attacked: AttackedModel, steps: int, overshoot: float, rivals: int, halvings: int
) -> tuple[Float[Tensor, "batch ..."], Int[Tensor, "found"]]:
    """The examples on the other side of a boundary, and the rows of those that are: others stand where steps ended."""
    candidates, rows = attacked.x.clone(), attacked.rows
    classes = _rival_classes(attacked, rivals)  # (batch, 1 + rivals), the own class first
    total = torch.zeros_like(attacked.x)
    for _ in range(steps):
        if not len(rows):
            break
        total[rows] += _step_to_boundary(attacked, candidates[rows], classes[rows], rows)
        total[rows] = (attacked.x[rows] + total[rows]).clamp(*attacked.threat.bounds) - attacked.x[rows]
        moved = attacked.x[rows] + (1 + overshoot) * total[rows]
        candidates[rows] = possible(attacked, moved, rows)
        rows = rows[~attacked.wrong(attacked.logits(candidates[rows], rows), rows)]
    if len(rows):  # where the linearised boundaries lead in a circle, or out of the box
        attacked.flags.add("steps that reached no boundary")
    found = attacked.rows[~torch.isin(attacked.rows, rows)]
    candidates[found] = halved_back(attacked, candidates[found], found, halvings)
    return candidates, found


def _rival_classes(attacked: AttackedModel, rivals: int) -> Int[Tensor, "batch few"]:
    own = attacked.y[:, None]
    if attacked.targets is not None:
        return torch.cat([own, attacked.targets[:, None]], 1)
    others = attacked.clean_logits.scatter(1, own, -math.inf)
    best = others.topk(min(rivals, others.shape[1] - 1), dim=1).indices
    return torch.cat([own, best], 1)


def _step_to_boundary(
    attacked: AttackedModel, images: Tensor, classes: Int[Tensor, "rows few"], rows: Int[Tensor, "rows"]
) -> Float[Tensor, "rows ..."]:
    """To the nearest of the boundaries between the own class and its rivals, were all logits affine.

    Pixels at the end of their range that would leave it stay out of the step: otherwise the box cuts a part of every
    step, and the boundary is approached for ever.

    A targeted answer that is already neither of the two classes still lies on one side of their boundary; there the
    target has to beat whichever class is largest, which then takes the place of the own one.
    """
    if attacked.targets is not None:
        logits = attacked.logits(images, rows).scatter(1, classes[:, 1:], -math.inf)
        classes = torch.cat([logits.argmax(1, keepdim=True), classes[:, 1:]], 1)
    logits, gradients = attacked.logit_gradients(images, classes, rows)  # (rows, few, ...)
    scores = logits.gather(1, classes)
    # An iterate, or x, may lie on the boundary itself: a step is never shorter than one across a small gap.
    smallest = (1e-4 * (logits.amax(1) - logits.amin(1))).maximum(2 * margin_rounding(logits).to(logits))
    gaps = (scores[:, :1] - scores[:, 1:]).maximum(smallest[:, None]).flatten()  # (rows * rivals,)
    towards = gradients[:, 1:] - gradients[:, :1]  # (rows, rivals, ...)
    least, most = attacked.threat.bounds
    stuck = ((images <= least)[:, None] & (towards < 0)) | ((images >= most)[:, None] & (towards > 0))
    towards = towards.masked_fill(stuck, 0).flatten(0, 1)  # (rows * rivals, ...)
    direction = steepest_direction(towards, attacked.threat.norm)
    slope = (towards * direction).flatten(1).sum(1)  # the dual norm of each difference
    lengths = torch.where(slope > 0, gaps / slope, math.inf).view(len(rows), -1)  # (rows, rivals)
    length, nearest = lengths.min(1)
    place = torch.arange(len(rows), device=rows.device) * lengths.shape[1] + nearest
    return per_example(torch.where(torch.isfinite(length), length, 0), images) * direction[place]
