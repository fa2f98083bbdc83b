"""The Polyak-Lojasiewicz condition: its constant, its relatives, and least squares seen through the tangent kernel."""

import functools
import math

import torch
import torch._dynamo  # which the first use of torch.func would import anyway, on the clock of a claim

from lemmata.foundations.convexity import is_convex
from lemmata.foundations.curvature import strong_convexity
from lemmata.foundations.function_values import batch_gradients, batch_jacobians, batch_values
from lemmata.foundations.gradient_dominance import least_squares_pl, pl_constant, pl_ratio, tangent_gram
from lemmata.foundations.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def spectrum(draw, *eigenvalues):
    """A symmetric matrix with these eigenvalues along random directions."""
    q = draw.orthogonal(len(eigenvalues))
    return (q * torch.tensor(eigenvalues, dtype=torch.float64)) @ q.T


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


@functools.cache
def searched():
    """Constants searched in a box: that of a bowl, of x² + 3x⁴, and of two wells, one of them higher."""
    unit = torch.ones(2, dtype=torch.float64)
    return (
        pl_constant(lambda t: 3 * t.square().sum() + 5, (-unit, unit), points=64),
        pl_constant(lambda t: (t**2 + 3 * t**4).sum() + 5, (-1.0, 2.0), minimum=5.0, points=64),
        pl_constant(lambda t: (t**4 - t**2 + t / 10).sum(), (-1.0, 1.0), points=64),
    )


@claim("pl.definition")
@lie("the squared gradient is not halved", half=1.0)
@lie("the constant is 1.01 times the least positive eigenvalue", factor=1.01)
@lie("the constant is twice the least positive eigenvalue", factor=2.0)
@lie("a zero eigenvalue makes the constant zero", flat=0)
def a_small_gradient_means_a_value_near_the_minimum(draw, half=0.5, factor=1.0, flat=1):
    """Quadratics of many spectra; least squares with more unknowns than equations; functions with other minima."""
    parts = []
    for values in SPECTRA:
        matrix = spectrum(draw, *values)
        size, kernel = values[-1], values.count(0.0)
        f = QuadraticFunction(matrix, matrix @ draw.normal(len(values)), constant=-size)
        curved = (0.0, *values[kernel:])
        predicted = factor * curved[min(flat, len(curved) - 1)]
        found, lowest = pl_constant(f), f.minimiser
        # At random points away from the minimum, where nothing cancels, and along the least curvature.
        around = draw.uniform(200, 1, low=1.0, high=5.0) * draw.unit(200, len(values))
        x = lowest + torch.cat([around, f.eigenvectors[:, kernel][None]])
        ratios = half * (x @ matrix + f.linear).square().sum(1) / (f(x) - f.minimum)
        rounding = 1e-11 * size  # of sums that cancel, and of the least eigenvalue
        shipped = pl_ratio(f, torch.cat([x, lowest[None]]), float(f.minimum))
        parts += [
            at_least(ratios + rounding, predicted),
            close([ratios[-1], found.seen, found.value], [predicted] * 3, within=rounding),
            close(shipped[:-1], ratios, within=rounding),
            always([found.certified, bool(shipped[-1].isinf())]),
        ]
    wide, target = draw.normal(3, 6), draw.normal(3)

    def least_squares(w):
        return (wide @ w - target).square().sum() / 2

    least = float(torch.linalg.eigvalsh(wide @ wide.T)[0])
    measured, valley, wells = searched()
    return all_of(
        *parts,
        at_least(pl_ratio(least_squares, draw.normal(1000, 6), 0.0), factor * least),
        close(pl_ratio(lambda t: 3 * t.square().sum(), measured.witness[0], 0.0), measured.value, within=1e-3),
        # Of x² + 3x⁴ the ratio is least where the value is; a stationary point that is no minimum makes it 0.
        close([measured.value, valley.value, valley.seen, wells.value], [6.0, 2.0, 2.0, 0.0], within=1e-3),
        always([not measured.certified, "least value found" in measured.reason, "found" not in valley.reason]),
    )


