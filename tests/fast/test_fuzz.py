"""A few hundred calls with broken arguments; `python -m tests.fast.fuzz --calls 10000 --address` makes many more."""

import importlib
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.fast.fuzz.edges_and_sequences import ALL

from lemmata import fast
from lemmata.fast import sparse
from lemmata.fast.compiled_library import COMPILERS


def test_every_public_name_is_called():
    names = [room.name for room in pkgutil.iter_modules(sparse.__path__) if not room.name.startswith("row_kernels")]
    rooms = [importlib.import_module(f"lemmata.fast.sparse.{name}") for name in names]
    public = {*fast.__all__, *(name for room in rooms for name in room.__all__)}
    assert {"row_sums", "sorted_edges", "linear_row_sums"} <= public
    kept = {
        "Pair",
        "AliasTable",
        "StepWeights",
        "Rows",
        "WordTables",
    }  # types: a name for two tensors, and what the calls are given
    assert public - kept <= set(ALL)


def test_every_operator_is_called():
    defined = {
        name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names() if "lemmata::" in name
    }
    assert {f"ops.{name}" for name in defined} <= set(ALL)


@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")
def test_broken_arguments_end_in_a_sentence_and_never_in_a_crash(pytestconfig):
    command = [sys.executable, "-m", "tests.fast.fuzz", "--calls", "400", "--seed", "1"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "400 calls of" in done.stdout
