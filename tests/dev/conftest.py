"""A scratch project for dev.py: a folder with a space in its name, a real `.venv` without pip, a pip that obeys."""

import contextlib
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAKE_PIP = """
import pathlib, sys, sysconfig
home = pathlib.Path({home!r})
with open(home / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
words = (home / "words").read_text()
if words:
    sys.exit(words)
if sys.argv[1] == "wheel":
    pathlib.Path(sys.argv[sys.argv.index("-w") + 1], "lemmata-0.1.0-py3-none-any.whl").write_bytes(b"x" * 5000)
site, scripts = (pathlib.Path(sysconfig.get_path(kind)) for kind in ("purelib", "scripts"))
(site / "torch-2.13.0.dist-info").mkdir(exist_ok=True)
(site / "torch-2.13.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\\nName: torch\\nVersion: 2.13.0\\n")
(site / "torch.py").write_text("")
(site / "lemmata.pth").write_text(str(home / "src"))
for name in ("lemmata", "pytest", "ruff", "basedpyright", "lint-imports"):
    (scripts / name).write_text("")
    (scripts / name).chmod(0o755)
"""


SCRIPTS = ("installation", "lint", "prices", "slow", "stages", "suite", "torture")


def load(folder):
    spec = importlib.util.spec_from_file_location("dev", folder / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install_fake_pip(home):
    site = next(home.glob(".venv/lib/python*/site-packages"))
    (site / "pip").mkdir()
    (site / "pip/__init__.py").touch()
    (site / "pip/__main__.py").write_text(FAKE_PIP.format(home=str(home)))
    (site / "pip-1.dist-info").mkdir()
    (site / "pip-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: pip\nVersion: 1\n")


@pytest.fixture
def dev(tmp_path, monkeypatch):
    home = tmp_path / "a project"
    (home / "src/lemmata").mkdir(parents=True)
    (home / "src/lemmata/__init__.py").touch()
    (home / "words").touch()
    for name in ("dev.py", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, home / name)
    shutil.copytree(ROOT / "dev", home / "dev", ignore=shutil.ignore_patterns("__pycache__"))
    for name in SCRIPTS:  # those of the scratch folder, for this test alone
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = load(home)
    real = module.installation.output

    def output(*command):
        if "venv" not in command:
            return real(*command)
        outcome = real(*command, "--without-pip")
        install_fake_pip(home)
        return outcome

    monkeypatch.setattr(module.installation, "output", output)
    monkeypatch.delenv("TORCH", raising=False)
    monkeypatch.chdir(tmp_path)
    return module


@pytest.fixture
def script(dev, monkeypatch):
    """The commands a word would run, each succeeding unless its name is in `failing`."""
    record = []
    failing = set()

    def call(*command, variables=None):
        words = [Path(command[0]).name, *map(str, command[1:])]
        record.append(" ".join([*(f"{k}={v}" for k, v in (variables or {}).items()), *words]))
        return 3 if failing & set(words) else 0

    @contextlib.contextmanager
    def beside(title, command):
        record.append(f"beside: {command.name}")
        yield

    monkeypatch.setattr(dev.installation, "setup", lambda: None)
    monkeypatch.setattr(dev.installation, "call", call)
    monkeypatch.setattr(importlib.import_module("stages"), "beside", beside)
    monkeypatch.setattr(importlib.import_module("suite"), "long_claims", lambda: ["mine.long"])
    return record, failing
