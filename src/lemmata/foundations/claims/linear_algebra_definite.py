"""Definite and semidefinite matrices: by their form, their eigenvalues, their factors, their minors, as kernels."""

import itertools
import math
from fractions import Fraction

import torch

from lemmata.foundations.angles import squared_distances
from lemmata.foundations.cholesky import psd_factor
from lemmata.foundations.definiteness import certify_definiteness, cholesky_floor
from lemmata.foundations.exact_elimination import exact_determinant
from lemmata.foundations.gram import gram_matrix, linear_kernel, polynomial_kernel, rbf_kernel
from lemmata.foundations.minors import definiteness_by_minors, leading_minors, principal_minors
from lemmata.foundations.quadratic import quadratic_form, rayleigh_quotient
from lemmata.foundations.traces import trace
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def symmetric(draw, count, n):
    """Whole-number symmetric matrices of all kinds: some definite, many not, some singular."""
    half = draw.integers(-3, 4, count, n, n)
    products = draw.integers(-2, 3, count, n, n)
    indefinite = (half + half.mT).double()
    singular = products.clone()
    singular[..., -1, :] = singular[..., 0, :] if n > 1 else 0  # so that a small vector is mapped to 0
    definite = products @ products.mT + torch.eye(n, dtype=torch.int64)
    return torch.cat([indefinite, (singular @ singular.mT).double(), definite.double()])


# Whole numbers, and the smallest eigenvalue is 51 less the root of 2602, about -0.01.
HARDLY = torch.tensor([[50.0, 51.0], [51.0, 52.0]]).double()


def below_all_forms(matrix, number):
    """Whether A - t I is positive semidefinite, decided without rounding."""
    whole = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    shifted = [[entry - Fraction(number) * (i == j) for j, entry in enumerate(row)] for i, row in enumerate(whole)]
    minors = (
        determinant([[shifted[i][j] for j in kept] for i in kept])
        for size in range(1, len(shifted) + 1)
        for kept in itertools.combinations(range(len(shifted)), size)
    )
    return all(minor >= 0 for minor in minors)


def determinant(rows):
    """By the first row, in fractions."""
    if not rows:
        return 1
    rest = [[row[:j] + row[j + 1 :] for row in rows[1:]] for j in range(len(rows))]
    return sum((-1) ** j * entry * determinant(rest[j]) for j, entry in enumerate(rows[0]) if entry)


@claim("linalg.psd_definition")
@lie("the zero vector must be positive too", tested=lambda x: torch.cat([x, torch.zeros_like(x[:1])]))
@lie("a definite form may vanish", definite=torch.ge)
@lie("a semidefinite form may fall to -1/2 of the squared length", least=-0.5)
def definite_forms_are_positive_but_at_zero(draw, tested=lambda x: x, definite=torch.gt, least=0.0):
    """Whole vectors and matrices, so exactly: all small vectors but zero, and the witness, against the answer."""
    agree_definite, agree_semidefinite = [], []
    for n in (1, 2, 3):
        small = torch.tensor(list(itertools.product(range(-3, 4), repeat=n)), dtype=torch.float64)
        for matrix in [*symmetric(draw, 8, n), *([HARDLY] if n == 2 else [])]:
            answer = certify_definiteness(matrix)
            # Small vectors may all miss a violation; the witness, which is not whole, must then show it.
            shown = answer.witness[None] if answer.ceiling < 0 else small[:0]
            x = tested(torch.cat([small[small.any(-1)], shown]))
            forms = quadratic_form(matrix, x)
            agree_definite.append(bool(answer.definite) == bool(definite(forms, 0).all()))
            agree_semidefinite.append(bool(answer.semidefinite) == bool((forms >= least * (x * x).sum(-1)).all()))
    return all_of(always(agree_definite), always(agree_semidefinite), *certificates(draw))


