r"""Carlini and Wagner's attack: the shortest perturbation in the 2-norm, by a penalty whose weight is searched."""

import math
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, under_attack
from lemmata.robustness.goals import margin_goal, margin_rounding
from lemmata.robustness.norm_ball import per_example
from lemmata.robustness.threat import Threat
from lemmata.robustness.way_back import halved_back, possible

__all__ = ["carlini_wagner"]

SHRINK = 1e-2  # tanh never reaches the ends of the box: images start this fraction nearer to its middle
BETAS = (0.9, 0.999)  # of Adam
SLOWER = 0.7  # of the learning rate from one search to the next, which begins nearer to its end
STALLED = 0.01  # a search goes on while its objective falls by this fraction


@system("carlini_wagner", title="Carlini-Wagner L2 attack", kind="function")
def carlini_wagner(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float = math.inf,
    norm: int | float = 2,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    searches: int = 5,
    steps: int = 50,
    lr: int | float = 0.1,
    c: int | float | None = None,
    confidence: int | float = 0.0,
    patience: int = 10,
    halvings: int = 8,
) -> Attack:
    r"""The smallest $\|\delta\|_2$ that changes the answer, by Adam on w and a search for c, each example by itself.

    $$ \min_w \|\delta\|_2^2 + c\,\max\{\kappa - m(x+\delta),\,0\}, \qquad x+\delta = \tfrac12(\tanh w+1) $$

    with the margin $m$ of `margin_goal`, positive once the answer is wrong (or the one wanted), and `confidence`
    $\kappa$. The first c is 1.5 times what an affine classifier needs at least, $2m/\|\nabla m\|_2^2$, unless it is
    given. It grows tenfold until an example succeeds; then the next one lies between what failed and what succeeded,
    and its search begins at the best example so far. A search ends after `steps`, or `patience` of them without
    progress; examples that are through all `searches` cost nothing more. The best of each goes back towards x by
    `halvings` bisections. Nothing is drawn.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.cw, attack.cw_constraint, attack.cw_tanh, attack.cw_defences
    Source: Carlini and Wagner 2017.  Differs: the first c, the warm starts and the bisections.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> attack = carlini_wagner(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]))
    >>> print(f"{attack.norms[0]:.3f}")  # sqrt(1/2) / 10
    0.071
    """
    threat = Threat(eps, norm, bounds, levels)
    if threat.norm != 2:
        raise ValueError(f"norm must be 2 for Carlini and Wagner's attack, got {norm!r}: use deepfool for inf")
    validate.count("searches", searches)
    validate.count("steps", steps)
    validate.positive("lr", lr)
    if c is not None:
        validate.positive("c", c)
    validate.number("confidence", confidence, least=0)
    validate.count("patience", patience)
    validate.count("halvings", halvings, least=0)
    with under_attack(model, x, y, threat, targeted) as attacked:
        best = attacked.x.clone()
        if len(attacked.rows):
            search = _search_start(attacked, c)
            while len(search.rows):
                _descend_once(attacked, search, lr, confidence)
                over = (search.step >= steps) | (search.stalled >= patience)
                if over.any():
                    _choose_next_weight(search, over, bounds)
                    done = search.number >= searches
                    best[search.rows[done]] = search.best[done]
                    search = search.of(~done)
        moved = (best != attacked.x).flatten(1).any(1)
        found = attacked.all_rows[moved]
        if len(found) < len(attacked.rows):  # the descent ended where the penalty is least but not zero
            attacked.flags.add("a penalty that no weight brought to zero")
        best[found] = halved_back(attacked, best[found], found, halvings if confidence == 0 else 0)
        return attacked.result(best)


def into_box(w: Float[Tensor, "*shape"], bounds: tuple[float, float] = (0.0, 1.0)) -> Float[Tensor, "*shape"]:
    r"""$a+\tfrac{b-a}2(\tanh w+1)$, in the box whatever w is."""
    least, most = bounds
    return (least + (most - least) * (w.tanh() + 1) / 2).clamp(least, most)


def from_box(
    x: Float[Tensor, "*shape"], bounds: tuple[float, float] = (0.0, 1.0), shrink: float = SHRINK
) -> Float[Tensor, "*shape"]:
    """The inverse of `into_box`, of images brought nearer to the middle of the box by the fraction `shrink`."""
    least, most = bounds
    return torch.atanh((2 * (x - least) / (most - least) - 1) * (1 - shrink))


