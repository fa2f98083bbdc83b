"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.connectionism.cover import count_dichotomies as count_dichotomies
from lemmata.connectionism.cover import dichotomies as dichotomies
from lemmata.connectionism.cover import fraction_separable as fraction_separable
from lemmata.connectionism.cover import in_general_position as in_general_position
from lemmata.connectionism.cover import separable_labellings as separable_labellings
from lemmata.connectionism.dense_memory import DenseAssociativeMemory as DenseAssociativeMemory
from lemmata.connectionism.dense_memory import SeparationMemory as SeparationMemory
from lemmata.connectionism.exponential_memory import ExponentialMemory as ExponentialMemory
from lemmata.connectionism.hopfield import HopfieldNetwork as HopfieldNetwork
from lemmata.connectionism.hopfield import Recall as Recall
from lemmata.connectionism.hopfield_theory import critical_load as critical_load
from lemmata.connectionism.hopfield_theory import crosstalk as crosstalk
from lemmata.connectionism.hopfield_theory import crosstalk_variance as crosstalk_variance
from lemmata.connectionism.hopfield_theory import error_free_capacity as error_free_capacity
from lemmata.connectionism.hopfield_theory import error_probability as error_probability
from lemmata.connectionism.hopfield_theory import flip_probability as flip_probability
from lemmata.connectionism.hopfield_theory import retrieval_overlap as retrieval_overlap
from lemmata.connectionism.linear_threshold import LinearThresholdUnit as LinearThresholdUnit
from lemmata.connectionism.linear_threshold import augment as augment
from lemmata.connectionism.linear_threshold import dataset_margin as dataset_margin
from lemmata.connectionism.linear_threshold import geometric_margin as geometric_margin
from lemmata.connectionism.max_margin import MaximumMarginClassifier as MaximumMarginClassifier
from lemmata.connectionism.mcculloch_pitts import McCullochPittsNetwork as McCullochPittsNetwork
from lemmata.connectionism.mcculloch_pitts import McCullochPittsNeuron as McCullochPittsNeuron
from lemmata.connectionism.mcculloch_pitts import boolean_inputs as boolean_inputs
from lemmata.connectionism.mcculloch_pitts import boolean_network as boolean_network
from lemmata.connectionism.mcculloch_pitts import threshold_gates as threshold_gates
from lemmata.connectionism.modern_hopfield import ModernHopfield as ModernHopfield
from lemmata.connectionism.modern_hopfield import ModernHopfieldLayer as ModernHopfieldLayer
from lemmata.connectionism.one_versus_rest import OneVersusRest as OneVersusRest
from lemmata.connectionism.pdp import Element as Element
from lemmata.connectionism.pdp import Moment as Moment
from lemmata.connectionism.pdp import ParallelDistributedProcess as ParallelDistributedProcess
from lemmata.connectionism.perceptron import Perceptron as Perceptron
from lemmata.connectionism.perceptron import textbook_perceptron as textbook_perceptron
from lemmata.connectionism.separability import Separation as Separation
from lemmata.connectionism.separability import separate as separate
from lemmata.connectionism.separability import signed_rows as signed_rows
from lemmata.connectionism.version_space import VersionSpace as VersionSpace

__all__ = [
    "DenseAssociativeMemory",
    "Element",
    "ExponentialMemory",
    "HopfieldNetwork",
    "LinearThresholdUnit",
    "MaximumMarginClassifier",
    "McCullochPittsNetwork",
    "McCullochPittsNeuron",
    "ModernHopfield",
    "ModernHopfieldLayer",
    "Moment",
    "OneVersusRest",
    "ParallelDistributedProcess",
    "Perceptron",
    "Recall",
    "Separation",
    "SeparationMemory",
    "VersionSpace",
    "augment",
    "boolean_inputs",
    "boolean_network",
    "count_dichotomies",
    "critical_load",
    "crosstalk",
    "crosstalk_variance",
    "dataset_margin",
    "dichotomies",
    "error_free_capacity",
    "error_probability",
    "flip_probability",
    "fraction_separable",
    "geometric_margin",
    "in_general_position",
    "retrieval_overlap",
    "separable_labellings",
    "separate",
    "signed_rows",
    "textbook_perceptron",
    "threshold_gates",
]
