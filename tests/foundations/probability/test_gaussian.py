"""What the claims about Gaussians do not say: bad input, dtypes, batches, gradients, parity with torch."""

import itertools
import math

import pytest
import torch
from torch.distributions import LowRankMultivariateNormal, MultivariateNormal, kl_divergence

from lemmata.foundations import DiagonalGaussian, Gaussian, LowRankGaussian, gaussian_kl
from lemmata.foundations.probability.claims.quadrature import Density

EYE, ZERO = torch.eye(2), torch.zeros(2)
UNIT = Gaussian(ZERO, EYE)
FLAT = Gaussian(ZERO, torch.ones(2, 2))


def three(batch=(), d=3, dtype=torch.float64):
    root = torch.randn(*batch, d, d, dtype=dtype)
    mean, variance = torch.randn(*batch, d, dtype=dtype), torch.rand(*batch, d, dtype=dtype) + 0.2
    full = Gaussian(mean, root @ root.mT + torch.eye(d, dtype=dtype))
    return full, DiagonalGaussian(mean, variance), LowRankGaussian(mean, root[..., :2], variance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_and_batches_are_kept(dtype):
    for batch, law in itertools.product([(), (1,), (2, 3)], range(3)):
        p = three(batch, dtype=dtype)[law]
        x = p.sample(5, torch.Generator().manual_seed(0))
        assert x.shape == (5, *batch, 3)
        assert x.dtype is dtype
        assert p.log_density(x).shape == (5, *batch)
        assert p.entropy().shape == p.logdet.shape == gaussian_kl(p, p).shape == batch
        assert p.covariance.dtype is gaussian_kl(p, p).dtype is dtype
        assert p.batch_shape == batch


def test_a_diagonal_law_may_be_in_bfloat16():
    law = DiagonalGaussian(ZERO.bfloat16(), torch.ones(2).bfloat16())
    assert law.log_density(ZERO.bfloat16()).dtype is torch.bfloat16
    assert law.sample(3).dtype is torch.bfloat16


def test_values_are_those_of_torch_distributions():
    p, q = three((4,)), three((4,))
    peers = [MultivariateNormal(p[0].mean, p[0].covariance), MultivariateNormal(q[0].mean, q[0].covariance)]
    x = torch.randn(6, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(p[0].log_density(x), peers[0].log_prob(x))
    torch.testing.assert_close(p[0].entropy(), peers[0].entropy())
    torch.testing.assert_close(gaussian_kl(p[0], q[0]), kl_divergence(*peers))
    low = LowRankMultivariateNormal(p[2].mean, p[2].factor, p[2].variance)
    torch.testing.assert_close(p[2].log_density(x), low.log_prob(x))
    torch.testing.assert_close(gaussian_kl(p[2], q[0]), kl_divergence(low, peers[1]))
    torch.testing.assert_close(gaussian_kl(q[0], p[2]), kl_divergence(peers[1], low))


def test_gradients_of_the_divergence_are_those_of_torch_distributions():
    inputs = [three((4,))[0] for _ in range(2)]
    leaves = [t.detach().clone().requires_grad_() for law in inputs for t in (law.mean, law.covariance)]
    ours = gaussian_kl(Gaussian(*leaves[:2]), Gaussian(*leaves[2:]))
    peer = kl_divergence(MultivariateNormal(*leaves[:2]), MultivariateNormal(*leaves[2:]))
    weights = torch.rand(4, dtype=torch.float64)
    for a, b in zip(*(torch.autograd.grad((k * weights).sum(), leaves) for k in (ours, peer)), strict=True):
        torch.testing.assert_close(a, b)


def symmetric(root):
    return root @ root.mT + torch.eye(3, dtype=torch.float64)


def test_first_and_second_derivatives_pass_gradcheck():
    mean, root = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 3), (3, 3)))
    other = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)

    def divergence(mean, root, other):
        return gaussian_kl(Gaussian(mean, symmetric(root)), Gaussian(0 * mean[0], symmetric(other)))

    assert torch.autograd.gradcheck(divergence, (mean, root, other))
    assert torch.autograd.gradgradcheck(divergence, (mean, root, other))
    variance = torch.rand(3, dtype=torch.float64).add(0.5).requires_grad_()

    def mixed(mean, root, variance):
        low = LowRankGaussian(mean, root, variance)
        return gaussian_kl(DiagonalGaussian(mean, variance), low) + gaussian_kl(low, Gaussian(mean[0], symmetric(root)))

    assert torch.autograd.gradcheck(mixed, (mean, root, variance))


