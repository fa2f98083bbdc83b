"""A child process as the server sees it: what it says, what it is told, and its end."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from lemmata.lab.site.limits import Limits
from lemmata.workers import parsed, signal_name, threads

__all__ = ["GRACE", "ChildProcess"]

GRACE = 2.0  # seconds from asking a job to stop until its process group is killed
LINGER = 1.0  # seconds for its last words after its end, or for its end after its last words
LONGEST_LINE = 8 << 20
# What a message may hold: see child.py.
FORM = {"nonce": str, "ready": bool, "event": dict, "result": dict, "failed": str, "trace": str, "last": bool}
KINDS = frozenset({"ready", "event", "result", "failed"})  # one of these it is
SIGNALS = {
    getattr(signal, "SIGKILL", 0): "was killed, often for lack of memory",
    getattr(signal, "SIGXCPU", 0): "used up the processor time that a job may have",
}


class ChildProcess:
    """One running child. It leads its own process group, so that killing it takes along whatever it started."""

    def __init__(self, process: asyncio.SubprocessTransport, streams: "_Streams"):
        self.process, self.streams = process, streams
        self.fault = ""
        self._heard = asyncio.Event()
        self._burial = asyncio.create_task(self._reap_process())
        self._end: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, limits: Limits, warm: Sequence[str], folders: Sequence[str]) -> "ChildProcess":
        """A new child, which will import the modules of `warm` and then say that it is ready."""
        setup = {"parent": os.getpid(), "memory": limits.memory, "warm": list(warm), "folders": list(folders)}
        process, streams = await asyncio.get_running_loop().subprocess_exec(
            _Streams,
            sys.executable,
            "-P",  # a file such as random.py in the current folder must not stand in for Python's own
            "-m",
            "lemmata.lab.site.child",
            json.dumps(setup),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | threads(1),  # as in the judge's workers, so that a slider computes the bits of the ledger
            start_new_session=True,
        )
        return cls(process, streams)

    def give(self, task: dict[str, Any]) -> None:
        """Send a task. A child that is gone by now is noticed by whoever reads its messages."""
        pipe = self.process.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        pipe.write(json.dumps(task).encode() + b"\n")

    async def messages(self) -> AsyncIterator[tuple[dict[str, Any], int]]:
        """What the child says, with the length of each line, until it is gone or talks nonsense."""
        try:
            while line := await self.streams.answers.readline():
                yield _child_message(line), len(line)
        except _NonsenseError:
            self.fault = "its process spoilt the pipe on which answers travel"
        except ValueError:
            self.fault = f"its answer is longer than {LONGEST_LINE >> 20} MiB"
        self._heard.set()
        try:
            await asyncio.wait_for(asyncio.shield(self._burial), LINGER)
        except TimeoutError:
            self.fault = self.fault or "its process closed the pipe on which answers travel"

    async def stop(self, grace: float = 0.0) -> None:
        """End the process and its group: ask, wait for `grace` seconds, kill. Ends when it is gone; may be repeated."""
        if self._end is None:
            self._end = asyncio.create_task(self._stop_process(grace))
        await asyncio.shield(self._end)

    async def _stop_process(self, grace: float) -> None:
        if grace and self.process.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.streams.ended.wait(), grace)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.get_pid(), signal.SIGKILL) if hasattr(os, "killpg") else self.process.kill()
        await self._burial

    async def _reap_process(self) -> None:
        """Wait for the end, hear what was said before it, and close the pipes.

        A process that the child left behind may hold them open for ever, and whoever reads them would wait on.
        """
        await self.streams.ended.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), LINGER)
        self.process.close()

    def epitaph(self) -> str:
        """Why the process ended, as well as can be known."""
        code = self.process.get_returncode()
        if self.fault or code is None:
            return self.fault or "its process does not end"
        if code >= 0:
            return f"its process ended with exit code {code}"
        return f"its process {SIGNALS.get(-code) or f'ended by signal {signal_name(-code)}'}"


class _Streams(asyncio.SubprocessProtocol):
    """What comes from a child, and its end; asyncio's own streams know of no end while anybody holds the pipes."""

    def __init__(self) -> None:
        self.answers, self.ended = asyncio.StreamReader(limit=LONGEST_LINE), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        if pipe := transport.get_pipe_transport(1):
            self.answers.set_transport(pipe)  # which is not read on while too much waits

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.answers.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.answers.feed_eof()

    def process_exited(self) -> None:
        self.ended.set()


class _NonsenseError(Exception):
    """A line that no child of ours writes."""


def _child_message(line: bytes) -> dict[str, Any]:
    """One line of a child, which is an object of known form; what a job does to the pipe may be anything."""
    try:
        found = parsed(line)
    except ValueError:
        raise _NonsenseError from None
    if not isinstance(found, dict) or KINDS.isdisjoint(found):
        raise _NonsenseError
    if not all(key in FORM and isinstance(value, FORM[key]) for key, value in found.items()):
        raise _NonsenseError
    return found
