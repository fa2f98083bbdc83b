"""The spectral norm: the largest singular value, between bounds that are proved and bounds that are probable."""

import math

import scipy.special
import torch

from lemmata.foundations.lanczos import largest_ritz_pair
from lemmata.foundations.minors import definiteness_by_minors
from lemmata.foundations.norms import frobenius_norm
from lemmata.foundations.probable_norm import krylov_miss_probability, krylov_steps, probable_spectral_norm
from lemmata.foundations.spectral import certified_spectral_norm
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie


def spectral_radius(matrix):
    """The largest size of an eigenvalue."""
    return torch.linalg.eigvals(matrix).abs().amax(-1)


@claim("linalg.spectral_norm")
@lie("the norm is the largest size of an eigenvalue", top=spectral_radius)
@lie("nine tenths of the product of the norms bound the norm of the product", factor=0.9)
@lie("the root of the largest eigenvalue of the Gram matrix is not taken", root=1.0)
def the_spectral_norm_is_the_largest_singular_value(
    draw, top=lambda a: torch.linalg.svdvals(a)[..., 0], factor=1.0, root=2.0
):
    """Spectra of many kinds: bounds against singular values, stretched vectors, Gram eigenvalues, and fractions."""
    nilpotent = torch.tensor([[0.0, 1.0], [0.0, 0.0]]).double()
    parts = [close(certified_spectral_norm(nilpotent).value, top(nilpotent), scale=1.0)]
    for n in (1, 6, 20):
        a, b = spectra(draw, n), spectra(draw, n)
        b[0] = a[0].mT  # |A A^T| = |A|^2
        bounds, other = certified_spectral_norm(a), certified_spectral_norm(b)
        product = certified_spectral_norm(a @ b)
        stretched = (a[:, None] @ draw.unit(len(a), 100, n)[..., None]).squeeze(-1).norm(dim=-1)
        longest = (a @ bounds.right[..., None]).squeeze(-1).norm(dim=-1)
        gram = torch.linalg.eigvalsh(a.mT @ a)[..., -1]
        largest = torch.linalg.svdvals(a)[..., 0]
        # The vectors are found to 1e-6, the value to the square of that.
        parts += [
            close(bounds.value, top(a), scale=largest, ulps=1e5),
            close(bounds.value, gram ** (1 / root), scale=largest, ulps=1e5),
            at_most(stretched.amax(-1), bounds.upper),
            close(longest, largest, scale=largest, ulps=1e5, detail="one unit vector is stretched as far"),
            at_most(bounds.value, frobenius_norm(a), attained=True),
            at_most(product.value, factor * bounds.value * other.value, attained=True, ulps=1e5),
        ]
    return all_of(*parts, *certified(draw)).showing(stretched_circle(draw))


def spectra(draw, n):
    """Square matrices: Gaussian, of rank one, orthogonal, nearly so, graded, shifts, whole numbers, tiny and huge."""
    ones, grades = torch.ones(n).double(), torch.logspace(0, -12, n, dtype=torch.float64)
    nearly = torch.cat([1.0012 * ones[:1], ones[1:]])
    turned = [(draw.orthogonal(n) * values) @ draw.orthogonal(n) for values in (3 * ones, nearly, grades)]
    others = [draw.normal(n, 1) @ draw.normal(1, n), torch.diag(torch.arange(1, n).double(), 1)]
    others += [draw.integers(-2, 3, n, n).double(), 2.0**-300 * draw.normal(n, n), 2.0**300 * draw.normal(n, n)]
    return torch.stack([draw.normal(n, n), *turned, *others])


