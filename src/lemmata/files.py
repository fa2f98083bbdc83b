"""Files that are there whole or not at all, and where lemmata keeps what it can make again."""

import contextlib
import errno
import os
import secrets
import stat
import sys
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["cache_folder", "read_whole", "write_whole"]

DRAFT = ".lemmata.tmp"  # how the names of drafts end: .NAME.0123456789abcdef.lemmata.tmp


def cache_folder() -> Path:
    """Where lemmata keeps what it can make again: LEMMATA_CACHE, else the system's cache folder."""
    if chosen := os.environ.get("LEMMATA_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lemmata"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lemmata"


def read_whole(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes; a pipe or a device, which may never end, is refused."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise ValueError(f"{path} must be a regular file, not a folder, pipe or device: copy the file itself")
    with os.fdopen(handle, "rb") as file:
        content = file.read(most + 1) if found.st_size <= most else b""
    if max(found.st_size, len(content)) > most:
        raise ValueError(f"{path} must have at most {most:,} bytes, got {found.st_size:,}: it is another kind of file")
    return content


def write_whole(path: Path, data: bytes, lasting: bool = True) -> None:
    """Write a file so that a crash at any moment leaves the old content or the new, never a part.

    The draft lies in the same folder, since a rename is atomic only within one file system; it is flushed to the disk
    before the rename, and the folder after it, or a power cut could bring back a name without its content. What can be
    made again need not last through a power cut: `lasting=False` saves the waits for the disk. Drafts that killed
    processes left in the folder are removed first: on a full disk they may be what fills it.
    """
    _make_folder(path.parent, lasting)
    remove_dead_drafts(path.parent)
    handle, draft = _open_draft(path)
    try:
        try:
            _write_all(handle, data)
            if lasting:
                _sync_file(handle)
            if fcntl:
                os.replace(draft, path)  # still locked, so that nobody takes the draft for a dead process's
        finally:
            os.close(handle)
        if not fcntl:
            os.replace(draft, path)  # Windows renames closed files only
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    if lasting:
        sync_folder(path.parent)


def remove_dead_drafts(folder: Path) -> None:
    """Remove drafts whose writers are gone; a living one, on this machine or another, holds a lock on its draft.

    Process numbers would not do: they are used again, and another container or machine has its own.
    """
    if not fcntl:
        return
    with os.scandir(folder) as entries:
        drafts = [entry for entry in entries if entry.name.startswith(".") and entry.name.endswith(DRAFT)]
    for draft in (entry.path for entry in drafts if entry.is_file(follow_symlinks=False)):
        with contextlib.suppress(OSError):  # locked, gone by now, somebody else's, or no locks here: leave it
            handle = os.open(draft, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(draft)
            finally:
                os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in this folder last; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network drives cannot, and order renames themselves
            raise
    finally:
        os.close(handle)


def _make_folder(folder: Path, lasting: bool) -> None:
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing if lasting else ():
        sync_folder(made.parent)  # a folder's own name must last too


def _open_draft(path: Path) -> tuple[int, Path]:
    while True:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{DRAFT}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        if _lock_draft(handle):
            return handle, draft
        os.close(handle)


def _lock_draft(handle: int) -> bool:
    """Lock a draft; False if somebody who removes dead drafts was quicker."""
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: nobody else can lock the draft, so nobody removes it
    return os.fstat(handle).st_nlink > 0


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        written = os.write(handle, rest)  # may be short: a signal, a quota, or more than 2 GiB
        if not written:
            raise OSError(errno.EIO, "the disk takes no more")
        rest = rest[written:]


def _sync_file(handle: int) -> None:
    if sys.platform == "darwin" and fcntl:
        with contextlib.suppress(OSError):  # fsync on macOS stops at the drive's own cache
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)
