"""The folder of a run: what was trained, how, with which versions and by which command; and who may write in it."""

import contextlib
import json
import os
import platform
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
FREE = ("epochs", "steps", "patience", "evaluate", "save", "keep", "device")


def open_folder(folder: Path, facts: Mapping[str, Any], options: Options, resume: bool) -> None:
    """Make the folder of a new run, or check that the run in it is the one to go on with."""
    path = folder / "run.json"
    if not resume:
        if path.exists():
            raise ValueError(f"{folder} holds a run already: resume it (--resume), or choose another folder (--out)")
        record = {"format": FORMAT, **facts, "options": asdict(options), "versions": versions(), "command": command()}
        record["started"] = datetime.now(UTC).isoformat(timespec="seconds")
        write_whole(path, json.dumps(record, indent=2).encode())
        return
    before = read_record(folder)
    now = {"options": asdict(options), **facts}
    for group, names in (("options", set(now["options"]) - set(FREE)), ("config", set(now.get("config", {})))):
        for name in sorted(names):
            was, wanted = before.get(group, {}).get(name), _plain(now[group][name])
            if was != wanted:
                raise ValueError(f"this run has {name}={was}, not {wanted}: leave {name} as it was, or start a new run")


def read_record(folder: Path) -> dict[str, Any]:
    """What run.json says, or one sentence about why it says nothing."""
    path = Path(folder) / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{folder} is not the folder of a run: it has no run.json") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}): restore it from a copy, or train again") from None
    if not isinstance(record, dict) or not isinstance(record.get("format"), int):
        raise ValueError(f"{path} is damaged: restore it from a copy, or train again")
    if record["format"] > FORMAT:
        raise ValueError(f"{path} was made by a newer lemmata: pip install --upgrade lemmata")
    return record


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


def versions() -> dict[str, str]:
    """What the bits of a run may depend on."""
    return {
        "lemmata": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "threads": str(torch.get_num_threads()),
    }


def command() -> str:
    """The command that started this process, as one could type it."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    words = ["lemmata" if name in ("lemmata", "__main__.py") else f"python {name}", *map(shlex.quote, sys.argv[1:])]
    return " ".join(words)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def free_folder(root: Path, stem: str) -> Path:
    """The first of stem-1, stem-2, ... that does not exist, made at once so that nobody else takes it."""
    root.mkdir(parents=True, exist_ok=True)
    numbers = [
        int(path.name.rsplit("-", 1)[1]) for path in root.glob(f"{stem}-*") if path.name.rsplit("-", 1)[1].isdigit()
    ]
    number = max(numbers, default=0) + 1
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(root / f"{stem}-{number}")
            return root / f"{stem}-{number}"
        number += 1