def certificates(draw):
    """The bounds hold exactly, in fractions, and are tight; scales from tiny to huge; batches; gradients."""
    exact, tight, larger = [], [], []
    for matrix in torch.cat([symmetric(draw, 4, 3) + 0.1, torch.zeros(1, 3, 3)]):
        answer = certify_definiteness(matrix)
        form = [Fraction(v) for v in answer.witness.tolist()]
        rows = [[Fraction(v) for v in row] for row in matrix.tolist()]
        curvature = sum(form[i] * rows[i][j] * form[j] for i in range(3) for j in range(3))
        exact.append(below_all_forms(matrix, answer.floor.item()))
        exact.append(curvature <= Fraction(answer.ceiling.item()) * sum(v * v for v in form))
        tight.append((answer.ceiling - answer.floor) / (1 + matrix.norm()))
        larger.append(answer.ceiling - answer.floor)
    batch = symmetric(draw, 5, 4) * 2.0**450
    together, small = certify_definiteness(batch), certify_definiteness(batch * 2.0**-900)
    weights = draw.normal(4, 4).requires_grad_()
    (gradient,) = torch.autograd.grad(certify_definiteness(weights + weights.mT).curvature, weights)
    moved = weights.detach() - 1e-6 * gradient
    fall = torch.linalg.eigvalsh(weights + weights.mT)[0] - torch.linalg.eigvalsh(moved + moved.mT)[0]
    rounded = torch.tensor([[1.0, 0.0], [0.0, -1e-6]])
    return [
        always(exact),
        always(torch.stack(larger) > 0),
        at_most(torch.stack(tight), 1e-13),
        exactly(together.floor, 2.0**900 * small.floor),
        exactly(together.ceiling, 2.0**900 * small.ceiling),
        close(together.floor, torch.stack([certify_definiteness(matrix).floor for matrix in batch]), ulps=256),
        close(fall.detach(), 1e-6 * (gradient**2).sum(), within=1e-10),  # the second order of a step of 1e-6
        exactly(certify_definiteness(torch.tensor([[1.0, 0.0], [0.0, -1e-7]])).semidefinite, True),
        exactly(certify_definiteness(rounded).semidefinite, False),
        exactly(certify_definiteness(rounded, tolerance=2e-6).semidefinite, True),
        exactly(certify_definiteness(rounded, tolerance=0.5e-6).semidefinite, False),
        *no_narrower_than_rounding(draw),
    ]


def no_narrower_than_rounding(draw):
    """Bounds tighter than worst-case rounding permits would be luck; bounds much wider would be of no use."""
    n, u = 150, torch.finfo(torch.float64).eps / 2
    values = torch.ones(n).double()
    values[0] = 0
    answer = certify_definiteness(16 * torch.diag(values)[None, None])
    size, total = 16 * math.sqrt(n - 1), 16.0 * (n - 1)
    # Guesses far too high, for one matrix of two: the floor must still lie below the smallest eigenvalue.
    pair = torch.stack([torch.diag(torch.tensor([0.5, 1.0])), torch.eye(2)]).double()
    floors = cholesky_floor(pair, torch.tensor([0.9, 1.0]).double(), torch.full((2,), 1e-3).double())
    return [
        at_least(-answer.floor, (n + 1) * u * total),
        at_most(-answer.floor, 8 * (n + 1) * u * total),
        # Off a multiple of the identity, whose trace above the floor is nothing: the shift and the rounding of forms.
        at_least(1 - certify_definiteness(torch.eye(n).double()).floor, 6 * (n + 2) * u * math.sqrt(n)),
        at_least(answer.ceiling, 3 * (n + 2) * u * size),
        at_most(answer.ceiling, 6 * (n + 2) * u * size),
        close(answer.tolerance, 2 * n * u * size),
        always((floors < torch.tensor([0.5, 1.0])) & (floors > torch.tensor([-3.0, 0.998]))),
    ]


def no_eigenvalue_below(matrix, least):
    """All eigenvalues are at least so much, but for rounding."""
    return bool((torch.linalg.eigvalsh(matrix) >= least - 1e-9).all())


def trace_and_determinant(matrix, least):
    """Neither the trace nor the determinant is below that."""
    return bool(trace(matrix) >= least) and exact_determinant(matrix) >= least


