"""`python3 dev.py test [--all] [words for pytest]`: lint, types, claims and tests, and what each of them costs.

Without a word it is what a change needs before it is sent; `--all` is what CI runs. pytest comes last, and nothing
after it: its closing line ends the output.
"""

import os
import platform
from pathlib import Path

import installation
import lint
from installation import BIN, Failed, say
from stages import PYTHON, answer, beside, say_prices, stage

# CPU minutes of everything, measured, and how much of it two cores share.
QUICK_MINUTES, ALL_MINUTES = 20, 65
CLAIM_SECONDS = 700  # of CPU: the budget of all instant and quick claims, judged twice
MOST_WORKERS = 4  # of pytest: each holds a torch of its own
NATIVE = "not slow and not browser and not long"

# Other processors than this one: torch, MKL and oneDNN held to the instructions that those have.
PROCESSORS = {
    "without AVX": {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "with AVX2 only": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}


def quick() -> int:
    """Instant and quick claims, as the ledger remembers them, and the tests that are neither slow nor in a browser."""
    announce(QUICK_MINUTES, "less where the ledger remembers claims; `test --all` is what CI runs")
    lint.style()
    with beside(*lint.TYPES):
        stage("instant and quick claims", BIN / "lemmata", "check", "--budget", CLAIM_SECONDS)
    say_prices()
    return tests("-m", NATIVE, *in_parallel())


def everything() -> int:
    """All that is known to matter: claims afresh, other seeds, other processors, every test."""
    announce(ALL_MINUTES, "everything afresh")
    lint.style()
    fresh = [BIN / "lemmata", "check", "--fresh"]
    with beside(*lint.TYPES):
        stage("instant and quick claims, twice", *fresh, "--twice", "--budget", CLAIM_SECONDS, "--slowest", 20)
    stage("their truths under three more seeds", *fresh, "--truths", "--seed", 1, "--seeds", 3)
    if found := long_claims():
        stage("long claims", *fresh, "--slowest", 5, *found)
    for name, variables in PROCESSORS.items():
        if has_instructions(name):
            stage(f"instant and quick claims {name}", *fresh, variables=variables)
            rounding = ["-m", "rounding and not long", *in_parallel()]
            stage(f"tests of rounding {name}", PYTHON, "-m", "pytest", *rounding, variables=variables)
    installation.call(
        PYTHON, "-m", "lemmata.lab.site.assets", "--dev"
    )  # the page's; what needs them is skipped without
    say_prices()
    return tests("--prices", *in_parallel())


def chosen(*words: str) -> int:
    """What the words choose, after the lint and the claims; in one process, for whoever wants to debug."""
    lint.style()
    with beside(*lint.TYPES):
        stage("instant and quick claims", BIN / "lemmata", "check", "--budget", CLAIM_SECONDS)
    return tests(*words)


def tests(*words: object) -> int:
    say("\n== pytest")
    return installation.call(PYTHON, "-m", "pytest", *words)


def announce(minutes: int, more: str) -> None:
    cores = min(MOST_WORKERS, os.cpu_count() or 1)
    say(f"About {minutes / cores:.0f} minutes on {cores} idle {'cores' if cores > 1 else 'core'}: {more}")


def in_parallel() -> tuple[object, ...]:
    # Files are shared out whole, so that fixtures are made once, and in their order: the browser's must come last, for
    # nothing can follow them in a process.
    return "-n", min(MOST_WORKERS, os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder"


def long_claims() -> list[str]:
    return [claim["id"] for claim in answer(BIN / "lemmata", "claims", "--json") if claim["cost"] == "long"]


def has_instructions(name: str) -> bool:
    """Whether this processor can pretend to be that one. Only Linux says which instructions it has."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        return "AVX2" not in name or " avx2 " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def main(*words: str) -> int:
    if "--all" not in words:
        return chosen(*words) if words else quick()
    if len(words) > 1:
        raise Failed(f"test --all runs everything and takes no more words, got {' '.join(words)}", 2)
    return everything()
