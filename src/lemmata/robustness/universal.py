r"""One perturbation for all images."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import cross_entropy_goal
from lemmata.robustness.norm_ball import norm_of, per_example, project_ball, steepest_direction
from lemmata.robustness.threat import Threat

__all__ = ["UniversalAttack", "universal_attack"]

ENOUGH = 5.0  # nats: without a limit the worst images alone would be heard, at 0 those that waver


@dataclass(frozen=True, kw_only=True)
class UniversalAttack(Attack):
    """What one perturbation did to the images that it was made from."""

    perturbation: Float[Tensor, "..."]
    """Its shape is that of one image: `(x + perturbation).clamp(0, 1)` tries it on others."""


@system("universal_attack", title="Universal adversarial perturbation", kind="function")
def universal_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    epochs: int = 30,
    batch_size: int = 100,
) -> UniversalAttack:
    r"""One $\delta$ with $\|\delta\|_p\le\epsilon$ that changes the answers to as many images as possible.

    $$ \delta \leftarrow \mathcal P_\epsilon\Big[\delta + \alpha_t\,
       d_p\Big(\sum_{i\in B}\nabla_\delta\min\{\ell_i(x_i+\delta), 5\}\Big)\Big] $$

    with the cross-entropy $\ell_i$, of which an image that is fooled soundly, by 5 nats, asks for no more.
    Batches are drawn without repetition in each epoch, and $\alpha_t$ falls from a quarter of eps to zero. For the
    fraction of images whose answer changes, right or wrong, give the model's own answers as y. The returned examples
    are $x_i+\delta$ inside box and grid; `perturbation` is $\delta$.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: UniversalAttack, examples (batch, ...), perturbation (...)

    Claims: attack.universal, attack.universal_transfer
    Source: Moosavi-Dezfooli et al. 2017.  Differs: gradient ascent on batches, of Shafahi et al. 2020.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> attack = universal_attack(model, torch.tensor([[0.6, 0.5], [0.5, 0.3]]), torch.tensor([0, 0]), eps=0.2)
    >>> attack.success, attack.perturbation
    (tensor([True, True]), tensor([-0.2000,  0.2000]))
    """
    threat = Threat(eps, norm, bounds, levels)
    if threat.eps == math.inf:
        raise ValueError("eps must be finite for a universal perturbation: give the radius of its ball")
    validate.count("epochs", epochs)
    validate.count("batch_size", batch_size)
    norm, chance = norm_of(norm), fixed_generator(generator)
    with under_attack(model, x, y, threat, targeted) as attacked:
        rows, perturbation = attacked.rows, torch.zeros_like(attacked.x[:1])  # (1, ...)
        updates = epochs * math.ceil(len(rows) / batch_size)
        done = 0
        for _ in range(epochs if len(rows) else 0):
            order = torch.randperm(len(rows), generator=chance, device=chance.device).to(rows.device)
            for batch in rows[order].split(batch_size):
                images = (attacked.x[batch] + perturbation).clamp(*bounds)
                loss, gradient, _ = attacked.gradient(images, cross_entropy_goal, batch)
                gradient = gradient * per_example(loss < ENOUGH, gradient)
                step = eps / 4 * (1 - done / updates)
                perturbation = perturbation + step * steepest_direction(gradient.sum(0, keepdim=True), norm)
                perturbation = project_ball(perturbation, eps, norm)
                done += 1
        found = attacked.result(attacked.x + perturbation)
        return UniversalAttack(**vars(found), perturbation=perturbation[0])