@claim("linalg.psd_eigenvalues")
@lie("a trace and a determinant that are not negative suffice", criterion=trace_and_determinant)
@lie("eigenvalues down to -1 are allowed", least=-1.0)
@lie("the trace and the determinant are at least 1", bound=1.0)
def semidefinite_matrices_have_no_negative_eigenvalue(draw, criterion=no_eigenvalue_below, least=0.0, bound=0.0):
    """Whole-number matrices, some hardly indefinite: eigenvalues against the certified answer and its bounds."""
    agree, inside, traces, determinants = [], [], [], []
    extra = {2: [HARDLY, 2.0**400 * HARDLY], 3: [torch.diag(torch.tensor([3.0, -1.0, -1.0]).double())]}
    for n in (1, 2, 3, 5, 8):
        for matrix in [*symmetric(draw, 8, n), *extra.get(n, [])]:
            values = torch.linalg.eigvalsh(matrix)
            answer = certify_definiteness(matrix)
            agree.append(criterion(matrix, least) == bool(answer.semidefinite))
            rounding = 1e-14 * values.abs().max()
            inside.append(bool(answer.floor - rounding <= values[0] <= answer.ceiling + rounding))
            if answer.semidefinite:
                traces.append(trace(matrix))
                determinants.append(float(exact_determinant(matrix)))
    return all_of(
        always(agree),
        always(inside),
        at_least(torch.stack(traces), bound, attained=True),  # by the zero matrix
        at_least(determinants, bound, attained=True),  # by all that are singular
    )


def factors(algorithm, matrix):
    """Whether an algorithm of Cholesky's kind runs to its end."""
    try:
        algorithm(matrix)
    except RuntimeError:  # torch.linalg.LinAlgError is one
        return False
    return True


@claim("linalg.cholesky")
@lie("every symmetric matrix has such a factor", raises=ValueError, lowest=-1.0)
@lie("a factor with a diagonal of either sign is the only one", signs=torch.neg)
@lie(
    "the only factor of a singular matrix is the one found",
    regime="at every angle but 0 it is another factor",
    loose="a larger angle gives another factor, too",
    angle=0.0,
)
@lie("the plain algorithm factors singular matrices, too", plain=psd_factor)
def semidefinite_matrices_have_triangular_factors(
    draw, lowest=0.0, signs=torch.abs, angle=0.3, plain=torch.linalg.cholesky
):
    """Factors recovered from their products, tiny and huge; singular matrices, where the plain algorithm stops."""
    parts = []
    for n, size in ((1, 1.0), (4, 2.0**-300), (30, 2.0**300)):
        root = draw.normal(5, n, n).tril(-1) + torch.diag_embed(1 + draw.uniform(5, n))
        signed = size * root * signs(torch.ones(n))
        # Triangular factors of this kind have condition numbers that grow with the size.
        worst = float(torch.linalg.cond(root).max()) ** 2
        parts.append(close(psd_factor(signed @ signed.mT), signed, condition=worst))
    thin, q = draw.normal(6, 5, 3), draw.orthogonal(3)
    broken = q @ torch.diag(torch.tensor([2.0, 1.0, lowest]).double()) @ q.T
    singular = torch.block_diag(*(thin @ thin.mT), broken / 2 + broken.T / 2)
    factor = psd_factor(singular)
    # diag(0, 1) has a factor with the second row (sin t, cos t) for every t.
    turn = torch.tensor(angle).double()
    other = torch.stack([torch.zeros(2).double(), torch.stack([turn.sin(), turn.cos()])])
    flat, whole = torch.diag(torch.tensor([0.0, 1.0])).double(), torch.tensor([[1.0, 1.0], [1.0, 1.0]]).double()
    return all_of(
        *parts,
        close(factor @ factor.mT, singular, ulps=256),
        exactly(factor, factor.tril()),
        always(factor.diagonal() >= 0),
        close(other @ other.T, flat),
        always((other - psd_factor(flat)).norm() > 1e-9),
        exactly([factors(plain, matrix) for matrix in (flat, whole, whole + flat)], [False, False, True]),
        close([psd_factor(flat), psd_factor(whole)], [flat, torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double()]),
    )


def all_principal(matrix):
    """No principal minor is negative."""
    return all(minor >= 0 for minor in principal_minors(matrix).values())


