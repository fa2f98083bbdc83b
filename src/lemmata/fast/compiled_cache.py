"""Where compiled code is kept: only in a folder that nobody else can write, and only files that are our own.

Whoever writes to such a folder runs code as us. So nothing is trusted that others could have put there, and nothing is
repaired: a folder that was open to others until now may hold their files already. Then each process makes its own
libraries, in a folder of its own that goes when it ends.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from lemmata.files import write_whole

__all__ = []  # for compiled_library

LARGEST = 1 << 26  # bytes: our libraries have some ten thousand


def why_not_trusted(folder: Path) -> str:
    """Why others could have written here, or could change what lies here; empty if they could not.

    The folder itself must be ours, no link, closed to others for writing. Above it, whoever may rename a folder may
    put another in its place: these must belong to us or to root, and be closed to others or sticky as /tmp is.
    """
    try:
        own, above = folder.lstat(), [parent.stat() for parent in folder.parent.resolve().parents]
        above.append(folder.parent.stat())
    except OSError as error:
        return f"{folder} cannot be looked at ({error.strerror})"
    if not stat.S_ISDIR(own.st_mode):
        return f"{folder} is no folder of its own"
    if own.st_uid != os.getuid():
        return f"{folder} belongs to somebody else"
    if own.st_mode & 0o022:
        return f"{folder} can be written by others (mode {stat.S_IMODE(own.st_mode):o})"
    if any(found.st_uid not in (0, os.getuid()) or _is_open(found) for found in above):
        return f"{folder} lies in a folder that others can write"
    return ""


def _is_open(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_ISVTX:
        return False
    return bool(found.st_mode & 0o002) or bool(found.st_mode & 0o020 and not _only_we(found.st_gid))


@functools.cache
def _only_we(group: int) -> bool:
    """Whether this is the group that many systems give to each user alone, and which may therefore write."""
    try:
        import grp
        import pwd

        known, us = grp.getgrgid(group), pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):
        return False
    return group == us.pw_gid and known.gr_name == us.pw_name and set(known.gr_mem) <= {us.pw_name}


def kept_folder(cache: Path) -> Path | None:
    """The folder of compiled code in the cache, made if need be; None if it cannot be trusted or cannot be made."""
    folder = cache.resolve() / "compiled"
    with contextlib.suppress(OSError):
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    if why_not_trusted(folder):
        return None
    with contextlib.suppress(OSError):
        folder.chmod(0o700)  # nobody could write here; now nobody reads either, and no umask opens a new file
    return folder


def own_folder() -> Path:
    """A folder of this process alone."""
    return _own_folder(os.getpid())  # a forked process must not lose its folder when its parent ends


@functools.cache
def _own_folder(process: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lemmata-compiled-"))  # closed to others, as mkdtemp makes it

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


# --- Files: half a library must not be run, nor one that somebody else wrote ---


def keep_library(path: Path, library: bytes) -> None:
    """Write a library and its seal; an OSError if something that is no file stands in the way."""
    write_own(_seal_file(path), _library_seal(path, library))
    write_own(path, library)


def write_own(path: Path, content: bytes) -> None:
    """Write a file that `read_own` believes, whatever the umask."""
    write_whole(path, content, lasting=False)
    path.chmod(0o600)


def is_whole(path: Path) -> bool:
    """Whether the file is what was written, by us: loading a part of a library kills the process."""
    library, seal = read_own(path), read_own(_seal_file(path))
    return library is not None and seal == _library_seal(path, library)


def read_own(path: Path) -> bytes | None:
    """What a regular file of ours holds that others cannot write; None for anything else, on which nothing waits."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(handle)
    ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    if not ours or found.st_size >= LARGEST:
        os.close(handle)
        return None
    with open(handle, "rb") as file:
        return file.read(LARGEST)


def _library_seal(path: Path, library: bytes) -> bytes:
    """The name belongs to it: a library of ours under the name of another would be called with wrong arguments."""
    return hashlib.sha256(path.name.encode() + b"\0" + library).hexdigest().encode()


def _seal_file(path: Path) -> Path:
    return path.with_suffix(".sha256")
