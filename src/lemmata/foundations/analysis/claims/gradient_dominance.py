"""The Polyak-Lojasiewicz condition: its constant, its relatives, and least squares seen through the tangent kernel."""

import functools

import torch

from lemmata.foundations.analysis.claims.functions import descend, logistic, spectrum
from lemmata.foundations.analysis.convexity import is_convex
from lemmata.foundations.analysis.curvature import strong_convexity
from lemmata.foundations.analysis.function_values import batch_gradients, batch_jacobians, batch_values
from lemmata.foundations.analysis.gradient_dominance import pl_constant
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie

# With and without a kernel, one eigenvalue and many, equal and far apart, tiny and huge.
SPECTRA = (
    (0.0, 0.6, 1.5, 4.0),
    (0.5, 0.5, 2.0),
    (3.0,),
    (0.0, 0.0, 1e-3, 1e3),
    (0.0, 2e-9, 5e-9),
    (0.0, 1e8, 3e8, 3e8),
    tuple(0.1 * k for k in range(30)),
)


def least_that_is_not_zero(eigenvalues):
    return min(value for value in eigenvalues if value)


@functools.cache
def searched():
    """Constants searched in a box: of x² + 3x⁴, and of two wells, one of them higher."""
    valley = pl_constant(lambda t: (t**2 + 3 * t**4).sum() + 5, (-1.0, 2.0), minimum=5.0, points=64)
    return valley.value, pl_constant(lambda t: (t**4 - t**2 + t / 10).sum(), (-1.0, 1.0), points=64).value


def pl_ratio(f, x, minimum, half=0.5):
    """Half the squared gradient over the height above the minimum."""
    return half * batch_gradients(f, x).square().sum(-1) / (batch_values(f, x) - minimum)


@claim("pl.definition")
@lie("the squared gradient is not halved", half=1.0)
@lie("a zero eigenvalue makes the constant zero", least=min)
def a_small_gradient_means_a_value_near_the_minimum(draw, half=0.5, least=least_that_is_not_zero):
    """Quadratics of many spectra; least squares with more unknowns than equations; functions with other minima."""
    parts = []
    for values in SPECTRA:
        matrix = spectrum(draw, *values)
        curved = torch.linalg.eigh(matrix).eigenvectors[:, values.count(0.0) :]
        # Of a minimiser with a part along the kernel, Mx would be rounded at the size of that part.
        lowest = curved @ draw.normal(curved.shape[1])
        f = QuadraticFunction(matrix, -matrix @ lowest, constant=-values[-1])
        found, predicted = pl_constant(f), least(values)
        # At random points away from the minimum, where nothing cancels, and along the least curvature.
        around = draw.uniform(200, 1, low=1.0, high=5.0) * draw.unit(200, len(values))
        ratios = pl_ratio(f, lowest + torch.cat([around, curved.T[:1]]), f(lowest), half)
        rounding = 1e-11 * values[-1]  # of sums that cancel, and of the least eigenvalue
        parts += [
            at_least(ratios + rounding, predicted),
            close([ratios[-1], found.seen, found.value], [predicted] * 3, within=rounding),
        ]
    wide, target = draw.normal(3, 6), draw.normal(3)
    ratios = pl_ratio(lambda w: (wide @ w - target).square().sum() / 2, draw.normal(1000, 6), 0.0, half)
    return all_of(
        *parts,
        at_least(ratios, torch.linalg.eigvalsh(wide @ wide.T)[0]),
        # Of x² + 3x⁴ the ratio is least where the value is; a stationary point that is no minimum makes it 0.
        close(searched(), [2.0, 0.0], within=1e-3),
    )


def wavy(x, height):
    return (x**2 + height * torch.sin(x) ** 2).sum()


@functools.cache
def constant_of_wave(height):
    """The PL constant of x² + h sin² x, searched far beyond its waves."""
    return pl_constant(functools.partial(wavy, height=height), (-20.0, 20.0), minimum=0.0, points=4096).value


