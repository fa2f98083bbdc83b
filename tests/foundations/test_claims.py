"""Claims of the chapter under the seeds and against the wrong systems that once told them to be wrong or weak."""

import pytest
import torch

from lemmata.catalog import load
from lemmata.foundations.analysis.claims.gradient_dominance import (
    a_small_gradient_means_a_value_near_the_minimum,
    strong_convexity_implies_pl_and_not_conversely,
)
from lemmata.foundations.analysis.claims.smoothness import the_second_order_model_is_exact_to_third_order
from lemmata.foundations.information.claims.divergences import the_divergence_is_neither_symmetric_nor_a_metric
from lemmata.foundations.linear_algebra.claims.definiteness import (
    gram_matrices_of_kernels_are_semidefinite,
    semidefinite_matrices_have_triangular_factors,
)
from lemmata.foundations.probability.claims.gaussian import (
    mean_and_mean_square_maximise_the_likelihood,
    the_image_of_a_gaussian_is_gaussian,
)
from lemmata.foundations.probability.gaussian_distribution import GaussianDistribution
from lemmata.judge.draw import Draw
from lemmata.judge.statistics import cost_class


@pytest.mark.parametrize(
    ("claim", "seed"),
    [
        (gram_matrices_of_kernels_are_semidefinite, 6),
        (gram_matrices_of_kernels_are_semidefinite, 9),
        (strong_convexity_implies_pl_and_not_conversely, 8),
        (a_small_gradient_means_a_value_near_the_minimum, 53),
        (the_second_order_model_is_exact_to_third_order, 28),
        (mean_and_mean_square_maximise_the_likelihood, 26),
        (the_divergence_is_neither_symmetric_nor_a_metric, 56),
    ],
)
def test_the_truth_holds_under_seeds_that_once_refuted_it(claim, seed):
    evidence = claim(Draw(claim.id, seed))
    assert evidence.holds, evidence.detail


def test_noise_that_is_not_normal_is_noticed_though_its_covariance_is_right(monkeypatch):
    def uniform(self, shape, generator):
        return 12**0.5 * (torch.rand(shape, generator=generator, dtype=self.mean.dtype) - 0.5)

    token = cost_class.set("instant")
    try:
        assert the_image_of_a_gaussian_is_gaussian(Draw("gaussian.linear_map", 0)).holds
        monkeypatch.setattr(GaussianDistribution, "_normal_sample", uniform)
        assert not the_image_of_a_gaussian_is_gaussian(Draw("gaussian.linear_map", 0)).holds
    finally:
        cost_class.reset(token)


def test_another_wave_that_is_pl_is_not_called_a_lie():
    """x² + 3.5 sin² x has one stationary point and a constant of its own; x² + 5 sin² x has several."""
    for height, kept in ((3.5, True), (5.0, False)):
        evidence = strong_convexity_implies_pl_and_not_conversely(Draw("pl.strong_implies_pl", 0), height=height)
        assert evidence.holds is kept


def test_an_indefinite_matrix_is_rejected_by_its_distance_from_every_product():
    evidence = semidefinite_matrices_have_triangular_factors(Draw("linalg.cholesky", 0), lowest=-0.01)
    assert not evidence.holds
    assert evidence.margin < abs(evidence.measured - evidence.predicted)


@pytest.mark.parametrize(
    ("id", "source"),
    [("activation.sigmoid_derivative", "002"), ("matcalc.layout", "002"), ("gaussian.kl_diagonal", "001")],
)
def test_what_the_same_line_of_a_source_mends_is_notation(id, source):
    catalog = load()
    first = next(erratum for erratum in catalog.statements[id].errata if erratum.number == 1)
    assert (first.source, catalog.settled(id, first)) == (source, "notation")
