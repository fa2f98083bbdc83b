"""Definite and semidefinite matrices: by their form, their eigenvalues, their factors, their minors, as kernels."""

import itertools
import math

import torch
from sympy import ZZ
from sympy.polys.matrices import DomainMatrix

from lemmata.certified.definiteness import certify_definiteness
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


@claim("linalg.psd_definition")
@lie("the zero vector must be positive too", tested=lambda x: torch.cat([x, torch.zeros_like(x[:1])]))
@lie("a definite form may vanish", definite=torch.ge)
@lie("a semidefinite form may fall to -1/2", least=-0.5)
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
            forms = torch.einsum("bi,ij,bj->b", x, matrix, x)
            agree_definite.append(bool(answer.definite) == bool(definite(forms, 0).all()))
            agree_semidefinite.append(bool(answer.semidefinite) == bool((forms >= least).all()))
    return all_of(always(agree_definite), always(agree_semidefinite))


def no_eigenvalue_below(matrix, least):
    """All eigenvalues are at least so much, but for rounding."""
    return bool((torch.linalg.eigvalsh(matrix) >= least - 1e-9).all())


def determinant(matrix):
    """Of whole numbers, without rounding, by sympy."""
    rows = [[ZZ(int(entry)) for entry in row] for row in matrix.tolist()]
    return int(DomainMatrix(rows, (len(rows), len(rows)), ZZ).det())


def trace_and_determinant(matrix, least):
    """Neither the trace nor the determinant is below that."""
    return bool(torch.trace(matrix) >= least) and determinant(matrix) >= least


@claim("linalg.psd_eigenvalues")
@lie("a trace and a determinant that are not negative suffice", criterion=trace_and_determinant)
@lie("eigenvalues down to -1 are allowed", least=-1.0)
@lie("the trace and the determinant are at least 1", bound=1.0)
def semidefinite_matrices_have_no_negative_eigenvalue(draw, criterion=no_eigenvalue_below, least=0.0, bound=0.0):
    """Whole-number matrices, some hardly indefinite: eigenvalues against the certified answer and its bounds."""
    agree, inside, traces, determinants = [], [], [], []
    extra = {2: [HARDLY, 2.0**400 * HARDLY], 3: [torch.diag(torch.tensor([3.0, -1.0, -1.0]).double())]}
    for n in (1, 2, 3, 5, 8):
        for matrix in [*symmetric(draw, 5, n), *extra.get(n, [])]:
            values = torch.linalg.eigvalsh(matrix)
            answer = certify_definiteness(matrix)
            agree.append(criterion(matrix, least) == bool(answer.semidefinite))
            rounding = 1e-14 * values.abs().max()
            inside.append(bool(answer.floor - rounding <= values[0] <= answer.ceiling + rounding))
            if answer.semidefinite:
                traces.append(torch.trace(matrix))
                determinants.append(float(determinant(matrix)))
    return all_of(
        always(agree),
        always(inside),
        at_least(torch.stack(traces), bound, attained=True),  # by the zero matrix
        at_least(determinants, bound, attained=True),  # by all that are singular
    )


def psd_factor(matrix):
    """A triangular factor of any semidefinite matrix: A = BB^T with B = Q sqrt(L), made triangular by B^T = QR.

    Of other symmetric matrices it is that of the nearest semidefinite one: every LL^T is at least as far away.
    """
    values, vectors = torch.linalg.eigh(matrix)
    rounding = 16 * matrix.shape[-1] * 2.0**-52 * values.abs().amax(-1)
    root = vectors * torch.where(values > rounding[..., None], values, 0.0).sqrt()[..., None, :]
    factor = torch.linalg.qr(root.mT).R.mT
    return factor * torch.where(factor.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(factor)[..., None, :]


def factors(algorithm, matrix):
    """Whether an algorithm of Cholesky's kind runs to its end."""
    try:
        algorithm(matrix)
    except RuntimeError:  # torch.linalg.LinAlgError is one
        return False
    return True


@claim("linalg.cholesky")
@lie("every symmetric matrix has such a factor", loose="with a positive eigenvalue it is definite", lowest=-1.0)
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
    """Factors found twice, tiny, huge and nearly singular; singular matrices, where the plain algorithm stops."""
    parts = []
    for n, size, last in ((1, 1.0, 1.0), (4, 2.0**-300, 1e-3), (30, 2.0**300, 1.0)):
        root = draw.normal(5, n, n).tril(-1) / math.sqrt(n) + torch.diag_embed(0.5 + draw.uniform(5, n))
        root[..., -1, -1] *= last  # a thousandth makes the product nearly singular, to a millionth
        signed = size * root * signs(torch.ones(n).double())
        # The condition of the product is the square of that of its factor.
        worst = float(torch.linalg.cond(root).max()) ** 2
        for found in (torch.linalg.cholesky(signed @ signed.mT), psd_factor(signed @ signed.mT)):
            parts.append(close(found, signed, condition=worst))
    q, sizes = draw.orthogonal(5), 2.0 ** torch.arange(-400, 401, 200).double()
    spectra = torch.tensor([[3.0, 2.0, 1.0, 0.5, lowest], [2.0, 1.0, 0.0, 0.0, 0.0]]).double()
    singular = sizes[:, None, None, None] * ((q * spectra[:, None]) @ q.T)
    singular = (singular + singular.mT) / 2
    factor = psd_factor(singular)
    # diag(0, 1) has a factor with the second row (sin t, cos t) for every t.
    turn = torch.tensor(angle).double()
    other = torch.stack([torch.zeros(2).double(), torch.stack([turn.sin(), turn.cos()])])
    flat, whole = torch.diag(torch.tensor([0.0, 1.0])).double(), torch.tensor([[1.0, 1.0], [1.0, 1.0]]).double()
    return all_of(
        *parts,
        close(factor @ factor.mT, singular, scale=singular.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]),
        exactly(factor, factor.tril()),
        close(other @ other.T, flat),
        always((other - psd_factor(flat)).norm() > 1e-9),
        exactly([factors(plain, matrix) for matrix in (flat, whole, whole + flat)], [False, False, True]),
    )


