"""What the claims about finite laws, moments and tail bounds do not say: bad input, dtypes, sampling, gradients."""

import math

import numpy
import pytest
import torch

from lemmata.foundations import (
    FiniteDistribution,
    chebyshev_bound,
    convolve_masses,
    covariance_of_image,
    markov_bound,
    variance_of_sum,
)

POINTS, WEIGHTS = torch.tensor([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]), torch.tensor([0.5, 0.25, 0.25])
LAW = FiniteDistribution(POINTS, WEIGHTS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    law = FiniteDistribution(POINTS.to(dtype), WEIGHTS.to(dtype))
    for value in (law.mean, law.covariance, law.variance, law.mgf(torch.ones(2, dtype=dtype)), law.plus(law).mean):
        assert value.dtype is dtype
    assert chebyshev_bound(torch.ones(2, dtype=dtype), 2).dtype is dtype
    assert markov_bound(3, torch.ones(2, dtype=dtype)).dtype is dtype
    assert chebyshev_bound(1, 2).dtype is torch.float64


def test_without_weights_it_is_the_law_of_a_sample():
    x = torch.randn(50, 3, dtype=torch.float64)
    law = FiniteDistribution(x)
    torch.testing.assert_close(law.mean, x.mean(0))
    torch.testing.assert_close(law.covariance, torch.cov(x.T, correction=0))
    assert repr(law) == "FiniteDistribution(atoms=50, features=3)"


def test_samples_follow_the_generator_and_the_weights():
    draws = [LAW.sample(1000, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert draws[0].equal(draws[1])
    assert draws[0].shape == (1000, 2)
    share = (draws[0] == POINTS[0]).all(-1).float().mean()
    assert abs(share - 0.5) < 0.1
    certain = FiniteDistribution(POINTS, torch.tensor([0.0, 1.0, 0.0]))
    assert certain.sample(5).equal(POINTS[1].expand(5, 2))


def test_one_atom_has_no_variance():
    assert FiniteDistribution(torch.ones(1, 2)).covariance.equal(torch.zeros(2, 2))


def test_moments_have_gradients():
    points = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    logits = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, z: FiniteDistribution(x, z.softmax(0)).covariance, (points, logits))
    masses = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(convolve_masses, (masses, masses))


def test_convolution_of_one_outcome_moves_nothing():
    assert convolve_masses(torch.ones(1), WEIGHTS).equal(WEIGHTS)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FiniteDistribution(torch.ones(3)), ValueError, r"points must be a \(..., atoms, features\) tensor"),
        (lambda: FiniteDistribution(POINTS, WEIGHTS[:2] * 2), ValueError, "weights must sum to 1"),
        (lambda: FiniteDistribution(POINTS, torch.tensor([0.5, 0.5])), ValueError, "one number for each of 3 atoms"),
        (
            lambda: FiniteDistribution(POINTS, torch.tensor([1.5, -0.25, -0.25])),
            ValueError,
            "weights must hold probabilities",
        ),
        (lambda: FiniteDistribution(POINTS * math.inf, WEIGHTS), ValueError, "points must be finite"),
        (
            lambda: FiniteDistribution.on_grid(torch.ones(2, 2) / 4, torch.ones(2)),
            ValueError,
            "one axis for each of the values",
        ),
        (lambda: LAW.affine(torch.ones(2, 3)), ValueError, r"matrix must be a \(..., out, 2\) tensor"),
        (lambda: LAW.mgf(torch.ones(3)), ValueError, r"t must be a \(..., 2\) tensor, got shape \(3,\)"),
        (lambda: LAW.plus(FiniteDistribution(torch.ones(3, 1))), ValueError, "other must have 2 features, got 1"),
        (lambda: LAW.sample(0), ValueError, "count must be >= 1"),
        (
            lambda: FiniteDistribution(POINTS.expand(2, 3, 2)).sample(1),
            ValueError,
            "sample needs a single distribution",
        ),
        (lambda: convolve_masses(-WEIGHTS, WEIGHTS), ValueError, "first must hold probabilities"),
        (
            lambda: covariance_of_image(torch.ones(2, 3), torch.ones(2, 2)),
            ValueError,
            r"matrix must be a \(..., out, 2\)",
        ),
        (lambda: covariance_of_image(torch.ones(2, 2), torch.ones(2, 3)), ValueError, "covariance must be a"),
        (lambda: variance_of_sum(torch.tensor(1.0), torch.ones(1, 1)), ValueError, "coefficients must be a"),
        (lambda: chebyshev_bound(-1.0, 1.0), ValueError, "variance must be >= 0, got -1"),
        (lambda: chebyshev_bound(1.0, 0.0), ValueError, "distance must be > 0, got 0"),
        (lambda: markov_bound(-0.5, 1.0), ValueError, "mean must be >= 0, got -0.5"),
        (lambda: markov_bound(0.5, -1.0), ValueError, "threshold must be > 0, got -1"),
        (lambda: markov_bound(math.nan, 1.0), ValueError, "mean must be finite"),
        (lambda: markov_bound("1", 1.0), TypeError, "mean must be a number"),
    ],
)
def test_bad_input_is_named_with_its_fix(unchecked, make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_covariances_by_hand_and_their_symmetry():
    """X in {0, 2}, Y in {0, 4}, both low or both high with probability 3/4."""
    table = torch.tensor([[3.0, 1.0], [1.0, 3.0]], dtype=torch.float64) / 8
    law = FiniteDistribution.on_grid(table, *torch.tensor([[0.0, 2.0], [0.0, 4.0]], dtype=torch.float64))
    assert law.covariance.tolist() == [[1.0, 1.0], [1.0, 4.0]]
    torch.testing.assert_close(LAW.covariance, LAW.covariance.mT)


def test_affine_images_have_their_mean_and_may_have_fewer_numbers():
    matrix, offset = torch.tensor([[1.0, -2.0]]), torch.tensor([0.5])
    image = LAW.affine(matrix, offset)
    torch.testing.assert_close(image.mean, matrix @ LAW.mean + offset)
    torch.testing.assert_close(image.covariance, covariance_of_image(matrix, LAW.covariance))
    torch.testing.assert_close(variance_of_sum(matrix[0], LAW.covariance), image.variance[0])


def test_bounds_take_plain_numbers():
    assert float(chebyshev_bound(3.0, 2.0)) == 0.75
    assert float(markov_bound(2.0, 8.0)) == 0.25


def test_masses_are_convolved_in_batches():
    first, second = torch.rand(2, 4, dtype=torch.float64), torch.rand(2, 3, dtype=torch.float64)
    expected = [torch.tensor(numpy.convolve(p, q)) for p, q in zip(first, second, strict=True)]
    torch.testing.assert_close(convolve_masses(first, second), torch.stack(expected))