def certified(draw):
    """The bounds hold in exact fractions and are tight: square, tall, wide, batched, tiny, huge, of rank 1 and 0."""
    holds, widths = [], []
    cases = [draw.normal(2, 2), draw.normal(2, 3), draw.normal(3, 2), draw.normal(3, 1), torch.eye(2).double()]
    cases += [torch.zeros(2, 2).double(), draw.normal(2, 1) @ draw.normal(1, 2), 3 * draw.orthogonal(2)]
    for matrix in cases:
        for tolerance in (1e-4, 1e-15):
            bounds = certified_spectral_norm(matrix, tolerance)
            lower, upper = bounds.lower.item(), bounds.upper.item()
            holds += [bounds_from_above(matrix, upper), not bounds_from_above(matrix, math.nextafter(lower, -1.0))]
            widths.append((upper - lower) / max(upper, 1e-300) / (tolerance + 1e-13))
    large = draw.normal(2, 40, 30)
    singular = torch.linalg.svdvals(large)[..., 0]
    both = certified_spectral_norm(large)
    huge, tiny = certified_spectral_norm(2.0**900 * large), certified_spectral_norm(2.0**-900 * large.mT)
    weights = draw.normal(4, 6).requires_grad_()
    norm = certified_spectral_norm(weights)
    (gradient,) = torch.autograd.grad(norm.value, weights)
    built = certified_spectral_norm(turned_diagonal(draw, 530, 515))
    hidden = certified_spectral_norm(torch.stack([hidden_from_the_start(draw, 48), torch.eye(48).double()]), 1e-2)
    return [
        always(holds),
        at_most(torch.tensor(widths), 2.0),
        always((both.lower <= singular) & (singular <= both.upper)),
        close(huge.upper, 2.0**900 * both.upper),
        close(tiny.lower, 2.0**-900 * both.lower),
        close((both.left[..., None, :] @ large @ both.right[..., None])[..., 0, 0], singular, ulps=1e5),
        close(both.left.norm(dim=-1), torch.ones(2)),
        close(tiny.right.norm(dim=-1), torch.ones(2)),
        close(gradient, norm.left[:, None] * norm.right, ulps=1e5),
        exactly(certified_spectral_norm(torch.zeros(2, 2)).upper, 0.0),
        always((built.lower <= 3) & (built.upper >= 3) & (built.upper / built.lower < 1 + 2e-6)),
        always(hidden.lower <= torch.tensor([1.1, 1.0])),
        always((hidden.upper >= torch.tensor([2.0, 1.0])) & (hidden.upper <= torch.tensor([6.0, 1.1]))),
        *no_narrower_than_rounding(draw),
        *from_a_random_start(draw),
    ]


def from_a_random_start(draw):
    """A miss means a start nearly orthogonal to the top vector, and such starts are as rare as the bound says."""
    size, steps, error = 50, 8, 0.15
    # All other values lie where Chebyshev's polynomial, of which the bound is made, is as small as it can be.
    nodes = (1 + torch.cos(torch.linspace(0, math.pi, size - 1, dtype=torch.float64))) / 2
    values = torch.cat([torch.ones(1).double(), 0.8 * nodes])
    start = draw.normal(500, size)
    start[:, 0] *= draw.uniform(500) ** 3
    missed = largest_ritz_pair(lambda x: values * x, start, steps).value < 1 - error
    along = start[:, 0].abs() / start.norm(dim=-1)
    likely = krylov_miss_probability(size, steps, error)
    rare = likely / math.sqrt(2 * size / math.pi)
    # The square of one entry of a random unit vector follows a beta law.
    law = [(n, t, scipy.special.betainc(0.5, (n - 1) / 2, t * t)) for n in (2, 5, 50) for t in (0.001, 0.1, 0.5)]
    angle = math.acosh((1 + error) / (1 - error))
    enough = krylov_steps(1000, 0.05, failure=1e-6)
    few, more = (krylov_miss_probability(1000, k, 0.05) for k in (enough - 1, enough))
    return [
        at_most(along[missed], rare),
        always([bool(missed.any())]),
        at_most([chance for _, _, chance in law], [t * math.sqrt(2 * n / math.pi) for n, t, _ in law]),
        close(rare, math.sqrt((1 - error) / error) / math.cosh((steps - 1) * angle)),
        exactly(krylov_miss_probability(size, 1, error), 1.0),
        always([more <= 1e-6 < few]),
        exactly([krylov_steps(7, 1e-6), krylov_steps(1, 0.5), krylov_steps(2, 1 - 1e-6, failure=0.01)], [7, 1, 1]),
        always([fewest(size) for size in (500, 601, 702, 803)]),
        always([0.1e-9 < krylov_miss_probability(4096, krylov_steps(4096, 0.02), 0.02) <= 1e-9]),
        *probable_bounds(draw),
    ]


