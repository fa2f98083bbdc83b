"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.certified.definiteness import DefinitenessCertificate as DefinitenessCertificate
from lemmata.certified.definiteness import certify_definiteness as certify_definiteness
from lemmata.certified.exact_elimination import exact_rank as exact_rank

__all__ = [
    "DefinitenessCertificate",
    "certify_definiteness",
    "exact_rank",
]
