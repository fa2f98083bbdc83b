"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.generalization.binary_kl import bernoulli_kl as bernoulli_kl
from lemmata.generalization.binary_kl import kl_inverse as kl_inverse
from lemmata.generalization.certificate import Certificate as Certificate
from lemmata.generalization.certificate import certify as certify
from lemmata.generalization.error_parts import ErrorParts as ErrorParts
from lemmata.generalization.error_parts import decompose as decompose
from lemmata.generalization.error_parts import lipschitz_deviation as lipschitz_deviation
from lemmata.generalization.flatness import NoiseRise as NoiseRise
from lemmata.generalization.flatness import noise_rise as noise_rise
from lemmata.generalization.min_norm import MinNormRisk as MinNormRisk
from lemmata.generalization.min_norm import double_descent_risk as double_descent_risk
from lemmata.generalization.min_norm import min_norm_fit as min_norm_fit
from lemmata.generalization.pac_bayes import pac_bayes_bound as pac_bayes_bound
from lemmata.generalization.pac_bayes import pac_bayes_objective as pac_bayes_objective
from lemmata.generalization.pac_bayes_classifier import PACBayesClassifier as PACBayesClassifier
from lemmata.generalization.risk_bounds import RiskBound as RiskBound
from lemmata.generalization.risk_bounds import dkw_bound as dkw_bound
from lemmata.generalization.risk_bounds import finite_class_bound as finite_class_bound
from lemmata.generalization.risk_bounds import sauer_bound as sauer_bound
from lemmata.generalization.risk_bounds import test_set_bound as test_set_bound
from lemmata.generalization.risk_bounds import vc_bound as vc_bound
from lemmata.generalization.shattering import growth_function as growth_function
from lemmata.generalization.shattering import is_shattered as is_shattered
from lemmata.generalization.shattering import labellings as labellings
from lemmata.generalization.shattering import sine_frequency as sine_frequency
from lemmata.generalization.shattering import vc_dimension as vc_dimension
from lemmata.generalization.stochastic_network import StochasticNetwork as StochasticNetwork
from lemmata.generalization.width_sweep import FittedWidths as FittedWidths
from lemmata.generalization.width_sweep import WidthSweepClassifier as WidthSweepClassifier

__all__ = [
    "Certificate",
    "ErrorParts",
    "FittedWidths",
    "MinNormRisk",
    "NoiseRise",
    "PACBayesClassifier",
    "RiskBound",
    "StochasticNetwork",
    "WidthSweepClassifier",
    "bernoulli_kl",
    "certify",
    "decompose",
    "dkw_bound",
    "double_descent_risk",
    "finite_class_bound",
    "growth_function",
    "is_shattered",
    "kl_inverse",
    "labellings",
    "lipschitz_deviation",
    "min_norm_fit",
    "noise_rise",
    "pac_bayes_bound",
    "pac_bayes_objective",
    "sauer_bound",
    "sine_frequency",
    "test_set_bound",
    "vc_bound",
    "vc_dimension",
]