def fewest(size):
    """Whether one step less than those asked for would not do."""
    steps = krylov_steps(size, 0.05, failure=1e-6)
    return krylov_miss_probability(size, steps, 0.05) <= 1e-6 < krylov_miss_probability(size, steps - 1, 0.05)


def probable_bounds(draw):
    """The bounds from a random start against singular values: coarse and fine, wide and tall, huge and zero."""
    wide = draw.normal(3, 20, 60)
    exact = torch.linalg.svdvals(wide)[..., 0]
    coarse, fine = probable_spectral_norm(wide, generator=draw.generator), probable_spectral_norm(wide.mT, 1e-6)
    huge = probable_spectral_norm(2.0**1000 * wide, 1e-6)
    # Some so large or small that single precision could not square them, beside one that it can; and one cut in pieces.
    sizes = torch.tensor([2.0**-90, 1.0, 2.0**90])
    mixed, mixed_exact = probable_spectral_norm(wide.float() * sizes[:, None, None]), sizes * coarse.value
    long = draw.normal(600, 500)
    pieces, long_exact = probable_spectral_norm(long, 1e-3), torch.linalg.svdvals(long)[0]
    stretched = (coarse.left[..., None, :] @ wide @ coarse.right[..., None])[..., 0, 0]
    return [
        always((coarse.lower <= exact) & (exact <= coarse.upper)),
        always((fine.lower <= exact) & (exact <= fine.upper)),
        close(coarse.upper / coarse.lower, 1.01, ulps=1e4),
        close(fine.upper / fine.lower, 1 + 1e-6, ulps=1e4),
        close(fine.value, exact, ulps=1e5),
        close(huge.value, 2.0**1000 * exact, ulps=1e5),
        *(always([part.isfinite().all()]) for part in (huge.lower, huge.upper)),
        close(huge.upper / 2.0**1000, fine.upper, ulps=1e5),
        close([mixed.lower / mixed_exact, mixed.upper / mixed_exact], [[1.0] * 3, [1.01] * 3], within=1e-3),
        always([pieces.lower <= long_exact <= pieces.upper]),
        close(pieces.upper / pieces.lower, 1 + 1e-3, ulps=1e4),
        close(stretched, coarse.value),
        close(coarse.value, exact, within=1e-3),  # of single precision: the square of 1e-3 of the length 10
        close(coarse.right.norm(dim=-1), 1.0),
        close(fine.left.norm(dim=-1), 1.0),
        exactly(probable_spectral_norm(torch.zeros(2, 3)).upper, 0.0),
        at_most(largest_ritz_pair(lambda x: exact * x, torch.ones(3).double(), 3).residual, 1e-12),
        *exhausted_spaces(draw),
    ]


def exhausted_spaces(draw):
    """Where the powers of an operator lead nowhere new: the identity, zero, and a start that sees two directions."""
    start = draw.normal(2, 6)
    same, nothing = largest_ritz_pair(lambda x: x, start, 5), largest_ritz_pair(lambda x: 0 * x, start, 5)
    values, two = torch.tensor([3.0, 1.0, 5.0]).double(), torch.tensor([1.0, 2.0, 0.0]).double()
    seen = largest_ritz_pair(lambda x: values * x, two, 3)
    return [
        close(same.value, [1.0, 1.0]),
        close(nothing.value, [0.0, 0.0], within=0.0),
        close([same.vector.norm(dim=-1), nothing.vector.norm(dim=-1)], torch.ones(2, 2).double()),
        close(seen.value, 3.0),
        close(seen.vector.abs(), torch.tensor([1.0, 0.0, 0.0]).double(), within=1e-7),
    ]


