"""What tests and doctests share: shapes checked, one thread, the same random numbers, a cache of their own."""

import importlib.util
import itertools
import signal

import jaxtyping
import pytest

from lemmata.catalog import CHAPTERS

# Before any chapter is imported: from here on every annotated shape is checked.
FOLDERS = (*CHAPTERS, "certified", "measure")
jaxtyping.install_import_hook([f"lemmata.{folder}" for folder in FOLDERS], "beartype.beartype")

import torch  # noqa: E402

pytest_plugins = ["pytester", "pytest_marks", "pytest_prices"]  # the last two from the folder dev
# What is written in Triton can be imported only where it is installed, which is where there is a GPU.
KERNELS = ["src/lemmata/fast/scan_triton*.py", "src/lemmata/fast/sparse/row_kernels*.py"]
collect_ignore_glob = [] if importlib.util.find_spec("triton") else KERNELS
# A shell that starts us in the background, and nohup, let us ignore Ctrl-C and a closed terminal, and with us every
# process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
torch.set_num_threads(1)
tests = itertools.count()


@pytest.fixture(scope="session")
def caches(tmp_path_factory):
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def _alone(monkeypatch, caches, doctest_namespace):
    """No test sees what another drew or kept."""
    monkeypatch.setenv("LEMMATA_CACHE", str(caches / str(next(tests))))
    doctest_namespace["torch"] = torch
    torch.manual_seed(0)


@pytest.fixture
def unchecked(monkeypatch):
    """Bad input must be refused by the library itself, not by the shape checks that tests add."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
