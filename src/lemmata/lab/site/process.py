"""A child process as the server sees it: what it says, what it is told, and its end."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from lemmata.lab.site.limits import Limits

__all__ = ["GRACE", "ChildProcess"]

GRACE = 2.0  # seconds from asking a job to stop until its process group is killed
LONGEST_LINE = 8 << 20
# As in lemmata.judge.engine: one thread and no chance in the order of sets, so that a verdict has the same bits here.
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ENVIRONMENT |= {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}


class ChildProcess:
    """One running child. It leads its own process group, so that killing it takes along whatever it started."""

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        self.fault = ""
        self._end: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, limits: Limits, warm: Sequence[str], folders: Sequence[str]) -> "ChildProcess":
        """A new child, which will import the modules of `warm` and then say that it is ready."""
        setup = {"parent": os.getpid(), "memory": limits.memory, "warm": list(warm), "folders": list(folders)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # a file such as random.py in the current folder must not stand in for Python's own
            "-m",
            "lemmata.lab.site.child",
            json.dumps(setup),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=os.environ | ENVIRONMENT,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
        return cls(process)

    def give(self, task: dict[str, Any]) -> None:
        """Send a task. A child that is gone by now is noticed by whoever reads its messages."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(task).encode() + b"\n")

    async def messages(self) -> AsyncIterator[tuple[dict[str, Any], int]]:
        """What the child says, with the length of each line, until it is gone or talks nonsense."""
        assert self.process.stdout is not None
        try:
            while line := await self.process.stdout.readline():
                yield dict(json.loads(line)), len(line)
        except (json.JSONDecodeError, TypeError):
            self.fault = "its process spoilt the pipe on which answers travel"
        except ValueError:
            self.fault = f"its answer is longer than {LONGEST_LINE >> 20} MiB"
        try:
            await asyncio.wait_for(self.process.wait(), 1.0)
        except TimeoutError:
            self.fault = self.fault or "its process closed the pipe on which answers travel"

    async def stop(self, grace: float = 0.0) -> None:
        """End the process and its group: ask, wait for `grace` seconds, kill. Ends when it is gone; may be repeated."""
        if self._end is None:
            self._end = asyncio.create_task(self._stop(grace))
        await asyncio.shield(self._end)

    async def _stop(self, grace: float) -> None:
        if grace and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), grace)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self.process.kill()
        await self.process.wait()

    def epitaph(self) -> str:
        """Why the process ended, as well as can be known."""
        code = self.process.returncode
        if self.fault or code is None:
            return self.fault or "its process does not end"
        if code < 0 and code == -getattr(signal, "SIGKILL", 0):
            return "its process was killed, often for lack of memory"
        if code < 0 and code == -getattr(signal, "SIGXCPU", 0):
            return "its process used up the processor time that a job may have"
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"its process ended {how}"
