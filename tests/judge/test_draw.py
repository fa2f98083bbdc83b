"""Drawing instances: the same stream for the same claim and seed, and the laws each method promises."""

import pytest
import torch

from lemmata.judge import Degenerate
from lemmata.judge.draw import Draw, seed_of


@pytest.fixture
def draw():
    return Draw("test.draw")


def everything(draw):
    drawn = [draw.normal(3), draw.uniform(2, 2), draw.integers(0, 10, 5), draw.signs(4), draw.unit(2, 3)]
    return [*drawn, draw.permutation(6), draw.orthogonal(3), draw.covariance(3), torch.tensor(draw.choice(range(99)))]


def test_the_same_claim_and_seed_give_the_same_bits():
    for one, other in zip(everything(Draw("a.b", 3)), everything(Draw("a.b", 3)), strict=True):
        assert one.equal(other)


@pytest.mark.parametrize("other", [("a.b", 1), ("a.c", 0)])
def test_another_seed_or_claim_gives_others(other):
    assert not Draw("a.b", 0).normal(4).equal(Draw(*other).normal(4))


def test_seeds_never_change():
    """A changed seed would change every verdict that was ever published."""
    assert seed_of("perceptron.novikoff", 0) == 9088392576986816531
    assert seed_of("perceptron.novikoff", 1) != 9088392576986816531


def test_the_global_generator_is_left_alone(draw):
    before = torch.random.get_rng_state()
    everything(draw)
    assert torch.random.get_rng_state().equal(before)


def test_numbers_are_double_whatever_the_default_is(draw):
    assert {draw.normal(2).dtype, draw.uniform(2).dtype, draw.signs(2).dtype, draw.orthogonal(2).dtype} == {
        torch.float64
    }
    assert draw.integers(0, 2, 3).dtype == torch.int64


def test_no_shape_means_one_number(draw):
    assert draw.normal().shape == draw.uniform().shape == draw.signs().shape == draw.integers(0, 5).shape == ()


def test_ranges_are_kept(draw):
    assert set(draw.integers(-2, 2, 200).tolist()) == {-2, -1, 0, 1}
    assert set(draw.signs(100).tolist()) == {-1.0, 1.0}
    uniform = draw.uniform(1000, low=-3, high=-1)
    assert -3 <= uniform.min() < -2.9
    assert -1.1 < uniform.max() <= -1
    assert sorted(draw.permutation(7).tolist()) == list(range(7))
    assert {draw.choice("abc") for _ in range(50)} == set("abc")


def test_unit_vectors_have_length_one(draw):
    assert torch.allclose(draw.unit(5, 4, 3).norm(dim=-1), torch.ones(5, 4).double())


def test_orthogonal_matrices_are_orthogonal_and_of_both_signs(draw):
    matrices = [draw.orthogonal(4) for _ in range(30)]
    assert all(torch.allclose(q @ q.T, torch.eye(4).double()) for q in matrices)
    assert {round(float(torch.linalg.det(q))) for q in matrices} == {-1, 1}


@pytest.mark.parametrize("bound", [None, -50.0, 3.0])
def test_covariances_are_well_conditioned_and_as_large_as_asked(draw, bound):
    covariance = draw.covariance(5, logdet_at_least=bound)
    assert covariance.allclose(covariance.T)
    eigenvalues = torch.linalg.eigvalsh(covariance)
    assert eigenvalues.max() / eigenvalues.min() <= 4.0001
    assert bound is None or float(torch.logdet(covariance)) >= bound - 1e-12


def test_until_gives_the_first_that_is_accepted(draw):
    assert draw.until(lambda: draw.integers(0, 10), lambda k: k == 7) == 7


def test_until_gives_up_with_advice(draw):
    with pytest.raises(Degenerate, match="no instance among 5 draws was accepted: draw them so that the lies differ"):
        draw.until(lambda: draw.normal(2), lambda x: False, tries=5)
