"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.meta.architecture_search import Elementwise as Elementwise
from lemmata.meta.architecture_search import MixedOperation as MixedOperation
from lemmata.meta.architecture_search import search_architecture as search_architecture
from lemmata.meta.bilevel import BilevelResult as BilevelResult
from lemmata.meta.bilevel import ridge_solution as ridge_solution
from lemmata.meta.bilevel import solve_bilevel as solve_bilevel
from lemmata.meta.episode_norm import EpisodeNorm as EpisodeNorm
from lemmata.meta.episodes import Episodes as Episodes
from lemmata.meta.inner_loop import Parameters as Parameters
from lemmata.meta.inner_loop import adapt as adapt
from lemmata.meta.inner_loop import outputs_after as outputs_after
from lemmata.meta.learned_optimizer import LearnedOptimizer as LearnedOptimizer
from lemmata.meta.learned_optimizer import LearnedRates as LearnedRates
from lemmata.meta.learned_optimizer import unroll as unroll
from lemmata.meta.maml import ANIL as ANIL
from lemmata.meta.maml import FirstOrderMAML as FirstOrderMAML
from lemmata.meta.maml import MAML as MAML
from lemmata.meta.maml import MAMLConfig as MAMLConfig
from lemmata.meta.reptile import Reptile as Reptile
from lemmata.meta.reptile import ReptileConfig as ReptileConfig

__all__ = [
    "ANIL",
    "BilevelResult",
    "Elementwise",
    "EpisodeNorm",
    "Episodes",
    "FirstOrderMAML",
    "LearnedOptimizer",
    "LearnedRates",
    "MAML",
    "MAMLConfig",
    "MixedOperation",
    "Parameters",
    "Reptile",
    "ReptileConfig",
    "adapt",
    "outputs_after",
    "ridge_solution",
    "search_architecture",
    "solve_bilevel",
    "unroll",
]