@dataclass
class _Search:
    """Where each example that is still searched for stands: one entry, or one image, for each."""

    rows: Int[Tensor, "rows"]
    x: Float[Tensor, "rows ..."]
    w: Float[Tensor, "rows ..."]
    first: Float[Tensor, "rows ..."]
    second: Float[Tensor, "rows ..."]
    best: Float[Tensor, "rows ..."]
    best_square: Float[Tensor, "rows"]
    c: Float[Tensor, "rows"]
    failed: Float[Tensor, "rows"]  # the largest c that was too small, 0 for none
    enough: Float[Tensor, "rows"]  # the smallest c that was not, infinity for none
    least: Float[Tensor, "rows"]  # value of the objective in this search
    stalled: Float[Tensor, "rows"]
    step: Float[Tensor, "rows"]
    number: Float[Tensor, "rows"]
    succeeded: Bool[Tensor, "rows"]

    def of(self, kept: Bool[Tensor, "rows"]) -> "_Search":
        return _Search(*(getattr(self, each.name)[kept] for each in fields(self)))


def _search_start(attacked: AttackedModel, c: float | None) -> _Search:
    rows = attacked.rows
    x = attacked.x[rows]
    zero = x.new_zeros(len(rows))
    weight = 1.5 * _least_weight(attacked, x, rows) if c is None else zero + c
    w, still = from_box(x, attacked.threat.bounds), torch.zeros_like(x)
    endless = zero + math.inf
    return _Search(
        rows, x, w, still, still, x.clone(), endless, weight, zero, endless, endless, zero, zero, zero, zero > 0
    )


def _least_weight(attacked: AttackedModel, x: Tensor, rows: Tensor) -> Float[Tensor, "rows"]:
    """The smallest c at which the penalty leads an affine classifier across its boundary, 2m / |gradient|^2."""
    margin, gradient, logits = attacked.gradient(x, margin_goal, rows)
    gap = (-margin.double()).maximum(2 * margin_rounding(logits))  # above zero on the boundary itself, too
    least, most = attacked.threat.bounds
    stuck = ((x <= least) & (gradient < 0)) | ((x >= most) & (gradient > 0))
    slope = gradient.masked_fill(stuck, 0).flatten(1).square().sum(1)
    return torch.where(slope > 0, 2 * gap / slope, 1.0).to(x.dtype)


def _descend_once(attacked: AttackedModel, search: _Search, lr: float, confidence: float) -> None:
    """One step of Adam on each example's w, after a look at whether its image is the best so far."""
    bounds, rows = attacked.threat.bounds, search.rows
    images = possible(attacked, into_box(search.w, bounds), rows)  # on a grid the gradient passes as if there were none
    margin, gradient, logits = attacked.gradient(images, margin_goal, rows)
    delta = images - search.x
    square = delta.flatten(1).square().sum(1)  # (rows,)
    fooled = attacked.wrong(logits, rows) & (margin >= confidence)
    better = fooled & (square < search.best_square)
    search.best = torch.where(per_example(better, images), images, search.best)
    search.best_square = torch.where(better, square, search.best_square)
    search.succeeded = search.succeeded | fooled
    objective = square + search.c * (confidence - margin).clamp(min=0)
    falls = objective < (1 - STALLED) * search.least
    search.least = torch.where(falls, objective, search.least)
    search.stalled = torch.where(falls, 0, search.stalled + 1)
    weight = search.c * ~fooled  # at a tie, too, where the penalty has its kink
    slope = 2 * delta - per_example(weight, images) * gradient
    slope = slope * (1 - search.w.tanh().square()) * (bounds[1] - bounds[0]) / 2
    search.step = search.step + 1
    search.first = torch.lerp(search.first, slope, 1 - BETAS[0])
    search.second = torch.lerp(search.second, slope * slope, 1 - BETAS[1])
    mean, scale = (
        moment / per_example(1 - beta ** search.step.double(), images).to(moment)  # 0.999 is 1 in half precision
        for moment, beta in zip((search.first, search.second), BETAS, strict=True)
    )
    rate = per_example(lr * SLOWER**search.number, images)
    search.w = search.w - rate * mean / (scale.sqrt() + 1e-12)


def _choose_next_weight(search: _Search, over: Bool[Tensor, "rows"], bounds: tuple[float, float]) -> None:
    """Where a search is over: the next c, and a fresh start at the best example so far."""
    search.enough = torch.where(over & search.succeeded, search.c, search.enough)
    search.failed = torch.where(over & ~search.succeeded, search.c, search.failed)
    between = torch.where(search.failed > 0, (search.failed * search.enough).sqrt(), search.enough / 2)
    chosen = torch.where(search.enough < math.inf, between, 10 * search.c)
    search.c = torch.where(over, chosen, search.c)
    afresh = per_example(over, search.x)
    search.w = torch.where(afresh, from_box(search.best, bounds), search.w)
    search.first, search.second = search.first.masked_fill(afresh, 0), search.second.masked_fill(afresh, 0)
    search.step, search.stalled = search.step.masked_fill(over, 0), search.stalled.masked_fill(over, 0)
    search.least = search.least.masked_fill(over, math.inf)
    search.succeeded = search.succeeded & ~over
    search.number = search.number + over