def minors(matrices, subset):
    """The principal minors of some rows and columns, as Leibniz's sum over permutations: whole numbers, exactly."""
    block = matrices[:, list(subset)][:, :, list(subset)]
    total = torch.zeros(len(matrices), dtype=torch.int64)
    for permutation in itertools.permutations(range(len(subset))):
        inversions = sum(a > b for a, b in itertools.combinations(permutation, 2))
        total += (-1) ** inversions * block[:, range(len(subset)), list(permutation)].prod(-1)
    return total


def leading_minors(matrices):
    """Of the first one, two, ... rows and columns."""
    return torch.stack([minors(matrices, range(k)) for k in range(1, matrices.shape[-1] + 1)], dim=-1)


def all_principal(matrices):
    """No principal minor is negative."""
    n = matrices.shape[-1]
    subsets = [subset for k in range(1, n + 1) for subset in itertools.combinations(range(n), k)]
    return torch.stack([minors(matrices, subset) >= 0 for subset in subsets]).all(0)


def leading_positive(matrices):
    """Every leading minor is positive."""
    return (leading_minors(matrices) > 0).all(-1)


def leading_not_negative(matrices):
    """No leading minor is negative."""
    return (leading_minors(matrices) >= 0).all(-1)


def six_answers(positive, negative, above, below):
    """In words: whether a matrix is definite, its negative is, it is semidefinite, and its negative is."""
    weak = ("indefinite", "negative semidefinite", "positive semidefinite", "zero")
    return [
        "positive definite" if p else "negative definite" if q else weak[2 * a + b]
        for p, q, a, b in zip(positive, negative, above, below, strict=True)
    ]


def definiteness_by_minors(matrices):
    """From the minors of a matrix and of its negative."""
    tests = (leading_positive(matrices), leading_positive(-matrices), all_principal(matrices), all_principal(-matrices))
    return six_answers(*tests)


def definite_or_indefinite(matrices):
    """What is neither positive nor negative definite is called indefinite."""
    return [answer if answer.endswith(" definite") else "indefinite" for answer in definiteness_by_minors(matrices)]


def proved_definiteness(matrices):
    """The same answers from certificates for a matrix and its negative."""
    above, below = certify_definiteness(matrices), certify_definiteness(-matrices)
    return six_answers(above.definite, below.definite, above.semidefinite, below.semidefinite)


@claim("linalg.sylvester")
@lie("semidefinite if and only if all leading minors are positive", printed="002/1", semidefinite=leading_positive)
@lie("semidefinite if and only if no leading minor is negative", semidefinite=leading_not_negative)
@lie("what is neither positive nor negative definite is indefinite", printed="002/2", classify=definite_or_indefinite)
@lie("all leading minors of a negative definite matrix are negative", sign=lambda k: -1)
def minors_tell_definiteness(
    draw, semidefinite=all_principal, classify=definiteness_by_minors, sign=lambda k: (-1) ** k
):
    """All symmetric matrices of -1, 0, 1 up to 3 x 3, minors without rounding, against proved definiteness."""
    parts = []
    for n in (1, 2, 3):
        places = torch.tril_indices(n, n)
        entries = torch.tensor(list(itertools.product((-1, 0, 1), repeat=places.shape[1])))
        matrices = torch.zeros(len(entries), n, n, dtype=torch.int64)
        matrices[:, places[0], places[1]] = matrices[:, places[1], places[0]] = entries
        kinds, leading = proved_definiteness(matrices), leading_minors(matrices)
        signed = leading * torch.tensor([sign(k) for k in range(1, n + 1)])
        weakly = torch.tensor([kind in ("zero", "positive definite", "positive semidefinite") for kind in kinds])
        parts += [
            exactly(tuple(classify(matrices)), tuple(kinds)),
            exactly(semidefinite(matrices), weakly),
            exactly((signed > 0).all(-1), torch.tensor([kind == "negative definite" for kind in kinds])),
            exactly((leading > 0).all(-1), torch.tensor([kind == "positive definite" for kind in kinds])),
        ]
    return all_of(*parts)


