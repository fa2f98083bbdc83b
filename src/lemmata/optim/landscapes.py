r"""Functions of the plane on which optimisers are watched, each with its minima and what is known of its curvature."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.figure import Figure, Heat, Line, Points
from lemmata.marks import system

__all__ = ["LANDSCAPES", "Landscape", "landscape"]

BANDS = 14  # steps of colour between the lowest and the highest value that is shown


@dataclass(frozen=True)
class Landscape:
    r"""A function of the plane, the window in which it is looked at, and its minima.

    `smoothness` is the Lipschitz constant of its gradient where there is one for the whole plane. Beside a minimum
    the curvature decides: `limit(k)` is the longest step of gradient descent that does not leave minimum `k`.
    """

    name: str
    title: str
    function: Callable[[Tensor], Tensor]
    window: tuple[float, float, float, float]  # left, right, bottom, top
    start: tuple[float, float]
    minima: tuple[tuple[float, float], ...] = ()
    saddles: tuple[tuple[float, float], ...] = ()
    smoothness: float = math.inf

    def __call__(self, x: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
        return self.function(validate.last_axis("x", x, 2, "coordinate"))

    def hessian(self, x: Float[Tensor, "2"]) -> Float[Tensor, "2 2"]:
        """The matrix of second derivatives at one point."""
        return torch.func.hessian(self.function)(x)

    def limit(self, minimum: int = 0) -> float:
        r"""$2/\lambda_{\max}$ of the Hessian at a minimum; infinite where there is none or it is flat."""
        if not self.minima:
            return math.inf
        place = torch.tensor(self.minima[minimum], dtype=torch.float64)
        largest = float(torch.linalg.eigvalsh(self.hessian(place))[-1])
        return 2 / largest if largest > 0 else math.inf

    def grid(self, columns: int = 61) -> tuple[Tensor, Tensor, Tensor]:
        """Places across and upwards, and the values there, rows upwards: (columns,), (rows,), (rows, columns)."""
        left, right, bottom, top = self.window
        rows = max(2, round(columns * (top - bottom) / (right - left)))
        across = torch.linspace(left, right, columns, dtype=torch.float64)
        up = torch.linspace(bottom, top, rows, dtype=torch.float64)
        return across, up, self(torch.stack(torch.meshgrid(across, up, indexing="xy"), -1))

    def figure(self, paths: Mapping[str, Float[Tensor, "steps 2"]] | None = None, columns: int = 61) -> Figure:
        """The landscape as bands of equal height, and paths on it as far as they stay in the window."""
        across, up, values = self.grid(columns)
        left, right, bottom, top = self.window
        marks: list = [Heat(banded(values), across, up)]
        for label, path in (paths or {}).items():
            inside = (path[:, 0] >= left) & (path[:, 0] <= right) & (path[:, 1] >= bottom) & (path[:, 1] <= top)
            seen = path[: int(inside.int().cumprod(0).sum())]
            marks.append(Line(seen[:, 0], seen[:, 1], label))
        if self.minima:
            marks.append(Points([x for x, _ in self.minima], [y for _, y in self.minima], "minimum"))
        return Figure(self.title, "x", "y", marks)


def banded(values: Tensor, bands: int = BANDS) -> Tensor:
    """Each value as the number of its band, from 0 to 1: as many of the values in one band as in any other."""
    order = values.flatten().argsort().argsort().reshape(values.shape).double() / max(1, values.numel() - 1)
    return (order * bands).floor().clamp(max=bands - 1) / (bands - 1)


def _narrow_valley(x: Tensor) -> Tensor:
    return (x[..., 0] ** 2 + 20 * x[..., 1] ** 2) / 2


def _turned_valley(x: Tensor) -> Tensor:
    along, across = (x[..., 0] + x[..., 1]) / math.sqrt(2), (x[..., 1] - x[..., 0]) / math.sqrt(2)
    return (along**2 + 20 * across**2) / 2


def _rosenbrock_function(x: Tensor) -> Tensor:
    return (1 - x[..., 0]) ** 2 + 100 * (x[..., 1] - x[..., 0] ** 2) ** 2


def _double_well(x: Tensor) -> Tensor:
    return (x[..., 0] ** 2 - 1) ** 2 + x[..., 1] ** 2


def _saddle_function(x: Tensor) -> Tensor:
    return x[..., 0] ** 2 / 2 + torch.cos(x[..., 1]) - 1


def _beale_function(x: Tensor) -> Tensor:
    first, second = x[..., 0], x[..., 1]
    return (
        (1.5 - first + first * second) ** 2
        + (2.25 - first + first * second**2) ** 2
        + (2.625 - first + first * second**3) ** 2
    )


def _rippled_bowl(x: Tensor) -> Tensor:
    return (x**2 + 3 * torch.sin(x) ** 2).sum(-1)


LANDSCAPES = {
    each.name: each
    for each in (
        Landscape(
            "valley", "Narrow valley", _narrow_valley, (-4.5, 4.5, -4.5, 4.5), (-4.0, 1.6), ((0.0, 0.0),), (), 20.0
        ),
        Landscape(
            "turned",
            "Valley across the axes",
            _turned_valley,
            (-4.0, 4.0, -4.0, 4.0),
            (-3.4, -1.8),
            ((0.0, 0.0),),
            (),
            20.0,
        ),
        Landscape(
            "rosenbrock",
            "Rosenbrock's banana",
            _rosenbrock_function,
            (-2.0, 2.0, -1.0, 3.0),
            (-1.5, 2.2),
            ((1.0, 1.0),),
        ),
        Landscape(
            "double_well",
            "Double well",
            _double_well,
            (-2.0, 2.0, -2.0, 2.0),
            (0.05, 1.5),
            ((-1.0, 0.0), (1.0, 0.0)),
            ((0.0, 0.0),),
        ),
        Landscape(
            "saddle",
            "Saddle",
            _saddle_function,
            (-5.0, 5.0, -5.0, 5.0),
            (-4.0, 0.001),
            ((0.0, -math.pi), (0.0, math.pi)),
            ((0.0, 0.0),),
            1.0,
        ),
        Landscape(
            "beale",
            "Beale's plateau",
            _beale_function,
            (-0.5, 4.5, -2.5, 2.5),
            (0.6, -1.6),
            ((3.0, 0.5),),
            ((0.0, 1.0),),
        ),
        Landscape("ripples", "Ripples", _rippled_bowl, (-5.0, 5.0, -5.0, 5.0), (-4.5, 3.6), ((0.0, 0.0),), (), 8.0),
    )
}


@system("landscape", title="Landscapes in the plane", kind="function")
def landscape(name: str) -> Landscape:
    r"""A function of the plane: `valley`, `turned`, `rosenbrock`, `double_well`, `saddle`, `beale`, `ripples`.

    $$ \tfrac12(x^2 + 20y^2), \qquad (1 - x)^2 + 100(y - x^2)^2, \qquad (x^2 - 1)^2 + y^2, \qquad
       \tfrac12x^2 + \cos y - 1, \qquad \textstyle\sum_i x_i^2 + 3\sin^2x_i, \dots $$

    Each knows its minima and saddles and, where the whole plane has one, the Lipschitz constant of its gradient.
    `landscape(name).figure({"descent": path})` shows it as bands of equal height with a path on it.

    Shapes:
        x: (..., 2)    returns: (...)

    Claims: optim.gd.pl_rate
    Source: Rosenbrock 1960, Beale 1958; ripples as in Karimi, Nutini and Schmidt 2016.

    >>> banana = landscape("rosenbrock")
    >>> banana(torch.tensor([1.0, 1.0])), banana.minima, round(banana.limit(), 5)
    (tensor(0.), ((1.0, 1.0),), 0.002)
    """
    return LANDSCAPES[validate.one_of("name", name, LANDSCAPES)]
