"""The folder of a run: what was trained, how, with which versions and by which command; and who may write in it."""

import contextlib
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lemmata import __version__
from lemmata.files import write_whole
from lemmata.train.options import Options

__all__ = ["read_record"]

FORMAT = 1
# What may change between the start of a run and its resumption: how long, how often, where; not what it computes.
FREE = ("epochs", "steps", "patience", "evaluate", "save", "save_seconds", "keep", "device")
# objects in a record; `classes` is a list of names
GROUPS = ("options", "config", "arguments", "notes", "preparation", "shapes", "versions")
NAMES = ("system", "built", "recipe", "data", "metric", "class", "command", "started")


def open_folder(
    folder: Path, facts: Mapping[str, Any], options: Options, resume: bool, here: Mapping[str, str]
) -> None:
    """Make the folder of a new run, or check that the run in it is the one to go on with; `here` are the versions."""
    path = folder / "run.json"
    if not resume:
        if path.exists():
            raise ValueError(
                f"{folder} holds a run already: resume it (--resume; resume=True), or choose another folder (--out)"
            )
        record = {"format": FORMAT, **facts, "options": asdict(options), "versions": dict(here), "command": command()}
        record["started"] = datetime.now(UTC).isoformat(timespec="seconds")
        if wrong := _wrong_entry(_plain_json(record)):
            raise ValueError(f"record cannot be kept: {wrong}")
        write_whole(path, json.dumps(record, indent=2).encode())
        return
    before = read_record(folder)
    now = {"options": asdict(options), **facts}
    for group, names in (("options", set(now["options"]) - set(FREE)), ("config", set(now.get("config", {})))):
        for name in sorted(names):
            was, wanted = before.get(group, {}).get(name), _plain_json(now[group][name])
            if was != wanted:
                raise ValueError(f"this run has {name}={was}, not {wanted}: leave {name} as it was, or start a new run")


def read_record(folder: Path) -> dict[str, Any]:
    """What run.json says, or one sentence about why it says nothing."""
    path = Path(folder) / "run.json"
    try:
        if path.exists() and not path.is_file():  # a pipe would keep us waiting
            raise ValueError("it is not a file")
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{folder} is not the folder of a run: it has no run.json") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read ({error}): restore it from a copy, or train again") from None
    if not isinstance(record, dict) or type(record.get("format")) is not int or record["format"] < 1:
        raise ValueError(f"{path} is damaged: restore it from a copy, or train again")
    if record["format"] > FORMAT:
        raise ValueError(f"{path} was made by a newer lemmata: pip install --upgrade lemmata")
    if wrong := _wrong_entry(record):
        raise ValueError(f"{path} is damaged ({wrong}): restore it from a copy, or train again")
    return record


def _wrong_entry(record: Mapping[str, Any]) -> str:
    """Which entry of a record is not of its kind, if there is one."""
    for name, value in record.items():
        if name in GROUPS and not isinstance(value, dict):
            return f"{name} must be an object"
        if name in NAMES and not isinstance(value, str):
            return f"{name} must be a string"
        if name == "classes" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            return "classes must be a list of names"
    return ""


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """One training at a time: two would spoil each other's checkpoints. The lock dies with its holder."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (folder / "run.json").open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another process is training in {folder}: wait for it, or choose another folder"
            ) from None
        except OSError:
            pass  # some network drives know no locks
        yield


def versions(device: torch.device | None = None, processes: int = 1) -> dict[str, str]:
    """What the bits of a run may depend on."""
    device = device or torch.device("cpu")
    asked = (f"{name}={os.environ[name]}" for name in ("MKL_CBWR", "ONEDNN_MAX_CPU_ISA") if os.environ.get(name))
    return {
        "lemmata": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "threads": str(torch.get_num_threads()),
        "instructions": " ".join([torch.backends.cpu.get_cpu_capability(), *asked]),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processes": str(processes),
    }


def differing(before: Mapping[str, str], here: Mapping[str, str]) -> str:
    """What is other than it was, as words; nothing if all is the same or was not noted.

    >>> differing({"torch": "2.12.0", "threads": "2"}, {"torch": "2.12.0", "threads": "1", "device": "cpu"})
    'threads 1, was 2'
    """
    changed = [name for name in here if name in before and before[name] != here[name]]
    return "; ".join(f"{name} {here[name]}, was {before[name]}" for name in changed)


def command() -> str:
    """The command that started this process, as one could type it."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    words = ["lemmata" if name in ("lemmata", "__main__.py") else f"python {name}", *map(shlex.quote, sys.argv[1:])]
    return " ".join(words)


def _plain_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def numbered_folders(root: Path, stem: str) -> dict[int, Path]:
    """What is named stem-1, stem-2, ...; stem-1-backup and stem-old are somebody's own."""
    found = [(re.fullmatch(r"-(0|[1-9][0-9]*)", path.name[len(stem) :]), path) for path in root.glob(f"{stem}-*")]
    return {int(match[1]): path for match, path in found if match}


def free_folder(root: Path, stem: str) -> Path:
    """The first of stem-1, stem-2, ... after all that exist, made at once so that nobody else takes it."""
    root.mkdir(parents=True, exist_ok=True)
    number = max(numbered_folders(root, stem), default=0) + 1
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(root / f"{stem}-{number}")
            return root / f"{stem}-{number}"
        number += 1
