"""Krylov spaces that end, starts that miss the top, early ends, bad input, dtypes."""

import math
from fractions import Fraction

import pytest
import torch

from lemmata.certified.rounding import fractions
from lemmata.measure.lanczos import krylov_space, largest_ritz_pair, measured_pair
from lemmata.measure.probable_norm import krylov_miss_probability

DIAGONAL = torch.tensor([1.0, 2.0, 3.0])


def times(x):
    return DIAGONAL.to(x.dtype) * x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    found = largest_ritz_pair(times, torch.ones(4, 3, dtype=dtype), steps=2)
    assert {value.dtype for value in found} == {dtype}
    assert found.vector.shape == (4, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_in_its_basis_the_operator_is_tridiagonal_but_for_what_remains(dtype, steps):
    """A batch of two, the second 2^20 times larger than the first."""
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(2, 9, 9, generator=generator, dtype=torch.float64)
    matrix = ((half + half.mT) * torch.tensor([1.0, 2.0**20])[:, None, None]).to(dtype)
    start = torch.randn(2, 9, generator=generator, dtype=torch.float64).to(dtype)
    space = krylov_space(lambda x: (matrix @ x[..., None])[..., 0], start, steps)
    assert space.basis.shape == (2, steps, 9)
    basis, scale = space.basis.double(), torch.ldexp(torch.ones(2).double(), space.exponent)
    lower = torch.tril(space.tridiagonal)
    inside = (lower + lower.tril(-1).mT) * scale[:, None, None]  # the lower triangle is what counts
    apart = basis @ matrix.double() - inside @ basis
    slack = 40 * torch.finfo(dtype).eps
    size = torch.linalg.matrix_norm(matrix.double(), 2)
    torch.testing.assert_close(
        basis[:, 0] * start.double().norm(dim=-1)[:, None], start.double(), rtol=slack, atol=slack
    )
    assert ((basis @ basis.mT - torch.eye(steps).double()).abs() <= slack).all()
    assert (apart[:, :-1].norm(dim=-1) <= slack * size[:, None]).all()
    remains = space.remainder * scale
    assert ((apart[:, -1].norm(dim=-1) - remains).abs() <= slack * size).all()
    assert (remains > 0.01 * size).all() if steps < 9 else (remains <= slack * size).all()


@pytest.mark.parametrize("exponent", [-1000, 0, 1000])
@pytest.mark.parametrize(("lost", "more"), [(0.0, 0.0), (0.25, 0.0), (0.0, 0.5), (0.25, 0.5)])
def test_a_measured_residual_is_rounded_up_and_hardly_more(exponent, lost, more):
    values = torch.tensor([1.0, 2.0, 5.0, -3.0], dtype=torch.float64).ldexp(torch.tensor(exponent))
    vector = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    found = measured_pair(lambda x: values * x, vector / vector.norm(), lost, more * 2.0**exponent)
    x, scaled = fractions(found.vector), fractions(values)
    squares = sum(entry**2 for entry in x)
    quotient = sum(value * entry**2 for value, entry in zip(scaled, x, strict=True)) / squares
    assert found.value.item() == pytest.approx(float(quotient), rel=1e-14)
    value = Fraction(found.value.item())
    beside = sum(((one - value) * entry) ** 2 for one, entry in zip(scaled, x, strict=True)) / squares
    image = sum((one * entry) ** 2 for one, entry in zip(scaled, x, strict=True))
    unit = Fraction(2) ** exponent
    truth = (float(beside / unit**2) ** 0.5 + lost * float(image / unit**2) ** 0.5 + more) * 2.0**exponent
    assert truth * (1 + 2.0**-52) <= found.residual.item() <= truth * (1 + 40 * 2.0**-52)


def test_a_residual_allows_for_the_rounding_of_sums_of_that_length():
    size, eps = 2000, torch.finfo(torch.float64).eps
    generator = torch.Generator().manual_seed(0)
    values, drawn = (torch.randn(size, generator=generator, dtype=torch.float64) for _ in range(2))
    found = measured_pair(lambda x: values * x, drawn / drawn.norm())
    pairs = list(zip(values.tolist(), found.vector.tolist(), strict=True))
    length = math.fsum(x * x for _, x in pairs)
    truth = math.sqrt(math.fsum(((value - found.value.item()) * x) ** 2 for value, x in pairs) / length)
    assert truth * (1 + size * eps) <= found.residual.item() <= truth * (1 + (size + 60) * eps)
    exact = measured_pair(lambda x: D * x, torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64))
    assert exact.residual.item() == pytest.approx(2 * eps * 3.0, rel=1e-9, abs=0)  # of the image, whatever is left
    nothing = measured_pair(lambda x: 0 * x, exact.vector, lost_at_most=1.0)
    assert 1 + 4 * eps < nothing.residual.item() <= 1 + 6 * eps