def turned_diagonal(draw, m, n):
    """Reflections of a diagonal between 0 and 3: many columns, none of them orthogonal, and the norm is known."""
    matrix = torch.zeros(m, n).double()
    matrix.diagonal().copy_(torch.linspace(0, 3, n))
    left, right = draw.unit(m), draw.unit(n)
    matrix = matrix - 2 * left[:, None] * (left @ matrix)
    return matrix - 2 * (matrix @ right)[:, None] * right


def hidden_from_the_start(draw, n):
    """A matrix made against the fixed start of the search: its largest value, 2, is orthogonal to that."""
    start = torch.randn(2, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[0]
    others = torch.linalg.qr(torch.cat([start[:, None], draw.normal(n, n - 1)], dim=1)).Q
    turned = torch.cat([others[:, :-1] @ draw.orthogonal(n - 1), others[:, -1:]], dim=1)
    values = torch.cat([torch.ones(1), 0.6 * draw.uniform(n - 2), torch.full((1,), 2.0)])
    return (turned * values) @ turned.T


def no_narrower_than_rounding(draw):
    """Bounds tighter than worst-case rounding permits would be luck; bounds much wider would be of no use."""
    u = torch.finfo(torch.float64).eps / 2
    m, n = 120, 60
    flat = torch.cat([torch.eye(n), torch.zeros(m - n, n)]).double()  # all singular values are 1
    thin = torch.ones(m, 4).double() / 16  # of rank 1, so that the Frobenius norm bounds it
    tight, coarse = certified_spectral_norm(flat[None, None], 1e-15), certified_spectral_norm(draw.normal(m, n), 1e-3)
    rank_one, length = certified_spectral_norm(thin[None, None], 1e-3), math.sqrt(4 * m) / 16
    frobenius = math.sqrt(n)
    return [
        at_least(tight.upper**2 - 1, m * u * frobenius**2),
        at_most(tight.upper**2 - 1, 8 * m * u * frobenius**2),
        at_least(1 - tight.lower, n * u * frobenius + (m + n) * u),
        at_most(1 - tight.lower, 4 * (n * u * frobenius + (m + n) * u)),
        at_least(coarse.upper / coarse.lower - 1, 0.9e-3),
        at_most(coarse.upper / coarse.lower - 1, 1.1e-3),
        at_least(rank_one.upper / length - 1, 4 * m * u),
        at_most(rank_one.upper / length - 1, 16 * m * u),
        at_least(1 - rank_one.lower / length, (m + 4) * u),
    ]


def bounds_from_above(matrix, number):
    """Whether the norm is at most a number: the block matrix [s I, A; A^T, s I] is semidefinite, without rounding."""
    block = number * torch.eye(sum(matrix.shape)).double()
    block[: len(matrix), len(matrix) :], block[len(matrix) :, : len(matrix)] = matrix, matrix.mT
    return definiteness_by_minors(block) in ("zero", "positive definite", "positive semidefinite")


def stretched_circle(draw):
    """A circle and its image: the longest half axis of the ellipse is the norm."""
    angle = torch.linspace(0, 2 * math.pi, 121, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()])
    matrix = draw.normal(2, 2)
    bounds = certified_spectral_norm(matrix)
    image, axis = matrix @ circle, bounds.value * bounds.left
    marks = [
        Line(circle[0], circle[1], label="unit vectors"),
        Line(image[0], image[1], label="their images"),
        Line([0.0, axis[0].item()], [0.0, axis[1].item()], label=f"norm {bounds.value.item():.3f}"),
    ]
    return Figure("The longest image of a unit vector", "first entry", "second entry", marks)
