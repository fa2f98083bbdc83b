"""How much memory a piece of work takes at its worst, above what was held when it began.

The operating system keeps the high-water mark of a process's resident memory, and that is what counts: it sees numpy,
torch and C alike, where `tracemalloc` sees Python's own objects only, and it costs the work nothing, where sampling
from a thread takes time and misses short peaks. But it is a mark of the whole process that only rises. Hence one
process for each contender, or the greedy one would hide all others; and hence the mark is lowered before each repeat.
Linux does that on writing 5 to /proc/self/clear_refs; the warm-up, which also pays for late imports and the threads'
buffers, is then left out. Elsewhere the mark stays and later repeats hardly raise it, so the warm-up is what is told.

Memory that the C library kept from the repeat before is handed back first: it would be used again without a trace. On
a CUDA device torch counts its own memory, exactly, and that is told instead.
"""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

__all__ = ["PeakMemory"]


class PeakMemory:
    """Bytes that the work inside `with` needed at its worst, above what was held before; None where unknown.

    >>> with PeakMemory() as peak:
    ...     block = b"x" * (64 << 20)  # more than the C library ever takes from what it kept
    >>> peak.bytes >= 60 << 20
    True
    """

    def __init__(self, device: str = "cpu"):
        self.device = device
        self.bytes: int | None = None
        self.lowered = False  # whether the mark could be lowered, so that this work alone is measured

    def __enter__(self) -> "PeakMemory":
        gc.collect()
        _give_back()
        self.before = self._lower_mark()
        return self

    def __exit__(self, *_: object) -> None:
        mark = self._read_mark()
        self.bytes = None if mark is None or self.before is None else max(0, mark - self.before)

    def _lower_mark(self) -> int | None:
        """Lower the mark where possible; what it stands at now."""
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats()
            self.lowered = True
        elif sys.platform == "linux":
            with contextlib.suppress(OSError):  # a sandbox may refuse; then the mark only rises, as elsewhere
                Path("/proc/self/clear_refs").write_text("5")
                self.lowered = True
        return self._read_mark()

    def _read_mark(self) -> int | None:
        if self.device.startswith("cuda"):
            import torch

            return torch.cuda.max_memory_allocated()
        if not self.device.startswith("cpu"):
            return None
        if sys.platform == "linux":
            # Not ru_maxrss: Linux never lowers that one.
            status = Path("/proc/self/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) * 1024
        if os.name == "nt":
            return None
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS


def _give_back() -> None:
    """Return freed memory to the system, where the C library offers that (glibc does)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
