"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.measure.bleu import corpus_bleu as corpus_bleu
from lemmata.measure.calibration import CalibrationError as CalibrationError
from lemmata.measure.calibration import Reliability as Reliability
from lemmata.measure.calibration import Temperature as Temperature
from lemmata.measure.calibration import calibration_error as calibration_error
from lemmata.measure.calibration import fit_temperature as fit_temperature
from lemmata.measure.calibration import reliability_curve as reliability_curve
from lemmata.measure.calibration import temperature_evidence as temperature_evidence
from lemmata.measure.covered_modes import ModeCoverage as ModeCoverage
from lemmata.measure.covered_modes import mode_coverage as mode_coverage
from lemmata.measure.curvature_products import CurvatureOperator as CurvatureOperator
from lemmata.measure.curvature_products import EmpiricalFisherOperator as EmpiricalFisherOperator
from lemmata.measure.curvature_products import FisherOperator as FisherOperator
from lemmata.measure.curvature_products import GaussNewtonOperator as GaussNewtonOperator
from lemmata.measure.curvature_products import HessianOperator as HessianOperator
from lemmata.measure.duplicates import NearTwins as NearTwins
from lemmata.measure.duplicates import agreement_of_rest as agreement_of_rest
from lemmata.measure.duplicates import equal_groups as equal_groups
from lemmata.measure.duplicates import near_twins as near_twins
from lemmata.measure.effective_samples import ChainDiagnostics as ChainDiagnostics
from lemmata.measure.effective_samples import diagnose_chains as diagnose_chains
from lemmata.measure.effective_samples import effective_sample_size as effective_sample_size
from lemmata.measure.eigenvalues import EigenPairs as EigenPairs
from lemmata.measure.eigenvalues import extreme_eigenpairs as extreme_eigenpairs
from lemmata.measure.frechet import FrechetDistance as FrechetDistance
from lemmata.measure.frechet import frechet_distance as frechet_distance
from lemmata.measure.gradient_differences import DifferencedHessian as DifferencedHessian
from lemmata.measure.gradient_noise import GradientNoise as GradientNoise
from lemmata.measure.gradient_noise import gradient_noise_scale as gradient_noise_scale
from lemmata.measure.image_quality import psnr as psnr
from lemmata.measure.image_quality import ssim as ssim
from lemmata.measure.lanczos import RitzPair as RitzPair
from lemmata.measure.lanczos import largest_ritz_pair as largest_ritz_pair
from lemmata.measure.linear_probe import LinearProbe as LinearProbe
from lemmata.measure.linear_probe import fit_linear_probe as fit_linear_probe
from lemmata.measure.maximum_mean_discrepancy import PermutationTest as PermutationTest
from lemmata.measure.maximum_mean_discrepancy import kid as kid
from lemmata.measure.maximum_mean_discrepancy import median_bandwidth as median_bandwidth
from lemmata.measure.maximum_mean_discrepancy import mmd as mmd
from lemmata.measure.maximum_mean_discrepancy import permutation_test as permutation_test
from lemmata.measure.nearest_neighbours import neighbour_accuracy as neighbour_accuracy
from lemmata.measure.probable_norm import probable_spectral_norm as probable_spectral_norm
from lemmata.measure.sample_distances import cramer_distance as cramer_distance
from lemmata.measure.sample_distances import energy_distance as energy_distance
from lemmata.measure.sample_distances import sliced_cramer as sliced_cramer
from lemmata.measure.segmentation_measures import dice as dice
from lemmata.measure.segmentation_measures import intersection_over_union as intersection_over_union
from lemmata.measure.segmentation_measures import otsu_threshold as otsu_threshold
from lemmata.measure.sharpness import LossRise as LossRise
from lemmata.measure.sharpness import Sharpness as Sharpness
from lemmata.measure.sharpness import hessian_sharpness as hessian_sharpness
from lemmata.measure.sharpness import worst_loss_rise as worst_loss_rise
from lemmata.measure.spectral import SpectralNormBounds as SpectralNormBounds
from lemmata.measure.spectral import certified_spectral_norm as certified_spectral_norm
from lemmata.measure.spectral_density import SpectralDensity as SpectralDensity
from lemmata.measure.spectral_density import stochastic_spectral_density as stochastic_spectral_density
from lemmata.measure.trace import TraceEstimate as TraceEstimate
from lemmata.measure.trace import hutch_plus_plus as hutch_plus_plus
from lemmata.measure.trace import hutchinson_trace as hutchinson_trace
from lemmata.measure.transport import Transport as Transport
from lemmata.measure.transport import optimal_transport as optimal_transport
from lemmata.measure.transport import w1_distance as w1_distance
from lemmata.measure.transport import w1_on_line as w1_on_line
from lemmata.measure.word_by_word import WordByWord as WordByWord

__all__ = [
    "CalibrationError",
    "ChainDiagnostics",
    "CurvatureOperator",
    "DifferencedHessian",
    "EigenPairs",
    "EmpiricalFisherOperator",
    "FisherOperator",
    "FrechetDistance",
    "GaussNewtonOperator",
    "GradientNoise",
    "HessianOperator",
    "LinearProbe",
    "LossRise",
    "ModeCoverage",
    "NearTwins",
    "PermutationTest",
    "Reliability",
    "RitzPair",
    "Sharpness",
    "SpectralDensity",
    "SpectralNormBounds",
    "Temperature",
    "TraceEstimate",
    "Transport",
    "WordByWord",
    "agreement_of_rest",
    "calibration_error",
    "certified_spectral_norm",
    "corpus_bleu",
    "cramer_distance",
    "diagnose_chains",
    "dice",
    "effective_sample_size",
    "energy_distance",
    "equal_groups",
    "extreme_eigenpairs",
    "fit_linear_probe",
    "fit_temperature",
    "frechet_distance",
    "gradient_noise_scale",
    "hessian_sharpness",
    "hutch_plus_plus",
    "hutchinson_trace",
    "intersection_over_union",
    "kid",
    "largest_ritz_pair",
    "median_bandwidth",
    "mmd",
    "mode_coverage",
    "near_twins",
    "neighbour_accuracy",
    "optimal_transport",
    "otsu_threshold",
    "permutation_test",
    "probable_spectral_norm",
    "psnr",
    "reliability_curve",
    "sliced_cramer",
    "ssim",
    "stochastic_spectral_density",
    "temperature_evidence",
    "w1_distance",
    "w1_on_line",
    "worst_loss_rise",
]