@claim("pl.strong_implies_pl")
@lie("x² + 5 sin² x is PL as well", height=5.0)
@lie("PL implies convexity", convex=True)
@lie("the constant of x² + 3 sin² x is 0.3", constant=0.3)
def strong_convexity_implies_pl_and_not_conversely(draw, height=3.0, convex=False, constant=0.1755):
    """Strongly convex functions with their own constant; x² + 3 sin² x, whose descent is linear though it is not."""
    quadratic = QuadraticFunction(spectrum(draw, 0.4, 1.0, 3.0), draw.normal(3))
    data, labels, ridge = draw.normal(20, 3), draw.signs(20), 0.3

    def loss(w):
        return torch.nn.functional.softplus(-labels * (data @ w)).mean() + ridge / 2 * w.square().sum()

    lowest = torch.zeros(3, dtype=torch.float64)
    for _ in range(60):  # the loss bends by less than 2
        lowest = lowest - batch_gradients(loss, lowest) / 2
    least = float(batch_values(loss, lowest))

    def wavy(x):
        return (x**2 + height * torch.sin(x) ** 2).sum()

    found = pl_constant(wavy, (-20.0, 20.0), minimum=0.0, points=4096)
    bend = strong_convexity(wavy, (-4.0, 4.0), points=256)
    x = draw.uniform(100, 1, low=-15.0, high=15.0)
    ratios = []
    for _ in range(60):
        moved = x - batch_gradients(wavy, x) / 8
        before, after = batch_values(wavy, x), batch_values(wavy, moved)
        ratios.append((after / before)[before > 1e-200])
        x = moved
    wide = draw.normal(2, 4)
    flat = QuadraticFunction(2 * wide.T @ wide)
    return all_of(
        close(found.value, constant, within=1e-3),
        at_least(found.value, 1 / 32),
        close(bend.value, 2 - 2 * height, within=0.05),
        exactly(is_convex(wavy, (-4.0, 4.0), points=256).value, convex),
        at_most(torch.cat(ratios), 1 - constant / 8 + 1e-4),
        close(x, torch.zeros(100, 1, dtype=torch.float64), within=0.5),
        close(pl_constant(quadratic).value, strong_convexity(quadratic).value, within=1e-10),
        at_least(pl_ratio(loss, draw.normal(1000, 3), least - 1e-12), ridge),
        at_most(strong_convexity(flat).value, 0.0),
        close(pl_constant(flat).value, 2 * torch.linalg.eigvalsh(wide @ wide.T)[0], ulps=1024),
    )


@claim("pl.tangent_kernel")
@lie("‖F - y‖² is the loss itself", printed="004/1", share=1.0)
@lie("the inequality is strict", relation=torch.gt)
@lie("F is the weights times the data, whose kernel does not depend on the weights", linear=True)
@lie("‖∇L‖² ≥ 4 λ_min L", factor=4.0)
def the_pl_constant_of_least_squares_is_the_least_kernel_eigenvalue(
    draw, share=2.0, relation=torch.ge, linear=False, factor=2.0
):
    """Random tanh networks: the identity of the quadratic form, the bound, its extreme case and a solution."""
    data = draw.normal(5, 3)

    def model(w):
        return torch.tanh(data @ w[:12].reshape(3, 4)) @ w[12:]

    weights = draw.normal(40, 16)
    kernel = (data @ data.T).expand(40, 5, 5) if linear else tangent_gram(model, weights)
    least = torch.linalg.eigh(kernel)
    outputs = torch.stack([model(w) for w in weights])
    # Random targets, targets one bottom eigenvector away, and targets that are met exactly.
    targets = torch.stack([outputs + draw.normal(40, 5), outputs - least.eigenvectors[..., 0], outputs])
    jacobians = batch_jacobians(model, weights)
    losses, squares, forms, sizes, slopes = [], [], [], [], []
    for target in targets:
        residual = outputs - target

        def loss(both):
            return (model(both[:16]) - both[16:]).square().sum() / 2

        points = torch.cat([weights, target], dim=1)
        gradient = torch.einsum("bij,bi->bj", jacobians, residual)
        slopes.append(gradient - batch_gradients(loss, points)[:, :16])
        losses.append(residual.square().sum(1) / 2)
        squares.append(gradient.square().sum(1))
        forms.append(torch.einsum("bi,bij,bj->b", residual, kernel, residual))
        sizes.append(residual.square().sum(1))
    loss_values, gradients = torch.stack(losses), torch.stack(squares)
    constant = least_squares_pl(kernel)
    bound = factor * constant * loss_values
    rounding = torch.where(gradients == 0, 0.0, 1e-9 * (1 + gradients))
    phi = draw.normal(4, 9)
    values, vectors = torch.linalg.eigh(phi @ phi.T)
    worst = (phi.T @ vectors[:, 0]).square().sum() / (vectors[:, 0].square().sum() / 2)
    return all_of(
        close(gradients, torch.stack(forms), within=1e-8 * float(gradients.max())),
        close(torch.stack(sizes), share * loss_values, ulps=256),
        close(torch.stack(slopes), torch.zeros(3, 40, 16).double(), within=1e-10),
        always(relation(gradients + rounding, bound)),
        close(gradients[1], factor * constant * loss_values[1], within=1e-8 * float(gradients.max())),
        close(worst, factor * least_squares_pl(tangent_gram(lambda w: phi @ w, draw.normal(9))), within=1e-8),
        close(batch_jacobians(lambda w: phi @ w, draw.normal(9)), phi),
        exactly(gradients[2], torch.zeros(40, dtype=torch.float64)),
        always([math.isclose(float(values[0]), float(worst) / 2, rel_tol=1e-9)]),
    )