def test_densities_conditionals_and_samples_have_gradients():
    mean, root = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3,), (3, 3)))
    x = torch.randn(2, 3, dtype=torch.float64)

    def use(mean, root):
        law = Gaussian(mean, symmetric(root))
        conditional = law.condition([1], x[:, :1])
        drawn = law.sample(2, torch.Generator().manual_seed(0))
        return law.log_density(x), conditional.mean, conditional.covariance, drawn

    assert torch.autograd.gradcheck(use, (mean, root))


def test_a_cholesky_factor_gives_the_same_law():
    full = three((2,))[0]
    law = Gaussian.from_cholesky(full.mean, full.cholesky)
    torch.testing.assert_close(law.covariance, full.covariance)
    assert not law.degenerate
    torch.testing.assert_close(gaussian_kl(law, full), torch.zeros(2).double())
    torch.testing.assert_close(
        law.condition([0], full.mean[..., :1]).covariance, full.condition([0], full.mean[..., :1]).covariance
    )


def test_means_and_covariances_broadcast():
    law = Gaussian(torch.randn(5, 1, 2), EYE.expand(3, 2, 2))
    assert law.batch_shape == (5, 3)
    assert law.sample(4).shape == (4, 5, 3, 2)
    assert gaussian_kl(law, UNIT).shape == (5, 3)
    assert LowRankGaussian(ZERO, torch.ones(2, 1), torch.ones(7, 2)).batch_shape == (7,)


def test_a_singular_covariance_is_a_law_without_a_density():
    assert FLAT.degenerate
    drawn = FLAT.sample(10)
    torch.testing.assert_close(drawn[:, 0], drawn[:, 1])
    assert not FLAT.marginal([0]).degenerate
    # Numerically singular counts as singular, whatever the scale of the features.
    scale = torch.tensor([1e-6, 1e6])
    assert Gaussian(ZERO, torch.ones(2, 2) * scale * scale[:, None]).degenerate
    assert not Gaussian(ZERO, EYE * scale * scale[:, None]).degenerate


def test_structured_laws_agree_with_their_full_form():
    for law in three((2,))[1:]:
        x = torch.randn(2, 3, dtype=torch.float64)
        torch.testing.assert_close(law.full().log_density(x), law.log_density(x))
        torch.testing.assert_close(law.marginal([2, 0]).full().logdet, law.full().marginal([2, 0]).logdet)


def test_laws_say_what_they_are():
    assert repr(UNIT) == "Gaussian(features=2)"
    assert repr(three((4,))[2]) == "LowRankGaussian(features=3, batch=(4,))"


