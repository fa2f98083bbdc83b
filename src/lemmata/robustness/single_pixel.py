r"""One pixel changes the answer: all of them tried, or a population of guesses that evolves."""

import itertools

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Attack, AttackedModel, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import margin_goal
from lemmata.robustness.threat import Threat

__all__ = ["single_pixel_attack"]

AT_ONCE = 8192  # images in one call of the model


@system("single_pixel_attack", title="Single-pixel attack", kind="function")
def single_pixel_attack(
    model: Classifier,
    x: Float[Tensor, "batch ..."],
    y: Int[Tensor, "batch"],
    eps: int | float = 1,
    norm: int | float = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
    targeted: Int[Tensor, "batch"] | int | None = None,
    levels: int | None = None,
    generator: torch.Generator | None = None,
    search: str = "exhaustive",
    population: int = 40,
    generations: int = 20,
) -> Attack:
    r"""Change one pixel, $\|\delta\|_0\le1$, so that the answer is wrong, by answers alone and no gradient.

    "exhaustive" tries each pixel at the least and the largest value of the box, for colours at all corners, in one
    batch an image: $2^{\text{channels}}$ times the pixels. "evolution" is differential evolution: `population` guesses
    (place, values), each challenged in every generation by $a+\tfrac12(b-c)$ of three that are drawn from all, which
    may be the same, and replaced where that has the larger margin; an image that is fooled asks no more. Images are
    (batch, channels, height, width), or vectors (batch, values), whose entries are the pixels. Of several successes
    the largest margin is returned.

    Shapes:
        x: (batch, ...), y: (batch,)    returns: Attack, examples (batch, ...)

    Claims: attack.single_pixel
    Source: Su, Vargas and Sakurai 2019.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> single_pixel_attack(model, torch.tensor([[0.6, 0.5]]), torch.tensor([0])).examples
    tensor([[0.0000, 0.5000]])
    """
    if norm != 0:
        raise ValueError(f"norm must be 0 for a single pixel, got {norm!r}")
    if not 0 <= eps <= 1:
        raise ValueError(f"eps must be 1, the number of pixels that may change, got {eps!r}")
    validate.one_of("search", search, ("exhaustive", "evolution"))
    validate.count("population", population, least=4)
    validate.count("generations", generations)
    threat = Threat(eps, 0, bounds, levels)
    if validate.tensor("x", x).ndim not in (2, 4):
        raise ValueError(f"x must be (batch, channels, height, width) or (batch, values), got {tuple(x.shape)}")
    with under_attack(model, x, y, threat, targeted) as attacked:
        candidates = attacked.x.clone()
        if search == "exhaustive":
            for row in attacked.rows:
                candidates[row] = _best_of_all(attacked, row)
        elif len(attacked.rows):
            _evolve_pixels(attacked, candidates, population, generations, fixed_generator(generator))
        return attacked.result(candidates)


def _pixel_margins(attacked: AttackedModel, images: Tensor, rows: Int[Tensor, "rows"]) -> Float[Tensor, "rows"]:
    found = []
    for some, of in zip(images.split(AT_ONCE), rows.split(AT_ONCE), strict=True):
        found.append(margin_goal(attacked.logits(some, of), attacked.y[of], attacked.targets_of(of)))
    return torch.cat(found)


def _with_pixel(
    images: Float[Tensor, "rows ..."], places: Int[Tensor, "rows"], values: Float[Tensor, "rows channels"]
) -> Float[Tensor, "rows ..."]:
    """Each image with the pixel at its place, counted line by line, set to its values."""
    channels = values.shape[1]
    flat = images.reshape(len(images), channels, -1)  # (rows, channels, pixels)
    return flat.scatter(2, places[:, None, None].expand(-1, channels, 1), values[:, :, None]).view_as(images)


def _pixels_and_channels(x: Tensor) -> tuple[int, int]:
    return (x.shape[2] * x.shape[3], x.shape[1]) if x.ndim == 4 else (x.shape[1], 1)


def _best_of_all(attacked: AttackedModel, row: Tensor) -> Float[Tensor, "..."]:
    pixels, channels = _pixels_and_channels(attacked.x)
    corners = torch.tensor(list(itertools.product(attacked.threat.bounds, repeat=channels)))
    values = corners.to(attacked.x).repeat(pixels, 1)  # (pixels * corners, channels)
    places = torch.arange(pixels, device=row.device).repeat_interleave(len(corners))
    tried = _with_pixel(attacked.x[row][None].expand(len(values), *attacked.x.shape[1:]), places, values)
    return tried[_pixel_margins(attacked, tried, row.expand(len(tried))).argmax()]


def _evolve_pixels(
    attacked: AttackedModel, candidates: Tensor, population: int, generations: int, chance: torch.Generator
) -> None:
    """Differential evolution of (place down, place right, values), all in [0, 1], for all images at once."""
    rows, x = attacked.rows, attacked.x
    height, width = (x.shape[2], x.shape[3]) if x.ndim == 4 else (1, x.shape[1])
    least, most = attacked.threat.bounds

    def drawn(*shape: int) -> Tensor:
        return torch.rand(shape, generator=chance, device=chance.device).to(x)

    def tried(genes: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Images (rows, population, ...) and their margins (rows, population)."""
        many = rows.repeat_interleave(population)
        flat = genes.flatten(0, 1)  # (rows * population, 2 + channels)
        down, right = ((flat[:, k] * n).long().clamp(max=n - 1) for k, n in ((0, height), (1, width)))
        images = _with_pixel(x[many], down * width + right, least + (most - least) * flat[:, 2:])
        images = attacked.threat.inside(x[many], images)
        shape = len(rows), population
        return images.view(*shape, *x.shape[1:]), _pixel_margins(attacked, images, many).view(shape)

    genes = drawn(len(rows), population, 2 + _pixels_and_channels(x)[1])
    images, margins = tried(genes, rows)
    for generation in range(generations + 1):
        best = margins.argmax(1)
        each = torch.arange(len(rows), device=rows.device)
        candidates[rows] = images[each, best]
        going = margins[each, best] <= 0
        rows, genes, images, margins = rows[going], genes[going], images[going], margins[going]
        if not len(rows) or generation == generations:
            break
        a, b, c = drawn(3, len(rows), population).argsort(2)[..., None].expand(-1, -1, -1, genes.shape[2])
        mixed = genes.gather(1, a) + 0.5 * (genes.gather(1, b) - genes.gather(1, c))
        mixed = torch.where((mixed < 0) | (mixed > 1), drawn(*mixed.shape), mixed)
        new_images, new_margins = tried(mixed, rows)
        better = new_margins > margins  # (rows, population)
        genes = torch.where(better[..., None], mixed, genes)
        images = torch.where(better.view(*better.shape, *[1] * (x.ndim - 1)), new_images, images)
        margins = torch.where(better, new_margins, margins)
