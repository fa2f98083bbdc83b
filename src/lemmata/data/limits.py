"""Files of the user's are read up to a limit: only regular ones, and nothing is unpacked that says it is too large."""

import os
import stat
from io import BufferedReader
from pathlib import Path

__all__ = []  # for the readers of this folder; users meet `max_memory` and the messages

ELSEWHERE = 1 << 32  # bytes that are taken for free where the system does not tell
# A memory limit of a container, in the two versions of control groups that there are.
GROUPS = {
    "/sys/fs/cgroup/memory.max": "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "/sys/fs/cgroup/memory/memory.usage_in_bytes",
}


class TooLarge(ValueError):
    """A sentence that is told as it is, not as damage."""


def memory_limit(max_memory: int | None = None) -> int:
    """How many bytes the data of one file may take: what is given, else half of what is free."""
    if max_memory is None:
        return free_memory() // 2
    if isinstance(max_memory, bool) or not isinstance(max_memory, int) or max_memory < 1:
        raise ValueError(f"max_memory must be a number of bytes, at least 1, got {max_memory!r}")
    return max_memory


def free_memory() -> int:
    """Bytes that this process could still take without pushing others out, as far as the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return ELSEWHERE
    for most, used in GROUPS.items():
        try:
            free = min(free, int(Path(most).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):  # none, or "max"
            continue
    return max(free, 1)


def check_memory(what: str, needed: int, max_memory: int | None = None) -> None:
    """Refuse what would take more than the limit, before it takes any."""
    limit = memory_limit(max_memory)
    if needed > limit:
        whose = "half of the free memory" if max_memory is None else "max_memory"
        raise TooLarge(
            f"{what} needs {_size_text(needed)}, more than the {_size_text(limit)} of {whose}: use a smaller file"
        )


def open_regular(path: Path) -> BufferedReader:
    """A file, opened for reading; a FIFO would wait for ever, and a device like /dev/zero has no end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise TooLarge(f"{path} must be a regular file, got a folder, a pipe or a device")
    return open(handle, "rb")


def read_regular(path: Path, max_memory: int | None = None, times: int = 1) -> bytes:
    """The content of a file whose reading takes so many times its size."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        check_memory(f"{path}, a file of {_size_text(size)},", times * size, max_memory)
        return file.read(size + 1)  # one that grows meanwhile is not followed


def _size_text(count: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} bytes"
