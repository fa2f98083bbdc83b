"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.information.change_of_measure import change_of_measure_bound as change_of_measure_bound
from lemmata.foundations.information.change_of_measure import gibbs_distribution as gibbs_distribution
from lemmata.foundations.information.discrete import cross_entropy as cross_entropy
from lemmata.foundations.information.discrete import entropy as entropy
from lemmata.foundations.information.discrete import jensen_shannon as jensen_shannon
from lemmata.foundations.information.discrete import kl_divergence as kl_divergence
from lemmata.foundations.information.discrete import surprisal as surprisal
from lemmata.foundations.information.discrete import total_variation as total_variation
from lemmata.foundations.information.joint_information import conditional_entropy as conditional_entropy
from lemmata.foundations.information.joint_information import mutual_information as mutual_information
from lemmata.foundations.information.sampled_information import SampledDivergence as SampledDivergence
from lemmata.foundations.information.sampled_information import empirical_distribution as empirical_distribution
from lemmata.foundations.information.sampled_information import empirical_joint as empirical_joint
from lemmata.foundations.information.sampled_information import sampled_entropy as sampled_entropy
from lemmata.foundations.information.sampled_information import sampled_kl as sampled_kl

__all__ = [
    "SampledDivergence",
    "change_of_measure_bound",
    "conditional_entropy",
    "cross_entropy",
    "empirical_distribution",
    "empirical_joint",
    "entropy",
    "gibbs_distribution",
    "jensen_shannon",
    "kl_divergence",
    "mutual_information",
    "sampled_entropy",
    "sampled_kl",
    "surprisal",
    "total_variation",
]
