"""What was read from a file, kept under the file's digest, so that only what changed is read again.

Reading the source of 700 claims takes seconds, reading what was found in it milliseconds.
"""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lemmata import __version__
from lemmata.files import write_whole

__all__ = ["Index"]

MOST = 4000  # entries that were not asked for and are kept all the same: those of some earlier states of every file


class Index:
    """Entries and problems by file. A damaged or absent index costs time, nothing else.

    `kinds` are the frozen dataclasses that entries consist of; their sequences are tuples.
    """

    def __init__(self, path: Path, kinds: Iterable[type], readers: Iterable[Path]):
        self.path = path
        self.kinds = {kind.__name__: kind for kind in kinds}
        self.readers = b"".join(reader.read_bytes() for reader in readers)  # a changed reader reads differently
        self.known: dict[str, Any] = {}
        self.used: dict[str, Any] = {}
        try:
            found = json.loads(path.read_bytes())
            self.known = found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            pass

    def read(self, path: Path, kind: str, read: Callable[[list[str]], Iterable[Any]]) -> tuple[list[Any], list[str]]:
        """The entries of this kind in a file, and its problems: remembered, or found by `read`, which adds problems."""
        key = self._index_key(path, kind)
        try:
            entries, problems = self.used[key] if key in self.used else self.known[key]
            decoded = [self._decode_value(entry) for entry in entries]
        except (KeyError, ValueError, TypeError):  # not known, or damaged
            problems = []
            decoded = list(read(problems))
            entries = [self._encode_value(entry) for entry in decoded]
        self.used[key] = [entries, problems]
        return decoded, list(problems)

    def keep(self) -> None:
        """Write what is new for the next time, and forget what is oldest: a run that asks for little forgets little."""
        if self.used.keys() <= self.known.keys():
            return
        rest = [(key, entry) for key, entry in self.known.items() if key not in self.used]
        with contextlib.suppress(OSError):  # then the next time takes as long as this one
            write_whole(self.path, json.dumps(dict(rest[-MOST:]) | self.used).encode(), lasting=False)

    def _index_key(self, path: Path, kind: str) -> str:
        where = f"{__version__} {kind} {path} ".encode()
        try:
            return hashlib.sha256(where + self.readers + path.read_bytes()).hexdigest()
        except OSError:  # the reader will say what is wrong
            return hashlib.sha256(where).hexdigest()

    def _encode_value(self, value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            fields = {field.name: self._encode_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {"~": type(value).__name__, **fields}
        if isinstance(value, Path):
            return {"~": "Path", "at": str(value)}
        return [self._encode_value(item) for item in value] if isinstance(value, tuple) else value

    def _decode_value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(self._decode_value, value))
        if not isinstance(value, dict) or "~" not in value:
            return value
        if value["~"] == "Path":
            return Path(value["at"])
        fields = {name: self._decode_value(item) for name, item in value.items() if name != "~"}
        return self.kinds[value["~"]](**fields)
