"""What becomes of a density under an invertible map, and under several of them."""

import math
from typing import Any

import torch
from torch.distributions import MultivariateNormal, Normal
from torch.func import jacrev, jvp, vmap

from lemmata.generative.flows.affine import ActNorm
from lemmata.generative.flows.coupling import AffineCoupling
from lemmata.generative.flows.flow import Flow, StandardNormal
from lemmata.generative.flows.masked_affine import MaskedAffine
from lemmata.generative.flows.mixing import InvertibleConvolution, Permutation
from lemmata.generative.flows.transform import Transform
from lemmata.judge import all_of, claim, close, lie, probability_is

DOUBLE: dict[str, Any] = {"dtype": torch.float64}
SMOOTH: dict[str, Any] = {
    "widths": (8,),
    "activation": "tanh",
    "max_log_scale": 1.0,
    **DOUBLE,
}  # a grid resolves what it makes


def flow_of(draw, *transforms, size=0.5):
    """Standard normal noise through layers whose parameters are drawn."""
    flow = Flow(StandardNormal(transforms[0].features, **DOUBLE), transforms)
    with torch.no_grad():
        for value in flow.parameters():
            value.copy_(size * draw.normal(*value.shape))
    return flow.requires_grad_(False)


def noise_density(z):
    return Normal(0.0, 1.0).log_prob(z).sum(1)


def grid(low, high, cells):
    """The middles of cells of a box in the plane, (cells², 2), and the area of one."""
    axes = [torch.linspace(0.5 / cells, 1 - 0.5 / cells, cells, **DOUBLE) * (b - a) + a for a, b in zip(low, high)]  # noqa: B905
    return torch.cartesian_prod(*axes), float((high - low).prod()) / cells**2


class Staircase(Transform):
    """The way back is x plus Cantor's staircase: continuous, increasing, of slope 1 almost everywhere."""

    def __init__(self, features, dtype):
        super().__init__()
        self.features = features

    def inverse(self, x):
        height, rest, risen = torch.zeros_like(x), x.clamp(0, 1), torch.zeros_like(x, dtype=torch.bool)
        for k in range(1, 34):  # ternary digits 0 and 2 become binary digits 0 and 1, up to the first 1
            digit = (3 * rest).floor().clamp(max=2)
            height += torch.where(risen, 0.0, digit.clamp(max=1) / 2**k)
            risen, rest = risen | (digit == 1), 3 * rest - digit
        return x + height, torch.zeros_like(x[:, 0])

    def forward(self, z):
        low, high = z - 1, z
        for _ in range(60):
            middle = (low + high) / 2
            above = self.inverse(middle)[0] > z
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return high, torch.zeros_like(z[:, 0])


class Folded(Transform):
    """The absolute value, with one of its two ways back."""

    def __init__(self, features, dtype):
        super().__init__()
        self.features = features

    def forward(self, z):
        return z.abs(), torch.zeros_like(z[:, 0])

    def inverse(self, x):
        return x, torch.where(x[:, 0] > 0, 0.0, -math.inf).to(x)


@claim("flow.change_of_variables")
@lie("the determinant of the map itself, not of the way back", power=-1.0)
@lie("for any bijection, as one whose way back is x plus Cantor's staircase", outer=Staircase)
@lie("for a map that folds", outer=Folded)
def mass_is_neither_lost_nor_made(draw, power=1.0, outer=ActNorm):
    """Gaussians of affine maps, tiny to huge; a curved map of the plane, on a grid and by samples; one on a line."""
    evidence = []
    for scale in (1e-3, 1.0, 1e3):
        affine = flow_of(draw, InvertibleConvolution(3, **DOUBLE), ActNorm(3, **DOUBLE))
        affine.transforms[1].log_scale += math.log(scale)
        corner, *ends = affine.decode(torch.cat([torch.zeros(1, 3), torch.eye(3)]).double())
        columns = torch.stack(ends, 1) - corner[:, None]  # of A
        law, x = MultivariateNormal(corner, columns @ columns.mT), affine.decode(draw.normal(50, 3))
        evidence.append(close(affine.log_prob(x), law.log_prob(x), within=1e-8, detail=f"affine, of size {scale:g}"))
    curved = flow_of(draw, AffineCoupling(2, **SMOOTH), AffineCoupling(2, True, **SMOOTH), ActNorm(2, **DOUBLE))
    far = curved.decode(torch.cartesian_prod(*2 * [torch.linspace(-7, 7, 60, **DOUBLE)]))
    points, area = grid(far.amin(0) - 0.1, far.amax(0) + 0.1, 400)
    columns = []
    for unit in torch.eye(2).double():
        z, column = jvp(curved.encode, (points,), (unit.expand_as(points),))  # type: ignore[misc]
        columns.append(column)
    jacobian = torch.stack(columns, 2)  # (points, 2, 2), of the way back
    formula = noise_density(z) + power * torch.linalg.slogdet(jacobian).logabsdet
    middle = (far.amin(0) + far.amax(0)) / 2
    mass = area * formula.exp()
    quadrant = float(mass[(points > middle).all(1)].sum().clamp(0, 1))
    line = flow_of(draw, outer(1, **DOUBLE))
    steps = (torch.arange(-300_000, 300_000, **DOUBLE)[:, None] + 0.5) / 5000
    return all_of(
        *evidence,
        close(curved.log_prob(points), formula, within=1e-8, detail="density of a curved map against the formula"),
        close(float(mass.sum()), 1.0, within=1e-4, detail="its mass in the plane"),
        probability_is(lambda n: (curved.sample(n, generator=draw.generator) > middle).all(1), quadrant, effect=0.05),
        close(float(line.log_prob(steps).exp().sum() / 5000), 1.0, within=1e-4, detail="mass on a line"),
    )


def of_the_noise(z, x):
    return z


def of_the_data(z, x):
    return x


def all_layers(each):
    return each.sum(0)


def last_layer(each):
    return each[-1]


@claim("flow.log_density")
@lie("plus the log-determinant", sign=1.0)
@lie("the log-determinant of the last layer alone", combine=last_layer)
@lie("the noise's density at the data itself", where=of_the_data)
def log_determinants_add_up(draw, sign=-1.0, combine=all_layers, where=of_the_noise):
    """Six layers of all kinds, two to six features, each differentiated in full, beside torch's normal density."""
    evidence = []
    for features in (2, 3, 6):
        kinds = [AffineCoupling(features, **SMOOTH), InvertibleConvolution(features, **DOUBLE)]
        kinds += [MaskedAffine(features, **SMOOTH), Permutation(draw.permutation(features).tolist())]
        kinds.append(AffineCoupling(features, True, **SMOOTH))
        flow = flow_of(draw, *kinds, ActNorm(features, **DOUBLE))
        z = draw.normal(20, features)
        x, determinants = z, []
        for layer in flow.transforms:
            jacobian = vmap(jacrev(lambda row, layer=layer: layer(row[None])[0][0]))(x)  # (points, features, features)
            determinants.append(torch.linalg.slogdet(jacobian).logabsdet)
            x = layer(x)[0]
        predicted = noise_density(where(z, x)) + sign * combine(torch.stack(determinants))
        evidence.append(close(flow.log_prob(x), predicted, within=1e-9, detail=f"{features} features"))
    return all_of(*evidence)