@claim("pl.strong_implies_pl")
@lie(
    "x² + 5 sin² x is PL as well",
    regime="up to 4.6 the only stationary point is the minimum",
    loose="a lower wave bends it less",
    height=5.0,
)
@lie("PL implies convexity", convex=True)
@lie("the constant of x² + 3 sin² x is 0.3", constant=0.3)
def strong_convexity_implies_pl_and_not_conversely(draw, height=3.0, convex=False, constant=0.1755):
    """Strongly convex functions with their own constant; x² + 3 sin² x, and least squares, which are PL alone."""
    quadratic = QuadraticFunction(spectrum(draw, 0.4, 1.0, 3.0), draw.normal(3))
    ridge = 0.3
    loss = logistic(draw, ridge)
    lowest = descend(loss, torch.zeros(1, 3, dtype=torch.float64), 0.5, 60)  # the loss bends by less than 2
    minimum = float(batch_values(loss, lowest)) - 1e-12
    wave = functools.partial(wavy, height=height)
    bend = strong_convexity(wave, (-4.0, 4.0), points=256).value
    # Whole numbers: rounded ones would hardly ever be singular.
    wide = draw.until(lambda: draw.integers(-3, 4, 2, 4).double(), lambda a: torch.linalg.matrix_rank(a) == 2)
    flat = QuadraticFunction(2 * wide.T @ wide)
    return all_of(
        close(constant_of_wave(3.0), constant, within=1e-3),
        at_least(constant_of_wave(height), 1 / 32),
        exactly(is_convex(wave, (-4.0, 4.0), points=256).value, convex),
        close(bend, 2 - 2 * height, within=1e-3),
        close([pl_constant(quadratic).value, strong_convexity(quadratic).value], [0.4, 0.4], within=1e-10),
        at_least(pl_ratio(loss, draw.normal(1000, 3), minimum), ridge),
        at_most(strong_convexity(flat).value, 0.0),
        # What is proved lies 2^-40, or 4,096 units of rounding, below what is computed.
        close(pl_constant(flat).value, 2 * torch.linalg.eigvalsh(wide @ wide.T)[0], ulps=8192),
    )


@claim("pl.tangent_kernel")
@lie("‖F - y‖² is the loss itself", printed="004/1", double=1.0)
@lie("the inequality is strict", relation=torch.gt)
@lie("F is the weights times the data, whose kernel does not depend on the weights", linear=True)
def the_pl_constant_of_least_squares_is_the_least_kernel_eigenvalue(draw, double=2.0, relation=torch.ge, linear=False):
    """Random tanh networks: the identity of the quadratic form, the bound, its extreme case and a solution."""
    data = draw.normal(5, 3)

    def model(w):
        return torch.tanh(data @ w[:12].reshape(3, 4)) @ w[12:]

    def loss(both):  # of weights and targets in one vector
        return (model(both[:16]) - both[16:]).square().sum() / 2

    weights = draw.normal(40, 16)
    jacobians = batch_jacobians(model, weights)
    kernel = (data @ data.T).expand(40, 5, 5) if linear else jacobians @ jacobians.mT
    # Random residuals, those along the bottom eigenvector, and none.
    eigenvalues, vectors = torch.linalg.eigh(kernel)
    residuals = torch.stack([draw.normal(40, 5), vectors[..., 0], torch.zeros(40, 5, dtype=torch.float64)])
    gradients = torch.einsum("bij,tbi->tbj", jacobians, residuals)
    outputs = torch.stack([model(w) for w in weights])
    points = torch.cat([weights.expand(3, 40, 16), outputs - residuals], dim=-1)
    losses, squares = residuals.square().sum(-1) / 2, gradients.square().sum(-1)
    bound = double * eigenvalues[:, 0] * losses
    size = float(squares.max())
    return all_of(
        close(gradients, batch_gradients(loss, points)[..., :16], within=1e-10),
        close(squares, torch.einsum("tbi,bij,tbj->tb", residuals, kernel, residuals), within=1e-8 * size),
        close(residuals.square().sum(-1), double * batch_values(loss, points), within=1e-12),
        always(relation(squares + torch.where(squares == 0, 0.0, 1e-9 * (1 + squares)), bound)),
        close(squares[1], bound[1], within=1e-8 * size, detail="along the bottom eigenvector it is an equality"),
    )
