"""The instrument with which claims about moments measure: against torch.cov, by hand, in batches, by samples."""

import pytest
import torch

from lemmata.foundations.probability.claims.finite_laws import FiniteDistribution

POINTS = torch.tensor([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
WEIGHTS = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
LAW = FiniteDistribution(POINTS, WEIGHTS)


def test_moments_are_sums_over_the_atoms():
    assert LAW.mean.tolist() == [0.75, 0.75]
    assert LAW.second_moment.tolist() == [[1.25, 0.25], [0.25, 0.75]]
    assert LAW.covariance.tolist() == [[0.6875, -0.3125], [-0.3125, 0.1875]]
    assert LAW.variance.tolist() == [0.6875, 0.1875]
    assert float(LAW.expectation(lambda x: x[..., 0] * x[..., 1])) == 0.25
    assert float(LAW.probability(lambda x: x[..., 1] == 1)) == 0.75
    assert LAW.probability(lambda x: x > 0).tolist() == [0.5, 0.75]


def test_without_weights_it_is_the_law_of_a_sample():
    x = torch.randn(50, 3, dtype=torch.float64)
    law = FiniteDistribution(x)
    torch.testing.assert_close(law.mean, x.mean(0))
    torch.testing.assert_close(law.covariance, torch.cov(x.T, correction=0))


def test_a_batch_is_its_laws_one_by_one():
    points, weights = torch.randn(4, 6, 2, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64).softmax(-1)
    batch, t = FiniteDistribution(points, weights), torch.randn(4, 2, dtype=torch.float64)
    for k in range(4):
        law = FiniteDistribution(points[k], weights[k])
        torch.testing.assert_close(batch.mean[k], law.mean)
        torch.testing.assert_close(batch.covariance[k], torch.cov(points[k].T, correction=0, aweights=weights[k]))
        torch.testing.assert_close(batch.mgf(t)[k], law.mgf(t[k]))
        torch.testing.assert_close(batch.plus(batch).variance[k], 2 * law.variance)
    assert FiniteDistribution(points).weights.shape == (4, 6)


def test_images_move_the_atoms_and_sums_pair_them():
    matrix, offset = torch.tensor([[1.0, -2.0]], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    assert LAW.affine(matrix, offset).points.flatten().tolist() == [-1.5, 2.5, -0.5]
    assert LAW.affine(matrix, offset).weights is WEIGHTS
    twice = LAW.plus(FiniteDistribution(POINTS[:1]))
    assert twice.points.equal(POINTS + POINTS[0])
    assert twice.weights.equal(WEIGHTS)
    assert LAW.plus(LAW).points.shape == (9, 2)
    assert float(LAW.plus(LAW).probability(lambda x: (x == 2).all(-1))) == 1 / 16


def test_the_generating_function_in_a_direction_is_that_of_the_projection():
    direction = torch.tensor([0.7, -1.2], dtype=torch.float64)
    torch.testing.assert_close(LAW.mgf(direction), LAW.affine(direction[None]).mgf(torch.ones(1).double()))
    torch.testing.assert_close(LAW.mgf(direction), (WEIGHTS * (POINTS @ direction).exp()).sum())


def test_samples_follow_the_generator_and_the_weights():
    draws = [LAW.sample(1000, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert draws[0].equal(draws[1])
    assert draws[0].shape == (1000, 2)
    share = (draws[0] == POINTS[0]).all(-1).double().mean()
    assert abs(share - 0.5) < 6 * (0.25 / 1000) ** 0.5
    certain = FiniteDistribution(POINTS, torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))
    assert certain.sample(5).equal(POINTS[1].expand(5, 2))


def test_moments_have_gradients():
    points = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    logits = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, z: FiniteDistribution(x, z.softmax(0)).covariance, (points, logits))


@pytest.mark.parametrize("weights", [[0.5, 0.25, 0.24], [1.5, -0.25, -0.25], [0.5, 0.5]])
def test_weights_that_are_no_distribution_are_refused(weights):
    with pytest.raises(ValueError, match="weights must"):
        FiniteDistribution(POINTS, torch.tensor(weights, dtype=torch.float64))
