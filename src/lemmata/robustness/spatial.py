r"""The worst rotation and shift: perturbations that are small for the eye and large in every norm."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, Classifier, under_attack
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.norm_ball import per_example
from lemmata.robustness.threat import Threat
from lemmata.tricks.augmentation import rotated

__all__ = ["spatial_attack"]


@system("spatial_attack", title="Worst rotation and shift", kind="function")
def spatial_attack(
    model: Classifier,
    x: Float[Tensor, "batch channels height width"],
    y: Int[Tensor, "batch"],
    eps: int | float = math.inf,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    degrees: int | float = 30.0,
    pixels: int = 1,
    angles: int = 13,
) -> Attack:
    r"""Turn each image by up to `degrees` and move it by up to `pixels` whole pixels each way, by whatever is worst.

    $$ \max_{|\alpha|\le\alpha_0,\ |s_1|,|s_2|\le s_0} m\big(\tau_{s}\,\rho_\alpha\,x\big) $$

    The set has three dimensions, so the grid of `angles` equal steps and all shifts is tried whole:
    angles times $(2s_0+1)^2$ answers an image, and no gradient. What comes in at the border is the least value of the
    box. A finite `eps` admits only results that also lie in that ball. Nothing is drawn.

    Shapes:
        x: (batch, channels, height, width), y: (batch,)    returns: Attack, examples like x

    Claims: attack.other_perturbations
    Source: Engstrom et al. 2019.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3, 2)).eval()
    >>> _ = model[1].load_state_dict({"weight": torch.tensor([[0.0, 1, 0], [0, 0, 1]]), "bias": torch.zeros(2)})
    >>> attack = spatial_attack(model, torch.tensor([[[[0.0, 1.0, 0.0]]]]), torch.tensor([0]), degrees=0)
    >>> attack.examples.round(decimals=4)
    tensor([[[[0., 0., 1.]]]])
    """
    threat = Threat(eps, norm, bounds, levels)
    validate.number("degrees", degrees, least=0, most=180)
    validate.count("pixels", pixels, least=0)
    validate.count("angles", angles)
    if validate.tensor("x", x).ndim != 4:
        raise ValueError(f"x must be (batch, channels, height, width), got shape {tuple(x.shape)}")
    with under_attack(model, x, y, threat, targeted) as attacked:
        candidates, rows = attacked.x.clone(), attacked.rows
        best = torch.full((len(rows),), -math.inf, dtype=x.dtype, device=x.device)
        tried = turned_and_shifted(attacked.x[rows], degrees, pixels, angles, bounds[0]) if len(rows) else ()
        for images in tried:
            images = _to_levels(images.clamp(*bounds), threat)
            margin = margin_goal(attacked.logits(images, rows), attacked.y[rows], attacked.targets_of(rows))
            better = (margin > best) & threat.admits(attacked.x[rows], images)
            best = torch.where(better, margin, best)
            candidates[rows] = torch.where(per_example(better, images), images, candidates[rows])
        return attacked.result(candidates)


def turned_and_shifted(
    x: Tensor, degrees: int | float, pixels: int, angles: int, fill: int | float = 0.0
) -> list[Tensor]:
    """All images of the grid: each angle from -degrees to degrees, with each shift."""
    height, width = x.shape[-2:]
    found = []
    for angle in torch.linspace(-degrees, degrees, angles) if angles > 1 else torch.zeros(1):
        turned = rotated(x - fill, torch.full((len(x),), math.radians(float(angle)), device=x.device)) + fill
        wide = functional.pad(turned, (pixels,) * 4, value=fill)
        for down in range(2 * pixels + 1):
            found += [wide[..., down : down + height, right : right + width] for right in range(2 * pixels + 1)]
    return found


def _to_levels(images: Tensor, threat: Threat) -> Tensor:
    """A turned image is rounded to the nearest level, whatever x was: here nearer to x is not nearer to the set."""
    if threat.levels is None:
        return images
    least, most = threat.bounds
    unit = (most - least) / (threat.levels - 1)
    return least + ((images - least) / unit).round() * unit
