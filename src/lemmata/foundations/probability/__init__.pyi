"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.probability.gaussian import Gaussian as Gaussian
from lemmata.foundations.probability.gaussian_distribution import GaussianDistribution as GaussianDistribution
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl as gaussian_kl
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian as DiagonalGaussian
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian as LowRankGaussian

__all__ = [
    "DiagonalGaussian",
    "Gaussian",
    "GaussianDistribution",
    "LowRankGaussian",
    "gaussian_kl",
]
