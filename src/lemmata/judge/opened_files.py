"""Which files a process reads while it judges: a verdict rests on the data that its claim opens as on its code.

Python tells its audit hooks before it opens a file or lists a folder, whoever asks: `open`, pathlib, NumPy, PIL, yaml.
What native code opens by itself is not told; safetensors is, here. Files that the process wrote before it read them are
its own, and those of Python and its packages are known by their versions.
"""

import contextlib
import functools
import hashlib
import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from lemmata.files import cache_folder
from lemmata.judge.loaded import INSIDE, installed, place

__all__ = []  # the machinery's own

Stamp = tuple[int, ...]
UNSTEADY = "changed while it was judged"
ABSENT = "absent"
STARTED = time.time_ns()
FOLDER = os.getcwd()  # where relative paths begin, for the process that asks too

_read: dict[str, Stamp | str] = {}  # path, or folder with a separator -> its state when it was first read
_written: set[str] = set()
_busy = threading.local()  # looking at a file is not reading it


@functools.cache
def watch() -> None:
    """From now on note what is read; once for each process, since a hook cannot be taken away."""
    sys.addaudithook(_audit_hook)
    with contextlib.suppress(ImportError):
        safetensors: Any = importlib.import_module("safetensors")
        safetensors.safe_open = _forward_opens(safetensors.safe_open)


def digests(beside: Path, known: Iterable[str] = ()) -> dict[str, str]:
    """Path -> digest of all that was read so far by the claims of the file `beside`; places in `known` are left out.

    A path that was given relative to the current folder stays so. What is no longer as it was when it was read is
    UNSTEADY, which no file's digest is.
    """
    roots = tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in (beside.parent, FOLDER))
    found = {}
    for path, before in list(_read.items()):
        if place(path) not in known and not _is_passing(os.path.realpath(path), before, roots):
            found[path] = digest(path, _written) if _file_state(path, _written) == before else UNSTEADY
    return found


def digest(path: str, less: Set[str] = frozenset()) -> str:
    """Of a file's content, of the names in a folder (those in `less` left out), or that there is nothing."""
    state = _file_state(path, less)
    return state if isinstance(state, str) else _state_digest(path, os.getcwd(), state)


def differs(files: Mapping[str, str]) -> str:
    """The first file that is not as it was, or nothing."""
    return next((path for path, before in files.items() if digest(path) != before), "")


def read_since(count: int = 0) -> list[str]:
    """The paths that were read after the first `count`."""
    return list(_read)[count:]


# --- The hook ---

READS = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
MAKES = {"os.rename": 1, "os.mkdir": 0}  # and which argument says what there is then


def _audit_hook(event: str, arguments: tuple[Any, ...]) -> None:
    """Must be quick, and must not raise: that would forbid what is being done."""
    if event not in READS and event not in MAKES:
        return
    if getattr(_busy, "looking", False):
        return
    _busy.looking = True
    try:
        _note_open(event, arguments)
    except (OSError, ValueError, TypeError):  # a path that is none: whoever opens it will be told
        pass
    finally:
        _busy.looking = False


def _note_open(event: str, arguments: tuple[Any, ...]) -> None:
    given = arguments[MAKES.get(event, 0)]
    if isinstance(given, int):
        return
    given = os.fsdecode(given) if given is not None else os.curdir
    path = given if not os.path.isabs(given) and os.getcwd() == FOLDER else os.path.abspath(given)
    full = os.path.abspath(path)
    if event in MAKES or (event == "open" and _replaces_file(arguments[2])):
        if path not in _read:
            _written.add(full)
        return
    if path in _read or _is_own(full) or _is_foreign(full):
        return
    if event in ("os.listdir", "os.scandir"):
        asking = sys._getframe(2).f_code.co_filename
        if "importlib" in asking or asking.endswith("pkgutil.py") or os.path.join(full, "").startswith(INSIDE):
            return  # in search of modules, or of systems
        path = os.path.join(path, "")
    _read.setdefault(path, _file_state(path, _written))


def _is_own(path: str) -> bool:
    """Whether this process made it, or a folder around it."""
    return bool(_written) and not _written.isdisjoint([path, *map(str, Path(path).parents)])


def _replaces_file(flags: int) -> bool:
    """Whether a file is opened to be written, and not to be read as well as it stands."""
    if flags & os.O_TRUNC:
        return True
    return flags & (os.O_WRONLY | os.O_RDWR) == os.O_WRONLY


def _is_foreign(path: str) -> bool:
    """Of the system, of Python and its packages, of a cache, or what the catalogue reads of ours."""
    if path.startswith(("/proc/", "/dev/", "/sys/")) or not {"__pycache__", ".cache"}.isdisjoint(path.split(os.sep)):
        return True
    if installed(path):
        return True
    real = os.path.realpath(path)
    if real.startswith(INSIDE):
        return real.endswith((".py", ".pyi", ".yaml"))
    return installed(real) or real.startswith(_ignored_prefixes())


@functools.cache
def _ignored_prefixes() -> tuple[str, ...]:
    folders = {os.path.realpath(folder) for folder in (sys.prefix, sys.base_prefix, cache_folder())}
    return tuple(f"{folder}{os.sep}" for folder in folders if folder != os.sep)


def _is_passing(real: str, state: Stamp | str, roots: tuple[str, ...]) -> bool:
    """A temporary file that was made since this process began, away from the claim: a compiler's, say."""
    new = not isinstance(state, tuple) or max(state[:2]) > STARTED
    return new and real.startswith(f"{_temporary_folder()}{os.sep}") and not real.startswith(roots)


@functools.cache
def _temporary_folder() -> str:
    return os.path.realpath(tempfile.gettempdir())


def _file_state(path: str, less: Set[str]) -> Stamp | str:
    """What any change of a file changes; of a folder the digest of its names, those in `less` left out.

    What a process wrote itself says nothing about what it read; whoever compares later sees all names there are.
    """
    _busy.looking, before = True, getattr(_busy, "looking", False)
    try:
        if path.endswith(os.sep):
            names = sorted(name for name in os.listdir(path) if os.path.abspath(path + name) not in less)
            text = "\0".join(name for name in names if name != "__pycache__")
            return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
        status = os.stat(path)
    except OSError:
        return ABSENT
    finally:
        _busy.looking = before
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


@functools.lru_cache(1024)
def _state_digest(path: str, folder: str, stamp: Stamp | str) -> str:
    """Made once for each state of a file; `folder` is the current one, from which a relative path leads."""
    _busy.looking, before = True, getattr(_busy, "looking", False)
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"
    finally:
        _busy.looking = before


def _forward_opens(opens: Any) -> Any:
    """A reader in native code that says what it opens, as Python's own do."""

    @functools.wraps(opens, updated=())
    def opening(filename: Any, *more: Any, **options: Any) -> Any:
        sys.audit("open", filename, "r", 0)
        return opens(filename, *more, **options)

    return opening
