"""What one job may use: time, processor time, memory. Set by the child upon itself, watched by the server."""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

try:
    import resource
except ImportError:  # Windows: the time limit alone has to do
    resource = None

__all__ = ["Limits", "bound_memory", "bound_processor_time"]

WATCH_SECONDS = 0.5


def half_the_memory() -> int:
    """Half of what this machine, or the container we are in, has: two jobs may fill it, and the server still lives."""
    sizes = [4 << 30]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(file).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(sizes) // 2


@dataclass(frozen=True)
class Limits:
    """Bounds of one job; a job that is started with a time of its own keeps that."""

    seconds: float = 3600.0
    memory: int = field(default_factory=half_the_memory)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"seconds must be > 0, got {self.seconds}")
        if self.memory < 1 << 20:
            raise ValueError(f"memory must be at least 1 MiB in bytes, got {self.memory}")


def bound_memory(extra: int, too_much: Callable[[], None]) -> None:
    """From here on this process may take so many bytes more; beyond that `too_much` is called, or allocating fails."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash must not fill the disk
    if sys.platform == "linux" and not _uses_cuda():
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = _statm_bytes(0) + extra
        resource.setrlimit(resource.RLIMIT_AS, (soft if hard < 0 else min(soft, hard), hard))
    most = _resident_bytes() + extra

    def watch() -> None:
        never = threading.Event()
        while _resident_bytes() <= most:
            never.wait(WATCH_SECONDS)
        too_much()

    threading.Thread(target=watch, daemon=True).start()


def bound_processor_time(seconds: float) -> None:
    """The kernel ends this process once it has computed for so long from now, even if nobody is left to do so."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = int(sum(os.times()[:2]) + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))


def _uses_cuda() -> bool:
    """CUDA reserves addresses by the hundred gigabytes, so address space says nothing there; the watch remains."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def _resident_bytes() -> int:
    if sys.platform == "linux":
        return _statm_bytes(1)
    assert resource is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _statm_bytes(column: int) -> int:
    return int(Path("/proc/self/statm").read_text().split()[column]) * os.sysconf("SC_PAGE_SIZE")
