r"""Random search by squares: an attack that sees scores and nothing else."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.norm_ball import per_example
from lemmata.robustness.threat import ball_threat

__all__ = ["square_attack"]

HALVINGS = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # of 10,000 queries, where the area of squares halves


@system("square_attack", title="Square attack", kind="function")
def square_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    queries: int = 1000,
    area: float = 0.8,
) -> Attack:
    r"""Change a random square; keep the change where the margin of the true class shrinks.

    $$ \delta' = \delta + \text{square},\quad \|\delta'\|_p\le\epsilon; \qquad
       \delta\leftarrow\delta' \iff Z_y - \max_{i\ne y}Z_i \text{ is smaller at } x + \delta' $$

    In the maximum norm a square is $\pm\epsilon$ in each channel, and the start vertical stripes; in the others the
    norm of one square moves into a peak in another. Squares begin with the fraction `area` of the image and shrink.
    No gradient is asked, so none can be hidden. Numbers without height and width are a row, and squares its segments.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Source: Andriushchenko et al. 2020.  Differs: the 1- and 2-norm have the same peaks, of which one half is negative.

    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> print(square_attack(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0]), eps=0.1))
    1 of 1 answered wrongly, median norm 0.1
    """
    threat = ball_threat(eps, norm, bounds, levels)
    validate.count("queries", queries)
    validate.fraction("area", area)
    drawn = fixed_generator(generator)
    with under_attack(model, x, y, threat, targeted) as attacked:
        if eps == 0 or not len(attacked.rows):
            return attacked.result(attacked.x)
        return attacked.result(_Search(attacked, queries, area, drawn).run())


class _Search:
    """The perturbations of all examples that are not yet answered wrongly."""

    def __init__(self, attacked: AttackedModel, queries: int, area: float, generator: torch.Generator):
        self.attacked, self.threat, self.queries, self.area = attacked, attacked.threat, queries, area
        self.generator = generator
        self.device = attacked.x.device
        self.candidates = attacked.x.clone()

    def run(self) -> Float[Tensor, "batch ..."]:
        self.rows = self.attacked.rows
        pictures = _as_pictures(self.attacked.x[self.rows])  # (rows, channels, height, width)
        self.delta = self.start(pictures)
        self.value = torch.full((len(self.rows),), -math.inf, device=self.device, dtype=pictures.dtype)
        self.keep_better(self.delta)
        for query in range(1, self.queries):
            if not len(self.rows):
                break
            self.keep_better(self.proposal(self.side(query)))
        return self.candidates

    def keep_better(self, delta: Float[Tensor, "rows channels height width"]) -> None:
        """Ask for the answers to these perturbations; those that raise the goal stay, finished examples leave."""
        x = self.attacked.x[self.rows]
        images = self.threat.project(x, x + delta.view_as(x))
        logits = self.attacked.logits(self.threat.shown(x, images), self.rows)
        goal = margin_goal(logits, self.attacked.y[self.rows], self.attacked.targets_of(self.rows))
        better = goal > self.value
        self.delta = torch.where(per_example(better, delta), (images - x).view_as(delta), self.delta)
        self.value = torch.where(better, goal.to(self.value), self.value)
        self.candidates[self.rows] = torch.where(per_example(better, x), images, self.candidates[self.rows])
        going = ~self.attacked.wrong(logits, self.rows)
        if not going.all():
            self.rows, self.delta, self.value = self.rows[going], self.delta[going], self.value[going]

    def side(self, query: int) -> tuple[int, int]:
        """Height and width of the squares at a query: their area halves ever more rarely."""
        done = 10_000 * query / self.queries
        fraction = self.area / 2 ** sum(done > place for place in HALVINGS)
        height, width = self.delta.shape[2:]
        if height == 1:
            return 1, min(width, max(1, round(fraction * width)))
        long = max(1, round(math.sqrt(fraction * height * width)))
        return min(height, long), min(width, long)

    def start(self, pictures: Tensor) -> Tensor:
        if self.threat.norm == math.inf:
            stripes = self.signs(len(pictures), pictures.shape[1], 1, pictures.shape[3])
            return (self.threat.eps * stripes).to(pictures).expand_as(pictures)
        height, width = pictures.shape[2:]
        side = (max(1, height // 5), max(1, width // 5))
        peaks = torch.zeros_like(pictures)
        for top in range(0, height, side[0]):
            for left in range(0, width, side[1]):
                corner = torch.tensor([[top, left]], device=self.device).expand(len(pictures), 2)
                peaks += self.peak(pictures, corner, side)
        return peaks * per_example(self.threat.eps / self.norms(peaks).clamp(min=1e-12), peaks)

    def proposal(self, side: tuple[int, int]) -> Float[Tensor, "rows channels height width"]:
        delta = self.delta
        corner = self.corners(side)
        inside = self.square(delta, corner, side)
        if self.threat.norm == math.inf:
            signs = self.threat.eps * self.signs(len(delta), delta.shape[1], 1, 1)
            return torch.where(inside, signs.to(delta), delta)
        emptied = inside | self.square(delta, self.corners(side), side)
        rest = torch.where(emptied, 0.0, delta)
        p = self.threat.norm
        left = (self.threat.eps**p - self.norms(rest) ** p).clamp(min=0) ** (1 / p)  # (rows,)
        there = torch.where(inside, delta, 0.0)
        peak = self.peak(delta, corner, side)
        peak = peak / per_example(self.norms(peak).clamp(min=1e-12), peak)
        peak = peak + there / per_example(self.norms(there).clamp(min=1e-12), there)
        return rest + peak * per_example(left / self.norms(peak).clamp(min=1e-12), peak)

    def corners(self, side: tuple[int, int]) -> Int[Tensor, "rows 2"]:
        room = torch.tensor(self.delta.shape[2:]) - torch.tensor(side) + 1
        share = torch.rand(len(self.delta), 2, generator=self.generator, device=self.generator.device)
        return (share.to(self.device) * room.to(self.device)).long()

    def square(self, like: Tensor, corner: Tensor, side: tuple[int, int]) -> Tensor:
        """Whether each pixel lies in the square with this upper left corner, (rows, 1, height, width)."""
        down, across = self.places(like, corner)
        return (down >= 0) & (down < side[0]) & (across >= 0) & (across < side[1])

    def peak(self, like: Tensor, corner: Tensor, side: tuple[int, int]) -> Tensor:
        """Highest in the middle of the square and falling outwards; one half is negative, the sign random."""
        down, across = self.places(like, corner)
        down, across = down - (side[0] - 1) / 2, across - (side[1] - 1) / 2
        height = 1 / (1 + torch.maximum(down.abs(), across.abs())) ** 2
        lying = self.signs(len(like), 1, 1, 1) > 0
        half = torch.where(lying, down, across)
        height = torch.where(half > 0, -height, height)
        return torch.where(self.square(like, corner, side), height, 0.0) * self.signs(*like.shape[:2], 1, 1).to(like)

    def places(self, like: Tensor, corner: Tensor) -> tuple[Tensor, Tensor]:
        """Row and column of each pixel, counted from the corners."""
        height, width = like.shape[2:]
        down = torch.arange(height, device=self.device).view(1, 1, -1, 1) - corner[:, 0].view(-1, 1, 1, 1)
        across = torch.arange(width, device=self.device).view(1, 1, 1, -1) - corner[:, 1].view(-1, 1, 1, 1)
        return down, across

    def norms(self, delta: Tensor) -> Float[Tensor, "rows"]:
        return torch.linalg.vector_norm(delta.flatten(1), ord=self.threat.norm, dim=1)

    def signs(self, *shape: int) -> Tensor:
        drawn = torch.randint(2, shape, generator=self.generator, device=self.generator.device)
        return (2 * drawn - 1).to(self.device)


def _as_pictures(x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch channels height width"]:
    if x.ndim == 4:
        return x
    return x[:, None] if x.ndim == 3 else x.flatten(1)[:, None, None]
