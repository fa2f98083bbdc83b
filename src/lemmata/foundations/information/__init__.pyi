"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.information.discrete import cross_entropy as cross_entropy
from lemmata.foundations.information.discrete import entropy as entropy
from lemmata.foundations.information.discrete import jensen_shannon as jensen_shannon
from lemmata.foundations.information.discrete import kl_divergence as kl_divergence
from lemmata.foundations.information.discrete import mutual_information as mutual_information
from lemmata.foundations.information.discrete import total_variation as total_variation

__all__ = [
    "cross_entropy",
    "entropy",
    "jensen_shannon",
    "kl_divergence",
    "mutual_information",
    "total_variation",
]
