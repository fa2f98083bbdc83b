"""`lemmata doctor`: versions, devices, threads, caches; what is missing and the command that fixes it."""

import importlib.metadata
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from rich.markup import escape

from lemmata import __version__
from lemmata import catalog as catalogs
from lemmata.judge.engine import available_cores
from lemmata.judge.fingerprint import versions
from lemmata.judge.ledger import Ledger
from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.words import count

# What an optional part of lemmata needs, and what it is for.
EXTRAS = {
    "lab": (("fastapi", "uvicorn", "jinja2", "matplotlib", "scikit-learn"), "serve and report, figures in notebooks"),
    "ray": (("ray",), "lemmata check --engine ray"),
    "peers": (("scikit-learn", "lightning", "zuko", "diffusers"), "more rows in lemmata bench"),
    "dev": (("pytest", "ruff", "basedpyright", "import-linter", "beartype"), "tests and linters"),
}


@dataclass(frozen=True)
class Arguments:
    """Look at this installation: what is there, what is missing, and the command that fixes it."""

    json: bool = False
    """Print the findings as JSON."""


def run(arguments: Arguments) -> int:
    found, advice = examine()
    if arguments.json:
        print_json(found | {"advice": advice})
        return 1 if advice["broken"] else 0
    screen = console()
    width = max(map(len, found))
    for name, value in found.items():
        screen.print(f"  {name:{width}}  [dim]{escape(str(value))}[/]", soft_wrap=True)
    for line in advice["broken"]:
        screen.print(f"\n[bold red]! {escape(line)}[/]", soft_wrap=True)
    for line in advice["optional"]:
        screen.print(f"\n[dim]optional:[/] {escape(line)}", soft_wrap=True)
    if not advice["broken"]:
        what = f"All but {' and '.join(advice['cannot'])}" if advice["cannot"] else "Every command"
        screen.print(f"\n[green]{what} can be used here.[/]")
    return 1 if advice["broken"] else 0


def examine() -> tuple[dict[str, Any], dict[str, list[str]]]:
    """What is here, and what to do about what is not."""
    broken, optional = [], []
    found: dict[str, Any] = {"lemmata": __version__, **versions(), "cores": available_cores()}
    try:
        import torch

        found["torch threads"] = torch.get_num_threads()
        found["devices"] = ", ".join(_torch_devices(torch))
    except ImportError as error:
        broken.append(f"torch cannot be imported ({error}): pip install 'torch>=2.10'")
    ledger = Ledger()
    kept, size = ledger.size()
    found["ledger"] = f"{ledger.folder} ({count(kept, 'verdict')}, {size / 1e6:.1f} MB; delete it at will)"
    try:
        ledger.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=ledger.folder) as probe:
            probe.write(bytes(4096))
    except OSError as error:
        why = f"{ledger.folder} cannot be written ({error.strerror})"
        broken.append(f"{why}, so verdicts are not kept: set LEMMATA_CACHE to a folder of yours")
    catalog = catalogs.load()
    found["catalog"] = ", ".join(
        (
            count(len(catalog.statements), "statement"),
            count(len(catalog.claims), "claim"),
            count(len(catalog.systems), "system"),
        )
    )
    broken += catalog.problems
    for extra, (packages, purpose) in EXTRAS.items():
        missing = [package for package in packages if not _is_installed(package)]
        if missing:
            optional.append(f"{', '.join(missing)} for {purpose}: pip install 'lemmata[{extra}]'")
    if (getattr(sys.stdout, "encoding", "") or "").lower() not in ("utf-8", "utf8"):
        optional.append("the terminal does not speak UTF-8, formulas are spelled out: export PYTHONIOENCODING=utf-8")
    page = [package for package in ("fastapi", "uvicorn", "jinja2") if not _is_installed(package)]
    return found, {"broken": broken, "optional": optional, "cannot": ["serve", "report"] if page else []}


def _torch_devices(torch: Any) -> list[str]:
    devices = [f"cuda ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return devices + (["mps"] if torch.backends.mps.is_available() else []) + ["cpu"]


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
