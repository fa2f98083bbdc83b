"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.fast.compiled_library import load_compiled as load_compiled
from lemmata.fast.glove_sweep import WordTables as WordTables
from lemmata.fast.glove_sweep import sweep_entries as sweep_entries
from lemmata.fast.glove_sweep import sweep_entries_compiled as sweep_entries_compiled
from lemmata.fast.glove_sweep import sweep_entries_in_torch as sweep_entries_in_torch
from lemmata.fast.perceptron_sweep import block_sweep as block_sweep
from lemmata.fast.perceptron_sweep import compiled_sweep as compiled_sweep
from lemmata.fast.perceptron_sweep import fingerprint as fingerprint
from lemmata.fast.perceptron_sweep import quick_sweep as quick_sweep
from lemmata.fast.scan import linear_scan as linear_scan
from lemmata.fast.scan_chunked import chunked_backward as chunked_backward
from lemmata.fast.scan_chunked import chunked_forward as chunked_forward
from lemmata.fast.scan_compiled import compiled_backward as compiled_backward
from lemmata.fast.scan_compiled import compiled_forward as compiled_forward
from lemmata.fast.scan_compiled import why_not_compiled as why_not_compiled
from lemmata.fast.scan_paths import scan_path as scan_path
from lemmata.fast.scan_reference import Pair as Pair
from lemmata.fast.scan_reference import compose_steps as compose_steps
from lemmata.fast.scan_reference import scan_by_doubling as scan_by_doubling
from lemmata.fast.scan_reference import scan_by_halving as scan_by_halving
from lemmata.fast.scan_reference import scan_by_steps as scan_by_steps
from lemmata.fast.skip_gram_sweep import AliasTable as AliasTable
from lemmata.fast.skip_gram_sweep import alias_negatives as alias_negatives
from lemmata.fast.skip_gram_sweep import alias_table as alias_table
from lemmata.fast.skip_gram_sweep import sweep_pairs as sweep_pairs
from lemmata.fast.skip_gram_sweep import sweep_pairs_compiled as sweep_pairs_compiled
from lemmata.fast.skip_gram_sweep import sweep_pairs_in_torch as sweep_pairs_in_torch
from lemmata.fast.threads import even_bounds as even_bounds
from lemmata.fast.threads import share_work as share_work
from lemmata.fast.wavenet_steps import StepWeights as StepWeights
from lemmata.fast.wavenet_steps import compiled_steps as compiled_steps
from lemmata.fast.wavenet_steps import drawn_level as drawn_level
from lemmata.fast.wavenet_steps import one_step as one_step
from lemmata.fast.wavenet_steps import why_no_compiled_steps as why_no_compiled_steps

__all__ = [
    "AliasTable",
    "Pair",
    "StepWeights",
    "WordTables",
    "alias_negatives",
    "alias_table",
    "block_sweep",
    "chunked_backward",
    "chunked_forward",
    "compiled_backward",
    "compiled_forward",
    "compiled_steps",
    "compiled_sweep",
    "compose_steps",
    "drawn_level",
    "even_bounds",
    "fingerprint",
    "linear_scan",
    "load_compiled",
    "one_step",
    "quick_sweep",
    "scan_by_doubling",
    "scan_by_halving",
    "scan_by_steps",
    "scan_path",
    "share_work",
    "sweep_entries",
    "sweep_entries_compiled",
    "sweep_entries_in_torch",
    "sweep_pairs",
    "sweep_pairs_compiled",
    "sweep_pairs_in_torch",
    "why_no_compiled_steps",
    "why_not_compiled",
]
