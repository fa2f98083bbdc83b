"""Reading what lies in a user's folders, whatever it is by now: plain files, a bounded part of them, no waiting."""

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

__all__ = ["plain_file", "read_json", "read_lines"]

# Not through a link to somewhere else; and without O_NONBLOCK, opening a pipe waits until somebody writes.
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def plain_file(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """A regular file and its size; OSError for whatever else has that name."""
    handle = os.open(path, FLAGS)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            yield file, facts.st_size
    finally:
        os.close(handle)


def read_json(path: Path, most: int) -> dict[str, Any] | None:
    """The JSON object in a file of at most so many bytes; None if there is none that can be read."""
    try:
        with plain_file(path) as (file, size):
            found = _parse_json(file.read(most)) if size <= most else None
    except (OSError, ValueError, RecursionError):  # the last for what is nested too deeply
        return None
    return found if isinstance(found, dict) else None


def read_lines(path: Path, most: int) -> list[dict[str, Any]]:
    """The JSON objects, one a line, in the last `most` bytes of a file; none if it cannot be read."""
    try:
        with plain_file(path) as (file, size):
            file.seek(max(0, size - most))
            lines = file.read(most).split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines[size > most :]:  # the first may have lost its beginning, the last its end
        with contextlib.suppress(ValueError, RecursionError):
            found.append(_parse_json(line))
    return [entry for entry in found if isinstance(entry, dict)]


def _parse_json(text: bytes) -> Any:
    """What JSON says; ValueError also for half of a letter, which JSON can spell and no page can show."""
    found = json.loads(text)
    if b"\\ud" in text.lower():
        json.dumps(found, ensure_ascii=False).encode()
    return found
