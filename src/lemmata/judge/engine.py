"""Engines: where independent tasks run. Four methods: start, submit, results, stop.

The default owns its worker processes, so a claim that hangs or crashes is stopped alone and the rest goes on.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from lemmata.judge.verdict import Result

__all__ = ["TIME_LIMIT", "Engine", "ProcessEngine", "Task"]

# Seconds after which a claim counts as hung: far above its class, so that a slow machine is not accused.
TIME_LIMIT = {"instant": 30.0, "quick": 120.0, "long": 1800.0}
START_LIMIT = 180.0


@dataclass(frozen=True)
class Task:
    """One claim under one seed."""

    id: str
    module: str
    path: str
    function: str
    cost: str = "quick"
    seed: int = 0
    sharp: bool = False

    @property
    def patience(self) -> str:
        """The class whose time limit applies: bisection runs a check some hundred times."""
        return "long" if self.sharp else self.cost


class Engine(Protocol):
    """What runs tasks. The same tasks give the same bits on every engine."""

    def start(self) -> None: ...
    def submit(self, task: Task) -> None: ...
    def results(self) -> Iterator[tuple[Task, Result]]: ...
    def stop(self) -> None: ...


class ProcessEngine:
    """Worker processes on this machine, one torch thread each."""

    def __init__(self, jobs: int | None = None, time_limit: dict[str, float] | None = None):
        if jobs is not None and jobs < 1:
            raise ValueError(f"jobs must be >= 1, got {jobs}")
        self.jobs = jobs or available_cores()
        self.time_limit = time_limit or TIME_LIMIT
        self.waiting: deque[Task] = deque()
        self.workers: list[_Worker] = []
        self.selector = selectors.DefaultSelector()

    def start(self) -> None:
        """Workers start when there is work for them."""

    def submit(self, task: Task) -> None:
        self.waiting.append(task)

    def results(self) -> Iterator[tuple[Task, Result]]:
        """Results in the order they come, until every submitted task has one."""
        while self.waiting or any(worker.task for worker in self.workers):
            self._assign()
            soonest = min(worker.deadline for worker in self.workers)
            wait = None if soonest == float("inf") else max(0.0, soonest - time.monotonic())
            for key, _ in self.selector.select(wait):
                worker: _Worker = key.data
                yield from self._read(worker)
            for worker in [w for w in self.workers if w.deadline <= time.monotonic()]:
                yield from self._overdue(worker)

    def stop(self) -> None:
        """End every worker at once; nothing of ours is left running."""
        for worker in list(self.workers):
            self._dismiss(worker)
        self.waiting.clear()

    def _assign(self) -> None:
        idle = sum(worker.task is None for worker in self.workers)
        while len(self.workers) < self.jobs and idle < len(self.waiting):
            worker = _Worker()
            self.selector.register(worker.output, selectors.EVENT_READ, worker)
            self.workers.append(worker)
            idle += 1
        for worker in self.workers:
            if worker.ready and worker.task is None and self.waiting:
                task = self.waiting.popleft()
                worker.give(task, self.time_limit[task.patience])

    def _read(self, worker: "_Worker") -> Iterator[tuple[Task, Result]]:
        lines = worker.read()
        if lines is None:
            yield from self._lost(worker, worker.epitaph())
            return
        for line in lines:
            message = json.loads(line)
            if message == {"ready": True}:
                worker.ready, worker.deadline = True, float("inf")
            elif worker.task:
                task, worker.task, worker.deadline = worker.task, None, float("inf")
                yield task, Result.from_json(message)

    def _overdue(self, worker: "_Worker") -> Iterator[tuple[Task, Result]]:
        if worker.task:
            limit = self.time_limit[worker.task.patience]
            yield from self._lost(worker, f"stopped after {limit:g} s: it hangs, or its cost class is wrong")
        else:
            yield from self._lost(
                worker, f"a worker did not start within {START_LIMIT:g} s: is the machine overloaded?"
            )

    def _lost(self, worker: "_Worker", reason: str) -> Iterator[tuple[Task, Result]]:
        task = worker.task
        if task is None and not worker.ready and self.waiting:
            task = self.waiting.popleft()  # a worker that cannot start would otherwise be replaced for ever
        self._dismiss(worker)
        if task:
            yield task, Result(task.id, "error", reason=reason, seed=task.seed)

    def _dismiss(self, worker: "_Worker") -> None:
        self.selector.unregister(worker.output)
        self.workers.remove(worker)
        worker.kill()


class _Worker:
    """One process with its pipes. It leads its own group, so that killing it takes its children along."""

    def __init__(self) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        same = {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}  # the order of a set decides last bits too
        self.process = subprocess.Popen(
            # -P: a file such as random.py in the current folder must not stand in for Python's own.
            [sys.executable, "-P", "-m", "lemmata.judge.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, **threads, **same},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self.task: Task | None = None
        self.ready = False
        self.deadline = time.monotonic() + START_LIMIT
        self.buffer = b""

    def give(self, task: Task, limit: float) -> None:
        self.task, self.deadline = task, time.monotonic() + limit
        # A worker that died while idle is noticed by the read that follows.
        with contextlib.suppress(BrokenPipeError):
            self.input.write(json.dumps(vars(task)).encode() + b"\n")
            self.input.flush()

    def read(self) -> list[bytes] | None:
        """Whole lines that arrived; None once the process is gone."""
        data = os.read(self.output.fileno(), 1 << 16)
        if not data:
            return None
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return lines

    def epitaph(self) -> str:
        """Why the process ended, as well as can be known."""
        try:
            code = self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:  # it closed the pipe and runs on
            return "the worker closed the pipe its results travel on"
        self.errors.seek(0)
        last = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()][-1:]
        if code == -signal.SIGKILL:
            return "the worker was killed, often for lack of memory: try --jobs 1"
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"the worker ended {how}{': ' + last[0][:200] if last else ''}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.input, self.output, self.errors):
            with contextlib.suppress(OSError):
                stream.close()


def available_cores() -> int:
    """The cores this process may use, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def task_of(claim: Any, seed: int, sharp: bool = False) -> Task:
    """The task that judges a catalogued claim under one seed, and with `sharp` measures how sharp its check is."""
    return Task(claim.id, claim.module, str(claim.path.resolve()), claim.function, claim.cost, seed, sharp)