@pytest.mark.long
def test_the_divergence_works_under_compile(unchecked):
    divergence = torch.compile(lambda m, s: gaussian_kl(Gaussian(m, s), UNIT), backend="eager")
    torch.testing.assert_close(divergence(ZERO + 1, EYE), torch.tensor(1.0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Gaussian(torch.tensor(0.0), EYE),
            ValueError,
            r"mean must be a \(..., features\) tensor, got shape \(\)",
        ),
        (
            lambda: Gaussian(ZERO, torch.eye(3)),
            ValueError,
            r"covariance must be a \(..., 2, 2\) tensor, got shape \(3, 3\)",
        ),
        (lambda: Gaussian([0.0], EYE), TypeError, "mean must be a tensor, got list"),
        (lambda: Gaussian(ZERO, EYE.double()), TypeError, "covariance must have the dtype of mean"),
        (lambda: Gaussian(ZERO, EYE * math.nan), ValueError, "covariance must be finite"),
        (lambda: Gaussian(ZERO, -EYE), ValueError, "covariance must be positive semidefinite, got the eigenvalue -1"),
        (lambda: Gaussian(ZERO, EYE + torch.ones(2, 2).triu(1)), ValueError, "covariance must be symmetric"),
        (lambda: Gaussian(ZERO.bfloat16(), EYE.bfloat16()), TypeError, "covariance must be float32 or float64"),
        (lambda: Gaussian.from_cholesky(ZERO, -EYE), ValueError, "cholesky must have a positive diagonal"),
        (lambda: Gaussian.from_cholesky(ZERO, torch.ones(2, 2)), ValueError, "cholesky must be lower triangular"),
        (lambda: Gaussian.fit(ZERO), ValueError, r"x must be a \(..., points, features\) tensor"),
        (lambda: UNIT.log_density(torch.zeros(3)), ValueError, r"x must be a \(..., 2\) tensor, got shape \(3,\)"),
        (lambda: UNIT.log_density(ZERO * math.nan), ValueError, "x must be finite"),
        (lambda: UNIT.log_density(ZERO.double()), TypeError, "x must have the dtype of mean"),
        (lambda: UNIT.sample(0), ValueError, "count must be >= 1"),
        (lambda: UNIT.marginal([2]), ValueError, r"indices must be different numbers from 0 to 1, got \[2\]"),
        (lambda: UNIT.marginal([]), ValueError, "indices must be different numbers"),
        (lambda: UNIT.marginal([0, 0]), ValueError, "indices must be different numbers"),
        (lambda: UNIT.condition([0, 1], ZERO), ValueError, "indices must leave a feature"),
        (lambda: UNIT.condition([0], ZERO), ValueError, r"values must be a \(..., 1\) tensor, got shape \(2,\)"),
        (lambda: FLAT.condition([0, 1], ZERO), ValueError, "indices must leave a feature"),
        (lambda: UNIT.affine(torch.ones(2, 3)), ValueError, r"matrix must be a \(..., out, 2\) tensor"),
        (lambda: UNIT.plus(Gaussian(torch.zeros(1), torch.eye(1))), ValueError, "other must have 2 features, got 1"),
        (lambda: UNIT.times(Gaussian(torch.zeros(1), torch.eye(1))), ValueError, "other must have 2 features, got 1"),
        (lambda: UNIT.characteristic(torch.zeros(3)), ValueError, r"t must be a \(..., 2\) tensor"),
        (lambda: FLAT.density(ZERO), ValueError, "covariance is singular: a degenerate Gaussian has no density"),
        (lambda: FLAT.entropy(), ValueError, "covariance is singular"),
        (lambda: gaussian_kl(UNIT, FLAT), ValueError, "covariance is singular"),
        (lambda: gaussian_kl(UNIT, Gaussian(torch.zeros(1), torch.eye(1))), ValueError, "same number of features"),
        (
            lambda: gaussian_kl(UNIT, Gaussian(ZERO.double(), EYE.double())),
            TypeError,
            "p and q must have the same dtype",
        ),
        (lambda: DiagonalGaussian(ZERO, ZERO), ValueError, "variance must be > 0, got 0"),
        (lambda: DiagonalGaussian(ZERO, torch.ones(3)), ValueError, r"variance must be a \(..., 2\) tensor"),
        (lambda: DiagonalGaussian(ZERO, torch.ones(2)).marginal([5]), ValueError, "indices must be different numbers"),
        (
            lambda: LowRankGaussian(ZERO, torch.ones(3, 1), torch.ones(2)),
            ValueError,
            r"factor must be a \(..., 2, rank\)",
        ),
        (lambda: LowRankGaussian(ZERO, torch.ones(2, 1), -torch.ones(2)), ValueError, "variance must be > 0, got -1"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_covariance_singular_up_to_rounding_is_singular_alone_or_in_a_batch():
    almost = torch.tensor([[1.0, 1.0], [1.0, 1 + 2**-52]], dtype=torch.float64)
    whole = torch.eye(2, dtype=torch.float64)
    zero = torch.zeros(2, dtype=torch.float64)
    flags = [Gaussian(zero, part).degenerate for part in (whole, almost, torch.stack([whole, almost]))]
    assert flags == [False, True, True]


def test_a_single_law_takes_points_with_any_axes():
    cloud = torch.randn(2, 4, 3, dtype=torch.float64)
    for law in three():
        torch.testing.assert_close(law.log_density(cloud)[1, 2], law.log_density(cloud[1, 2]))
        torch.testing.assert_close(law.nll(cloud), -law.log_density(cloud))
    full = three()[0]
    torch.testing.assert_close(full.characteristic(cloud[0])[0], full.characteristic(cloud[0, 0]))


def test_products_of_densities_are_densities_up_to_a_mass():
    full, (_, diagonal, low_rank) = three((3,), d=4)[0], three((3,), d=4)
    x = torch.randn(5, 3, 4, dtype=torch.float64)
    for other in (diagonal, low_rank):
        product, log_mass = full.times(other)
        torch.testing.assert_close(log_mass + product.log_density(x), full.log_density(x) + other.log_density(x))


def test_marginals_pick_rows_and_columns():
    for law in three((3,), d=4):
        part = law.marginal([2, 0])
        assert torch.equal(part.mean, law.mean[..., [2, 0]])
        torch.testing.assert_close(part.covariance, law.covariance[:, [2, 0]][..., [2, 0]])


def test_a_conditional_covariance_is_positive():
    law = three(d=5)[0].condition([3, 0], torch.randn(50, 2, dtype=torch.float64))
    assert (torch.linalg.eigvalsh(law.covariance) > 0).all()


def test_a_sum_with_its_opposite_is_nothing():
    x = three()[0]
    nothing = x.plus(x.affine(-torch.eye(3, dtype=torch.float64)), cross=-x.covariance)
    torch.testing.assert_close(nothing.sample(4), torch.zeros(4, 3).double(), rtol=0, atol=1e-7)
    torch.testing.assert_close(x.plus(x).mean, 2 * x.mean)


def test_the_characteristic_function_is_the_mean_wave():
    line = three()[0].marginal([0])
    law = Density(lambda s: line.density(s[..., None]), centre=float(line.mean))
    wave = line.characteristic(torch.ones(1, dtype=torch.float64))
    waves = torch.stack([law.expectation(torch.cos), law.expectation(torch.sin)])
    torch.testing.assert_close(torch.stack([wave.real, wave.imag]), waves, rtol=0, atol=1e-9)


def test_laws_of_a_batch_are_sampled_on_their_own():
    """The mean square distance from the mean is the dimension; of 4,000 draws it has the deviation sqrt(6 / 4000)."""
    for law in three((2,)):
        far = law.mahalanobis(law.sample(4000, torch.Generator().manual_seed(0))).mean(0)
        assert (far - 3).abs().max() < 6 * math.sqrt(6 / 4000)
        apart = law.sample(3, torch.Generator().manual_seed(0)) - law.mean
        assert not torch.allclose(apart[:, 0], apart[:, 1])


SCALES = [1e-30, 1e-9, 1.0, 1e9, 1e30]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", SCALES)
def test_symmetry_is_judged_by_the_rounding_of_the_dtype_at_every_scale(dtype, scale):
    """A unit of rounding is taken and evened out, 100,000 of them are not, nor beside a feature of another size."""
    eps = torch.finfo(dtype).eps
    for big in (1.0, 1e3):  # variances from scale to 1e6 times the scale
        deviations = math.sqrt(scale) * torch.tensor([1.0, 1.0, big], dtype=dtype)
        covariance = torch.tensor([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], dtype=dtype) * deviations * deviations[:, None]
        covariance[0, 1] *= 1 + 2 * eps
        law = Gaussian(torch.zeros(3, dtype=dtype), covariance)
        assert torch.equal(law.covariance, law.covariance.mT)
        covariance[0, 1] *= 1 + 1e5 * eps
        with pytest.raises(ValueError, match="covariance must be symmetric"):
            Gaussian(torch.zeros(3, dtype=dtype), covariance)


def test_an_asymmetry_of_nine_millionths_is_rounding_in_neither_dtype():
    for dtype in (torch.float32, torch.float64):
        covariance = torch.eye(2, dtype=dtype)
        covariance[0, 1] = 9e-6
        with pytest.raises(ValueError, match="covariance must be symmetric"):
            Gaussian(torch.zeros(2, dtype=dtype), covariance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", SCALES)
def test_a_negative_eigenvalue_is_refused_however_small_beside_the_others(dtype, scale):
    tiny = {torch.float32: 1e-6, torch.float64: 1e-12}[dtype]
    hidden = torch.tensor([[1 / tiny, 0, 0], [0, 1, 2], [0, 2, 1]], dtype=dtype)  # -1 beside 1e6 or 1e12
    for matrix in (torch.diag(torch.tensor([1, -tiny], dtype=dtype)), hidden, torch.zeros(2, 2, dtype=dtype).add_(-1)):
        with pytest.raises(ValueError, match="covariance must be positive semidefinite, got the eigenvalue -"):
            Gaussian(torch.zeros(len(matrix), dtype=dtype), scale * matrix)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", SCALES)
def test_rank_is_judged_at_every_scale(dtype, scale):
    """Products of low rank are singular whatever rounding left of them; a correlation of 0.999 is not."""
    root = (
        math.sqrt(scale)
        * torch.randn(6, 2, dtype=dtype)
        * torch.tensor([1, 1e-3, 1e3, 1, 1e-2, 1], dtype=dtype)[:, None]
    )
    flat = Gaussian(torch.zeros(6, dtype=dtype), (root @ root.mT + (root @ root.mT).mT) / 2)
    assert flat.degenerate
    spread = flat._factor @ flat._factor.mT
    sizes = root.square().sum(1).sqrt()
    assert ((spread - root @ root.mT).abs() <= 100 * torch.finfo(dtype).eps * sizes * sizes[:, None]).all()
    near = scale * torch.tensor([[1, 0.999], [0.999, 1]], dtype=dtype)
    assert not Gaussian(torch.zeros(2, dtype=dtype), near).degenerate
    assert not Gaussian(torch.zeros(1, dtype=dtype), near[:1, :1]).degenerate
    certain = Gaussian(torch.zeros(2, dtype=dtype), torch.diag(torch.tensor([scale, 0], dtype=dtype)))
    assert certain.degenerate
    assert (certain.sample(5) != 0).tolist() == [[True, False]] * 5


def test_what_cancelled_stays_nothing_in_marginals_and_sums():
    """What rounding left of x - x is small at the size of x, and may look like anything at its own."""
    for _ in range(20):
        x = three()[0]
        nothing = x.plus(x.affine(-torch.eye(3, dtype=torch.float64)), cross=-x.covariance * (1 - 1e-16))
        for law in (nothing, nothing.marginal([2, 0]), nothing.plus(nothing), nothing.plus(nothing).marginal([1])):
            assert law.degenerate
            assert law.sample(4).sub(law.mean).abs().max() < 1e-6


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
def test_distances_keep_their_digits_where_the_noise_is_small(noise):
    """In float32, beside a dense solve in float64: what rounding does to the likeliest directions enters squared."""
    factor, variance = torch.randn(40, 3), noise * (0.5 + torch.rand(40))
    x = torch.cat([torch.randn(10, 3) @ factor.mT, torch.randn(10, 40)])
    law = LowRankGaussian(torch.zeros(40), factor, variance)
    dense = factor.double() @ factor.double().mT + variance.double().diag_embed()
    exact = (x.double() * torch.linalg.solve(dense, x.double().mT).mT).sum(-1)
    eps = torch.finfo(torch.float32).eps
    allowed = 64 * eps * exact + (16 * eps) ** 2 * x.square().sum(-1) / variance.min()
    assert ((law.mahalanobis(x) - exact).abs() <= allowed).all()


def test_laws_of_a_batch_are_added_and_judged_on_their_own():
    laws, others = three((2,)), three((2,))
    for other in others:
        total = laws[0].plus(other)
        for k in range(2):
            one = Gaussian(laws[0].mean[k], laws[0].covariance[k]).plus(Gaussian(other.mean[k], other.covariance[k]))
            torch.testing.assert_close(total.covariance[k], one.covariance)
            torch.testing.assert_close(total._lost[k], one._lost)
    with pytest.raises(ValueError, match="covariance must be positive semidefinite, got the eigenvalue -1"):
        Gaussian(ZERO, torch.stack([EYE, torch.tensor([[1.0, 2.0], [2.0, 1.0]])]))
