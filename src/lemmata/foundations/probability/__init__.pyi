"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.probability.densities import Density as Density
from lemmata.foundations.probability.densities import scaled_density as scaled_density
from lemmata.foundations.probability.densities import sum_density as sum_density
from lemmata.foundations.probability.finite_laws import FiniteDistribution as FiniteDistribution
from lemmata.foundations.probability.finite_laws import convolve_masses as convolve_masses
from lemmata.foundations.probability.gaussian import Gaussian as Gaussian
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl as gaussian_kl
from lemmata.foundations.probability.gaussian_divergence import kl_to_isotropic as kl_to_isotropic
from lemmata.foundations.probability.gaussian_law import GaussianLaw as GaussianLaw
from lemmata.foundations.probability.generating_functions import bernoulli_mgf as bernoulli_mgf
from lemmata.foundations.probability.generating_functions import binomial_mgf as binomial_mgf
from lemmata.foundations.probability.generating_functions import gamma_mgf as gamma_mgf
from lemmata.foundations.probability.generating_functions import mgf_of_sum as mgf_of_sum
from lemmata.foundations.probability.generating_functions import moments_from_mgf as moments_from_mgf
from lemmata.foundations.probability.generating_functions import normal_mgf as normal_mgf
from lemmata.foundations.probability.generating_functions import poisson_mgf as poisson_mgf
from lemmata.foundations.probability.integration import absolute_integral as absolute_integral
from lemmata.foundations.probability.joint_tables import JointTable as JointTable
from lemmata.foundations.probability.joint_tables import bayes_posterior as bayes_posterior
from lemmata.foundations.probability.moments import chebyshev_bound as chebyshev_bound
from lemmata.foundations.probability.moments import covariance_of_image as covariance_of_image
from lemmata.foundations.probability.moments import markov_bound as markov_bound
from lemmata.foundations.probability.moments import variance_of_sum as variance_of_sum
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian as DiagonalGaussian
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian as LowRankGaussian

__all__ = [
    "Density",
    "DiagonalGaussian",
    "FiniteDistribution",
    "Gaussian",
    "GaussianLaw",
    "JointTable",
    "LowRankGaussian",
    "absolute_integral",
    "bayes_posterior",
    "bernoulli_mgf",
    "binomial_mgf",
    "chebyshev_bound",
    "convolve_masses",
    "covariance_of_image",
    "gamma_mgf",
    "gaussian_kl",
    "kl_to_isotropic",
    "markov_bound",
    "mgf_of_sum",
    "moments_from_mgf",
    "normal_mgf",
    "poisson_mgf",
    "scaled_density",
    "sum_density",
    "variance_of_sum",
]
