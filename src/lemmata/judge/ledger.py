"""The ledger: verdicts kept under their keys, so that what has not changed is not judged again."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lemmata.files import cache_folder, write_whole
from lemmata.judge.opened_files import differs
from lemmata.judge.verdict import Result
from lemmata.workers import parsed

__all__ = ["Ledger"]


class Ledger:
    """One small JSON file per verdict, written whole or not at all.

    A damaged entry is set aside and judged again; a folder that cannot be written costs the memory, not the verdict.
    `messages` tells what happened, once each.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = folder or cache_folder() / "ledger"
        self.messages: list[str] = []

    def get(self, key: str, at: str = "") -> Result | None:
        """The verdict under this key, if the data that it was reached with is as it was then.

        `at` is the place of the claim's file: a copy of it elsewhere has the same key, and other files beside it.
        """
        path = self._entry_path(key)
        try:
            entry = parsed(path.read_bytes())
            if entry.pop("sha256") != _entry_digest(key, entry):
                raise ValueError("the checksum does not match")
            result = Result.from_json(entry["result"])
            return None if entry["files"] and (entry["at"] != at or differs(entry["files"])) else result
        except FileNotFoundError:
            return None
        except OSError as error:
            self.tell(f"the ledger cannot be read ({error.strerror}): judging afresh")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._set_aside(path, error)
        return None

    def put(self, key: str, result: Result, files: Mapping[str, str] | None = None, at: str = "") -> None:
        """Keep a verdict, with the digests of the data that it rests on beside its key."""
        path, entry = self._entry_path(key), {"result": result.to_json(), "files": dict(files or {}), "at": at}
        text = json.dumps({"sha256": _entry_digest(key, entry), **entry}, allow_nan=False)
        try:
            write_whole(path, text.encode(), lasting=False)  # what a power cut takes is judged again
        except OSError as error:
            why = error.strerror or type(error).__name__
            self.tell(f"verdicts are shown but not kept, {self.folder} cannot be written ({why}): set LEMMATA_CACHE")

    def size(self) -> tuple[int, int]:
        """How many verdicts are kept, and their bytes."""
        sizes = [path.stat().st_size for path in self.folder.rglob("*.json")] if self.folder.exists() else []
        return len(sizes), sum(sizes)

    def _entry_path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _set_aside(self, path: Path, error: Exception) -> None:
        aside = path.with_suffix(".damaged")
        try:
            os.replace(path, aside)
        except OSError:
            aside = path
        self.tell(f"a damaged ledger entry was set aside and is judged again: {aside.name} ({error})")

    def tell(self, message: str) -> None:
        """Add a message, unless it was told before."""
        if message not in self.messages:
            self.messages.append(message)


def _entry_digest(key: str, data: Any) -> str:
    """Of an entry and its key: one under another name is damaged too."""
    return hashlib.sha256(json.dumps([key, data], sort_keys=True).encode()).hexdigest()
