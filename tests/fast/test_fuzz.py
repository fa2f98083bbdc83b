"""A few hundred calls with broken arguments; `python -m tests.fast.fuzz --calls 10000 --address` makes many more."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fast.fuzz.targets import TARGETS

from lemmata import fast
from lemmata.fast.compiled_library import COMPILERS
from lemmata.fast.sparse import neighbour_attention, neighbour_extreme, neighbour_sum, paths, reference, rows


def test_every_public_name_is_called():
    rooms = (neighbour_attention, neighbour_extreme, neighbour_sum, paths, reference, rows)
    public = {*fast.__all__, *(name for room in rooms for name in room.__all__)}
    assert len(public) == 45
    kept = {
        "Pair",
        "AliasTable",
        "StepWeights",
        "Rows",
        "WordTables",
    }  # types: a name for two tensors, and what the calls are given
    assert public - kept <= set(TARGETS)


@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")
def test_broken_arguments_end_in_a_sentence_and_never_in_a_crash(pytestconfig):
    command = [sys.executable, "-m", "tests.fast.fuzz", "--calls", "400", "--seed", "1"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "400 calls of" in done.stdout
