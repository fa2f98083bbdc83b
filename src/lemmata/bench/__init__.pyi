"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.bench.child import Prepared as Prepared
from lemmata.bench.memory import PeakMemory as PeakMemory
from lemmata.bench.registry import BenchEntry as BenchEntry
from lemmata.bench.registry import Contender as Contender
from lemmata.bench.registry import Seconds as Seconds
from lemmata.bench.registry import agreement as agreement
from lemmata.bench.registry import entries as entries
from lemmata.bench.registry import entry as entry
from lemmata.bench.registry import limit as limit
from lemmata.bench.registry import ours as ours
from lemmata.bench.registry import peer as peer
from lemmata.bench.results import BenchRow as BenchRow
from lemmata.bench.results import Target as Target
from lemmata.bench.results import rows_of as rows_of
from lemmata.bench.results import save_results as save_results
from lemmata.bench.rounds import Measured as Measured
from lemmata.bench.rounds import contest as contest
from lemmata.bench.rounds import installed as installed

__all__ = [
    "BenchEntry",
    "BenchRow",
    "Contender",
    "Measured",
    "PeakMemory",
    "Prepared",
    "Seconds",
    "Target",
    "agreement",
    "contest",
    "entries",
    "entry",
    "installed",
    "limit",
    "ours",
    "peer",
    "rows_of",
    "save_results",
]