def test_the_residual_includes_what_products_of_that_length_may_lose():
    found = largest_ritz_pair(times, torch.tensor([0.0, 0.0, 1.0]), steps=1)  # the eigenvector itself
    assert found.residual.item() == pytest.approx((3 + 1) * 2.0**-24 * 3.0, rel=1e-5, abs=0)


def test_spaces_that_lead_nowhere_new():
    start = torch.randn(2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    same, nothing = largest_ritz_pair(lambda x: x, start, 5), largest_ritz_pair(lambda x: 0 * x, start, 5)
    torch.testing.assert_close(same.value, torch.ones(2, dtype=torch.float64))
    assert nothing.value.tolist() == [0, 0]
    for found in (same, nothing):
        torch.testing.assert_close(found.vector.norm(dim=-1), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("size", [2.0**-80, 1.0, 2.0**80])
def test_a_start_without_the_top_vector_finds_the_next_and_then_a_random_one_the_top(size):
    values = size * torch.tensor([3.0, 1e-3, 2.0, 5.0], dtype=torch.float64)
    start = torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    for steps, top in ((3, 0), (4, 3)):
        found = largest_ritz_pair(lambda x: values * x, start, steps)
        torch.testing.assert_close(found.value, values[top], rtol=1e-14, atol=0.0)
        assert found.vector[top].abs() == pytest.approx(1)
        assert found.residual <= 1e-13 * size


D = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e-13, 1.0, 1e13, 1e200, 1e308])
def test_the_size_of_a_start_does_not_matter(size):
    found = largest_ritz_pair(lambda x: D * x, size * torch.ones(3, dtype=torch.float64), steps=3)
    torch.testing.assert_close(found.value, D[2], rtol=1e-14, atol=0.0)
    torch.testing.assert_close(largest_ritz_pair(times, torch.full((3,), 1e-13), steps=3).value, DIAGONAL[2])


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-310, 1e-170, 1e-30, 1e30, 1e170, 5e307])
@pytest.mark.parametrize("start", [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
def test_no_operator_is_too_small_or_too_large(size, start):
    values = size * D
    found = largest_ritz_pair(lambda x: values * x, torch.tensor(start).double(), steps=3)
    least = torch.finfo(torch.float64).smallest_normal * 2.0**-52
    assert abs(found.value - values[2]) <= max(1e-15 * values[2], least)
    assert found.vector[2].abs() == pytest.approx(1)
    assert 0 < found.residual <= max(1e-14 * values[2], least)


def test_batches_may_have_several_axes():
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(2, 3, 5, generator=generator, dtype=torch.float64)
    start = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64)
    found = largest_ritz_pair(lambda x: values * x, start, steps=3)
    rows = largest_ritz_pair(lambda x: values.flatten(0, 1) * x, start.flatten(0, 1), steps=3)
    for whole, flat in zip(found, rows, strict=True):
        torch.testing.assert_close(whole.flatten(0, 1), flat, rtol=1e-12, atol=1e-14)


def test_operators_of_all_sizes_are_taken_in_one_batch():
    sizes = torch.tensor([[1e-320], [1.0], [5e307]], dtype=torch.float64)
    found = largest_ritz_pair(lambda x: sizes * D * x, torch.ones(3, 3, dtype=torch.float64), steps=3)
    torch.testing.assert_close(found.value, sizes[:, 0] * 3, rtol=1e-14, atol=0.0)
    unlike = torch.tensor([1e200, 1e-200], dtype=torch.float64)  # and within one operator
    assert largest_ritz_pair(lambda x: unlike * x, torch.tensor([0.0, 1.0]).double(), steps=2).value == 1e200


@pytest.mark.parametrize("seed", range(3))
def test_a_flat_spectrum_is_no_end_of_a_space(seed):
    values = torch.ones(1000)
    values[0] = 1.0012
    start = torch.randn(1000, generator=torch.Generator().manual_seed(seed))
    found = largest_ritz_pair(lambda x: values * x, start, steps=40)
    torch.testing.assert_close(found.value, values[0], rtol=1e-6, atol=0.0)


def test_residuals_in_single_precision_are_those_of_the_definition():
    half = torch.randn(60, 60, generator=torch.Generator().manual_seed(0))
    gram = half @ half.mT
    found = largest_ritz_pair(lambda x: (gram @ x[..., None])[..., 0], half[0], steps=60)
    x, value = found.vector.double(), found.value.double()
    truth = (gram.double() @ x - value * x).norm() / x.norm()
    assert 1e-6 < truth <= found.residual <= 61 * 2.0**-24 * value + 2 * truth
    assert (torch.linalg.eigvalsh(gram.double()) - value).abs().min() <= found.residual


def test_the_largest_eigenvalue_of_any_sign_is_found():
    assert largest_ritz_pair(lambda x: -7 * x, torch.ones(1), steps=9).value == -7
    assert largest_ritz_pair(lambda x: -D * x, torch.ones(3, dtype=torch.float64), steps=3).value == pytest.approx(-1)


def test_a_random_vector_that_repeats_the_start_is_drawn_again():
    start = torch.randn(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = largest_ritz_pair(lambda x: x, start, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(found.value.item(), 1.0)


def test_in_a_batch_it_is_drawn_again_though_only_one_repeats():
    start = torch.randn(2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start[1] = torch.arange(6.0)
    basis = krylov_space(lambda x: x, start, 4, torch.Generator().manual_seed(0)).basis
    assert ((basis @ basis.mT - torch.eye(4).double()).abs() < 1e-14).all()


def test_whoever_misses_began_nearly_orthogonal_to_the_top_vector():
    size, steps, error = 50, 8, 0.15
    generator = torch.Generator().manual_seed(0)
    # All other values lie where Chebyshev's polynomial, of which the bound is made, is as small as it can be.
    nodes = (1 + torch.cos(torch.linspace(0, math.pi, size - 1, dtype=torch.float64))) / 2
    values = torch.cat([torch.ones(1).double(), 0.8 * nodes])
    start = torch.randn(500, size, generator=generator, dtype=torch.float64)
    start[:, 0] *= torch.rand(500, generator=generator, dtype=torch.float64) ** 3
    missed = largest_ritz_pair(lambda x: values * x, start, steps).value < 1 - error
    along = start[:, 0].abs() / start.norm(dim=-1)
    rare = krylov_miss_probability(size, steps, error) / math.sqrt(2 * size / math.pi)
    assert missed.any()
    assert (along[missed] <= rare).all()


def test_an_exhausted_space_ends_the_search_in_the_exact_value():
    for start in (torch.tensor([0.0, 0.0, 1.0]), torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 2.0]])):
        found = largest_ritz_pair(times, start, steps=3)
        torch.testing.assert_close(found.value, torch.full_like(found.value, 3.0))


@pytest.mark.parametrize("size", [2.0**-80, 1.0, 2.0**80])
def test_accuracy_is_relative_and_ends_the_search_early(size):
    calls = []
    values = size * torch.linspace(0, 1, 200, dtype=torch.float64) ** 4

    def counted(x):
        calls.append(1)
        return values * x

    found = largest_ritz_pair(counted, torch.ones(200, dtype=torch.float64), steps=200, accuracy=1e-3)
    # Looked at after every eighth step, the residual is 8e-3 after 16 and 6e-4 after 24; then it is measured.
    assert len(calls) == 25
    assert found.residual <= 1e-3 * found.value
    residual = (values * found.vector - found.value * found.vector).norm()
    torch.testing.assert_close(found.residual, residual, rtol=1e-6, atol=0.0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: largest_ritz_pair(times, torch.zeros(3), 2), ValueError, "start must be .* without zero vectors"),
        (lambda: largest_ritz_pair(times, torch.tensor(1.0), 2), ValueError, r"start must be a \(..., n\) tensor"),
        (lambda: largest_ritz_pair(times, torch.zeros(0), 2), ValueError, "start must not be empty"),
        (lambda: largest_ritz_pair(times, torch.ones(3).half(), 2), TypeError, "float32 or float64, got torch.float16"),
        (lambda: largest_ritz_pair(lambda x: x / 0, torch.ones(3), 2), ValueError, "operator must give finite images"),
        (lambda: largest_ritz_pair(lambda x: x * math.nan, torch.ones(3), 2), ValueError, "got infinite or NaN"),
        (lambda: largest_ritz_pair(lambda x: 3e38 * x.sum() + 0 * x, torch.ones(9), 2), ValueError, "that .* can hold"),
        (lambda: largest_ritz_pair(times, torch.ones(3), 0), ValueError, "steps must be >= 1, got 0"),
        (lambda: largest_ritz_pair(times, torch.ones(3), 2, math.nan), ValueError, "accuracy must be finite"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
