"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.measure.bleu import corpus_bleu as corpus_bleu
from lemmata.measure.curvature_products import CurvatureOperator as CurvatureOperator
from lemmata.measure.curvature_products import EmpiricalFisherOperator as EmpiricalFisherOperator
from lemmata.measure.curvature_products import FisherOperator as FisherOperator
from lemmata.measure.curvature_products import GaussNewtonOperator as GaussNewtonOperator
from lemmata.measure.curvature_products import HessianOperator as HessianOperator
from lemmata.measure.definiteness import DefinitenessCertificate as DefinitenessCertificate
from lemmata.measure.definiteness import certify_definiteness as certify_definiteness
from lemmata.measure.lanczos import RitzPair as RitzPair
from lemmata.measure.lanczos import largest_ritz_pair as largest_ritz_pair
from lemmata.measure.probable_norm import probable_spectral_norm as probable_spectral_norm
from lemmata.measure.spectral import SpectralNormBounds as SpectralNormBounds
from lemmata.measure.spectral import certified_spectral_norm as certified_spectral_norm
from lemmata.measure.word_by_word import WordByWord as WordByWord

__all__ = [
    "CurvatureOperator",
    "DefinitenessCertificate",
    "EmpiricalFisherOperator",
    "FisherOperator",
    "GaussNewtonOperator",
    "HessianOperator",
    "RitzPair",
    "SpectralNormBounds",
    "WordByWord",
    "certified_spectral_norm",
    "certify_definiteness",
    "corpus_bleu",
    "largest_ritz_pair",
    "probable_spectral_norm",
]