def leading_positive(matrix):
    """Every leading minor is positive."""
    return all(minor > 0 for minor in leading_minors(matrix))


def leading_not_negative(matrix):
    """No leading minor is negative."""
    return all(minor >= 0 for minor in leading_minors(matrix))


def definite_or_indefinite(matrix):
    """What is neither positive nor negative definite is called indefinite."""
    answer = definiteness_by_minors(matrix)
    return answer if answer.endswith(" definite") else "indefinite"


def kind_of(values):
    """The same six answers from the eigenvalues."""
    low, high = values[0].item(), values[-1].item()
    if abs(low) < 1e-9 and abs(high) < 1e-9:
        return "zero"
    if low > -1e-9:
        return "positive definite" if low > 1e-9 else "positive semidefinite"
    if high < 1e-9:
        return "negative definite" if high < -1e-9 else "negative semidefinite"
    return "indefinite"


@claim("linalg.sylvester")
@lie("semidefinite if and only if all leading minors are positive", printed="002/1", semidefinite=leading_positive)
@lie("semidefinite if and only if no leading minor is negative", semidefinite=leading_not_negative)
@lie("what is neither positive nor negative definite is indefinite", printed="002/2", classify=definite_or_indefinite)
@lie("all leading minors of a negative definite matrix are negative", sign=lambda k: -1)
def minors_tell_definiteness(
    draw, semidefinite=all_principal, classify=definiteness_by_minors, sign=lambda k: (-1) ** k
):
    """All symmetric matrices of -1, 0, 1 up to 3 x 3, minors without rounding, against their eigenvalues."""
    answers, kinds, agree, negative, first, last, exact = [], [], [], [], [], [], []
    for n in (1, 2, 3):
        places = torch.tril_indices(n, n)
        entries = torch.tensor(list(itertools.product((-1, 0, 1), repeat=places.shape[1])))
        matrices = torch.zeros(len(entries), n, n, dtype=torch.int64)
        matrices[:, places[0], places[1]] = matrices[:, places[1], places[0]] = entries
        spectra = torch.linalg.eigvalsh(matrices.double())
        for matrix, values in zip(matrices, spectra, strict=True):
            kinds.append(kind_of(values))
            answers.append(classify(matrix))
            agree.append(semidefinite(matrix) == (kinds[-1] in ("zero", "positive definite", "positive semidefinite")))
            minors = leading_minors(matrix)
            signed = (sign(k) * minor for k, minor in enumerate(minors, start=1))
            negative.append(all(minor > 0 for minor in signed) == (kinds[-1] == "negative definite"))
            first.append(all(minor > 0 for minor in minors) == (kinds[-1] == "positive definite"))
            last.append(float(minors[-1]))
        determinants = torch.linalg.det(matrices.double())
        exact.append(close(torch.tensor(last[-len(entries) :]).double(), determinants, scale=10.0))
    mixed = torch.tensor([[0.0, 0.5, 2.0], [1.5, -1.0, 0.25], [3.0, 0.0, 1.0]])
    binary = torch.tensor([[1.0, 0.1], [0.1, 0.01]])  # 0.1 squared exceeds 0.01 as they are stored
    return all_of(
        exactly(tuple(answers), tuple(kinds)),
        always(agree),
        always(negative),
        always(first),
        *exact,
        exactly(leading_minors(mixed)[-1], exact_determinant(mixed)),
        exactly(exact_determinant(mixed), determinant([[Fraction(entry) for entry in row] for row in mixed.tolist()])),
        exactly(definiteness_by_minors(binary), "indefinite"),
    )


def negative_squared_distance(x, y):
    """-|x - y|^2."""
    return -squared_distances(x, y)


def hyperbolic_tangent(x, y):
    """tanh(<x, y> - 1)."""
    return torch.tanh(linear_kernel(x, y) - 1)


