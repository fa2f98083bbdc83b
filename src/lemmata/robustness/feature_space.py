r"""Attacks that keep the features of a fixed network near, not the pixels."""

import contextlib
import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, under_attack
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.norm_ball import per_example, steepest_direction
from lemmata.robustness.threat import Threat
from lemmata.robustness.way_back import possible
from lemmata.train.as_found import kept_as_found

__all__ = ["feature_attack"]

TRIES = 5  # of the way back into the set: secants and halves in turn


@system("feature_attack", title="Feature-space attack", kind="function")
def feature_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = 2,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    features: Callable[[Tensor], Tensor] = torch.positive,
    steps: int = 100,
    lr: int | float = 0.1,
) -> Attack:
    r"""The largest margin of a wrong answer among images whose features are near those of x.

    $$ \max_\delta m(x+\delta)\quad\text{s.t. } \|\varphi(x+\delta)-\varphi(x)\|_2\le\epsilon,\ a\le x+\delta\le b $$

    by ascent on $m-c\,(\|\varphi(x+\delta)-\varphi(x)\|_2-\epsilon)_+$, both terms with gradients of length one, while
    c grows from 1 to 10 and the step falls from `lr` to zero. What is outside the set goes back along its segment to x
    until it is inside. `norms` are those of the pixels, in the `norm` of all attacks, and nothing bounds them.

    Shapes:
        x: (batch, ...), y: (batch,); features: (batch, ...) to (batch, ...)    returns: Attack, examples (batch, ...)

    Claims: attack.feature_space
    Source: Laidlaw, Singla and Feizi 2021 (perceptual attacks).

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> sum_alone = lambda images: images.sum(1, keepdim=True)  # blind to what moves from one value to the other
    >>> attack = feature_attack(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.01, features=sum_alone)
    >>> bool(attack.success), abs(float(attack.examples.sum()) - 1.1) <= 0.0101
    (True, True)
    """
    validate.number("eps", eps, least=0)
    validate.count("steps", steps)
    validate.positive("lr", lr)
    if not callable(features):
        raise TypeError(f"features must be a function of images, got {type(features).__name__}")
    if isinstance(features, nn.Module) and features.training:
        raise ValueError("features is in training mode: call features.eval() first")
    kept = kept_as_found(features) if isinstance(features, nn.Module) else contextlib.nullcontext()
    with kept, under_attack(model, x, y, Threat(math.inf, norm, bounds, levels), targeted) as attacked:
        rows, candidates = attacked.rows, attacked.x.clone()
        if len(rows):
            candidates[rows] = _climb_loss(attacked, features, eps, steps, lr, rows)
        return attacked.result(candidates)


def _climb_loss(
    attacked: AttackedModel,
    features: Callable[[Tensor], Tensor],
    eps: int | float,
    steps: int,
    lr: int | float,
    rows: Int[Tensor, "rows"],
) -> Float[Tensor, "rows ..."]:
    """The best image of each row that lies in the set."""
    x = attacked.x[rows]
    with torch.no_grad():
        own = features(x).flatten(1)  # (rows, features)

    def distances(images: Tensor) -> Float[Tensor, "rows"]:
        return torch.linalg.vector_norm(features(images).flatten(1).double() - own.double(), dim=1)

    images, best, best_margin = x, x.clone(), torch.full((len(x),), -math.inf, dtype=x.dtype, device=x.device)
    for step in range(steps + 1):
        leaf = images.detach().requires_grad_()
        with torch.enable_grad():
            far = distances(leaf)  # (rows,)
            (apart,) = torch.autograd.grad(far.sum(), leaf)
            outside = far > eps
        with torch.no_grad():
            inside = _return_inside(attacked, images, rows, distances, eps)
        margin = margin_goal(attacked.logits(inside, rows), attacked.y[rows], attacked.targets_of(rows))
        better = margin > best_margin
        best_margin = torch.where(better, margin, best_margin)
        best = torch.where(per_example(better, x), inside, best)
        if step == steps:
            break
        _, gradient, _ = attacked.gradient(images, margin_goal, rows)
        weight = 10 ** (step / steps) * outside.to(x.dtype)
        direction = steepest_direction(gradient, 2) - per_example(weight, x) * steepest_direction(apart, 2)
        images = (images + lr * (1 - step / steps) * direction).clamp(*attacked.threat.bounds)
    return best


def _return_inside(
    attacked: AttackedModel, images: Tensor, rows: Tensor, distances: Callable[[Tensor], Tensor], eps: int | float
) -> Float[Tensor, "rows ..."]:
    """Back towards x along the segment as far as the features demand; on the grid where there is one.

    Secants find the place at once where the features are linear; halves of the rest serve where they are bent.
    """
    x = attacked.x[rows]
    near, far = distances(x), distances(possible(attacked, images, rows))  # in float64
    least, most = torch.zeros_like(near), torch.ones_like(near)  # fractions of the segment
    outside = far > eps
    for turn in range(TRIES):
        secant = least + (most - least) * (eps - near) / (far - near) * (1 - 1e-6)
        middle = (least + most) / 2 if turn % 2 else torch.where(outside, secant, 1)
        tried = possible(attacked, x + per_example(middle, x).to(x.dtype) * (images - x), rows)
        distance = distances(tried)
        fits = distance <= eps
        least, near = torch.where(fits, middle, least), torch.where(fits, distance, near)
        most, far = torch.where(fits, most, middle), torch.where(fits, far, distance)
    fraction = torch.where(outside, least, 1).to(x.dtype)
    return possible(attacked, x + per_example(fraction, x) * (images - x), rows)