def linear_kernel(x, y):
    """<x, y>."""
    return x @ y.mT


def negative_squared_distance(x, y):
    """-|x - y|^2."""
    return -torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


def hyperbolic_tangent(x, y):
    """tanh(<x, y> - 1)."""
    return torch.tanh(linear_kernel(x, y) - 1)


@claim("linalg.kernel_psd")
@lie(
    "the exponential of plus the squared distance is a kernel",
    regime="any negative factor is that of another width",
    loose="any negative factor is that of another width",
    sign=1.0,
)
@lie("minus the squared distance is a kernel", other=negative_squared_distance)
@lie("the hyperbolic tangent of the inner product less 1 is a kernel", other=hyperbolic_tangent)
@lie("the radial kernel's matrix is definite for any points", loose="any distinct points will do", apart=0.0)
def gram_matrices_of_kernels_are_semidefinite(draw, sign=-1.0, other=linear_kernel, apart=1e-4):
    """Certified on random point sets, and where two points nearly meet; the polynomial kernel by its features."""
    parts = []
    kinds = {"degree": 1, "offset": 0.0}, {}, {"degree": 3, "offset": 0.0}, {"degree": 5, "offset": 2.0}
    for (points, d), given in zip(((1, 1), (4, 2), (12, 3), (30, 2)), kinds, strict=True):
        x = draw.normal(5, points, d)
        width = 10 ** draw.uniform(1, low=-2.0, high=0.7).item()
        radial = torch.exp(-sign * width * negative_squared_distance(x, x))
        products = (linear_kernel(x, x) + given.get("offset", 1.0)) ** given.get("degree", 2)
        features = torch.stack([monomials(row, **given) for row in x.flatten(0, 1)]).reshape(5, points, -1)
        parts += [
            always(nowhere_below_rounding(radial)),
            always(nowhere_below_rounding(other(x, x))),
            always(nowhere_below_rounding(products)),
            close(products, features @ features.mT),
        ]
    few = draw.normal(6, 2)
    near = torch.cat([few, few[:1] + apart])
    return all_of(*parts, always(certify_definiteness(torch.exp(negative_squared_distance(near, near))).definite))


def nowhere_below_rounding(gram):
    """Proved: no eigenvalue of a matrix is below minus what rounding takes, from its entries and from the proof.

    Entries that are wrong by a few ulps move an eigenvalue by n times that. The proof gives away 4 (n + 2) eps of the
    Frobenius norm and (n + 2) eps of the trace, of which each is at most n times the largest entry.
    """
    n = gram.shape[-1]
    rounding = (64 + 5 * (n + 2)) * n * torch.finfo(gram.dtype).eps * float(gram.abs().max())
    return certify_definiteness(gram, rounding).semidefinite


def monomials(x, degree=2, offset=1.0):
    """All products of `degree` entries of (root of the offset, x): their inner product is (x^T y + c)^m."""
    entries = torch.cat([x.new_tensor([math.sqrt(offset)]), x])
    product = torch.ones(1).double()
    for _ in range(degree):
        product = torch.outer(product, entries).flatten()
    return product


@claim("linalg.rayleigh")
@lie("a thousandth less than the largest eigenvalue is still a bound", share=0.999)
@lie("the mean of the eigenvalues bounds the quotient", top=torch.mean)
def the_quotient_lies_between_the_extreme_eigenvalues(draw, share=1.0, top=torch.max):
    """Random vectors and all eigenvectors; and the form bounded by beta against the certified sign of beta I - H."""
    parts = []
    for n, size in ((1, 1.0), (2, 2.0**-300), (5, 1.0), (10, 2.0**300)):
        half = size * draw.normal(n, n)
        h = half + half.T
        values, vectors = torch.linalg.eigh(h)
        scale = values.abs().max()
        v = torch.cat([draw.normal(2000, n) / size, 7 * vectors.T])
        quotients = torch.einsum("bi,ij,bj->b", v, h, v) / (v * v).sum(-1)
        upper = share * top(values)
        betas = values[-1] + scale * torch.tensor([-0.01, -1e-9, 1e-9, 0.01]).double()
        answers = certify_definiteness(betas[:, None, None] * torch.eye(n).double() - h)
        parts += [
            # In units of the largest eigenvalue, and moved away from 0, all are rounded alike.
            at_most(2 + quotients / scale, 2 + upper / scale, attained=True),
            at_least(2 + quotients / scale, 2 + values[0] / scale, attained=True),
            close(quotients[2000:], values, scale=scale),
            exactly(answers.semidefinite, [False, False, True, True]),
        ]
    return all_of(*parts)