@claim("linalg.kernel_psd")
@lie(
    "the exponential of plus the squared distance is a kernel",
    regime="a positive power of the radial kernel is one of another width",
    loose="a positive power of the radial kernel is one of another width",
    power=-1.0,
)
@lie("minus the squared distance is a kernel", other=negative_squared_distance)
@lie("the hyperbolic tangent of the inner product less 1 is a kernel", other=hyperbolic_tangent)
@lie("the radial kernel's matrix is definite for any points", loose="any distinct points will do", apart=0.0)
def gram_matrices_of_kernels_are_semidefinite(draw, power=1.0, other=linear_kernel, apart=1e-4):
    """Certified on random point sets; features multiplied out for the polynomial, distances for the radial kernel."""
    parts = []
    for points, d, degree, offset in ((1, 1, 1, 0.0), (4, 2, 2, 1.0), (12, 3, 3, 0.0), (30, 2, 5, 2.0)):
        x = draw.normal(5, points, d)
        width = 10 ** draw.uniform(1, low=-2.0, high=0.7).item()
        radial = gram_matrix(lambda x, y, width=width: rbf_kernel(x, y, gamma=width) ** power, x)
        direct = torch.exp(-width * power * (x[..., :, None, :] - x[..., None, :, :]).square().sum(-1))
        products = gram_matrix(lambda x, y, m=degree, c=offset: polynomial_kernel(x, y, m, c), x)
        features = torch.stack([monomials(row, degree, offset) for row in x.flatten(0, 1)]).reshape(5, points, -1)
        parts += [
            always(certify_definiteness(radial).semidefinite),
            always(certify_definiteness(gram_matrix(other, x)).semidefinite),
            always(certify_definiteness(products).semidefinite),
            # The exponent is wrong by a few of its own roundings, of the size of the squared lengths.
            close(radial, direct, scale=direct.max() * (1 + 10 * width * x.square().sum(-1).max())),
            close(gram_matrix(linear_kernel, x), x @ x.mT),
            close(products, features @ features.mT),
        ]
    few = draw.normal(6, 2)
    near = torch.cat([few, few[:1] + apart])
    lopsided = gram_matrix(lambda x, y: x[:, :1] * y[:, 1:].mT, few)
    return all_of(
        *parts,
        always(certify_definiteness(gram_matrix(rbf_kernel, near)).definite),
        close(lopsided, (few[:, :1] * few[:, 1] + few[:, 1:] * few[:, 0]) / 2),
    )


def monomials(x, degree, offset):
    """All products of `degree` entries of (root of the offset, x): their inner product is (x^T y + c)^m."""
    entries = torch.cat([x.new_tensor([math.sqrt(offset)]), x])
    product = torch.ones(1).double()
    for _ in range(degree):
        product = torch.outer(product, entries).flatten()
    return product


@claim("linalg.rayleigh")
@lie("a thousandth less than the largest eigenvalue is still a bound", share=0.999)
@lie("the mean of the eigenvalues bounds the quotient", mean=1.0)
def the_quotient_lies_between_the_extreme_eigenvalues(draw, share=1.0, mean=0.0):
    """Random vectors and all eigenvectors; and the form bounded by beta against the certified sign of beta I - H."""
    parts = []
    for n, size in ((1, 1.0), (2, 2.0**-300), (5, 1.0), (10, 2.0**300)):
        half = size * draw.normal(n, n)
        h = half + half.T
        values, vectors = torch.linalg.eigh(h)
        scale = values.abs().max()
        v = torch.cat([draw.normal(2000, n) / size, 7 * vectors.T])
        quotients = rayleigh_quotient(h, v)
        # The bounds lie in the middle as the mean takes their place, and away from the largest as its share falls.
        upper = (1 - mean) * values[-1] - (1 - share) * values[-1].abs() + mean * trace(h) / n
        betas = values[-1] + scale * torch.tensor([-0.01, -1e-9, 1e-9, 0.01]).double()
        answers = certify_definiteness(betas[:, None, None] * torch.eye(n) - h)
        parts += [
            # In units of the largest eigenvalue, and moved away from 0, all are rounded alike.
            at_most(2 + quotients / scale, 2 + upper / scale, attained=True),
            at_least(2 + quotients / scale, 2 + values[0] / scale, attained=True),
            close(quotients[2000:], values, scale=scale),
            exactly(answers.semidefinite, [False, False, True, True]),
        ]
    return all_of(*parts)
