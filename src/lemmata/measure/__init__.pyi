"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.measure.bleu import corpus_bleu as corpus_bleu
from lemmata.measure.curvature_products import CurvatureOperator as CurvatureOperator
from lemmata.measure.curvature_products import EmpiricalFisherOperator as EmpiricalFisherOperator
from lemmata.measure.curvature_products import FisherOperator as FisherOperator
from lemmata.measure.curvature_products import GaussNewtonOperator as GaussNewtonOperator
from lemmata.measure.curvature_products import HessianOperator as HessianOperator
from lemmata.measure.definiteness import DefinitenessCertificate as DefinitenessCertificate
from lemmata.measure.definiteness import certify_definiteness as certify_definiteness
from lemmata.measure.eigenvalues import EigenPairs as EigenPairs
from lemmata.measure.eigenvalues import extreme_eigenpairs as extreme_eigenpairs
from lemmata.measure.gradient_noise import GradientNoise as GradientNoise
from lemmata.measure.gradient_noise import gradient_noise_scale as gradient_noise_scale
from lemmata.measure.lanczos import RitzPair as RitzPair
from lemmata.measure.lanczos import largest_ritz_pair as largest_ritz_pair
from lemmata.measure.probable_norm import probable_spectral_norm as probable_spectral_norm
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
from lemmata.measure.word_by_word import WordByWord as WordByWord

__all__ = [
    "CurvatureOperator",
    "DefinitenessCertificate",
    "EigenPairs",
    "EmpiricalFisherOperator",
    "FisherOperator",
    "GaussNewtonOperator",
    "GradientNoise",
    "HessianOperator",
    "LossRise",
    "RitzPair",
    "Sharpness",
    "SpectralDensity",
    "SpectralNormBounds",
    "TraceEstimate",
    "WordByWord",
    "certified_spectral_norm",
    "certify_definiteness",
    "corpus_bleu",
    "extreme_eigenpairs",
    "gradient_noise_scale",
    "hessian_sharpness",
    "hutch_plus_plus",
    "hutchinson_trace",
    "largest_ritz_pair",
    "probable_spectral_norm",
    "stochastic_spectral_density",
    "worst_loss_rise",
]
