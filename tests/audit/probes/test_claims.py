"""What probes rest on exists: every claim that one names."""

import importlib
import pkgutil
from pathlib import Path

import lemmata
from lemmata.audit import probes


def test_every_claim_named_is_a_statement():
    files = Path(lemmata.__file__).parent.rglob("statements.yaml")
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    known = {line.removeprefix("- id:").strip() for line in lines if line.startswith("- id:")}
    assert len(known) > 400
    for entry in pkgutil.iter_modules(probes.__path__):
        module = importlib.import_module(f"{probes.__name__}.{entry.name}")
        named = set(getattr(module, "CLAIMS", ()))
        assert named <= known, f"{entry.name} names {named - known}"
