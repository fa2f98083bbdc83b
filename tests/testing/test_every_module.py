"""Every module that is marked as a system, checked by lemmata.testing.check_module in one process, or in two.

The process is another one than pytest's, in which jaxtyping checks shapes and would refuse wrong inputs first.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# What still falls: an entry that no longer does must be deleted.
KNOWN: dict[str, set[str]] = {}


def fallen(*arguments):
    """Each (module, check) that fell and is not known to, or is known to and did not; and how many modules ran."""
    child = [sys.executable, str(Path(__file__).with_name("every_module.py")), *arguments]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {line["system"]: line["fell"] for line in map(json.loads, done.stdout.splitlines())}
    new = [
        f"{name} does not pass {check}: {why}"
        for name, fell in found.items()
        for check, why in fell.items()
        if check not in KNOWN.get(name, ())
    ]
    if arguments:
        return new, len(found)
    mended = [
        f"{name} passes {check}: delete it from KNOWN"
        for name, checks in KNOWN.items()
        for check in sorted(checks - set(found[name]))
    ]
    return new + mended, len(found)


def test_every_module_passes():
    wrong, modules = fallen()
    assert not wrong, "\n".join(wrong)
    assert modules >= 74


@pytest.mark.long
def test_networks_of_many_layers_are_traced():
    wrong, modules = fallen("--costly")
    assert not wrong, "\n".join(wrong)
    assert modules == 11
