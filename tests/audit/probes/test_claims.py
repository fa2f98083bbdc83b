"""What probes rest on exists: every claim that one names."""

import importlib
import pkgutil
from pathlib import Path

import lemmata
from lemmata.audit import probes


def words(named):
    """The names in a tuple, or in a table of tuples."""
    if isinstance(named, dict):
        named = list(named.values())
    return [named] if isinstance(named, str) else [word for part in named for word in words(part)]


def test_every_claim_named_is_a_statement():
    files = Path(lemmata.__file__).parent.rglob("statements.yaml")
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    known = {line.removeprefix("- id:").strip() for line in lines if line.startswith("- id:")}
    assert len(known) > 400
    for entry in pkgutil.iter_modules(probes.__path__):
        module = importlib.import_module(f"{probes.__name__}.{entry.name}")
        named = set(words(getattr(module, "CLAIMS", ())))
        assert named <= known, f"{entry.name} names {named - known}"
