"""Engines: where independent tasks run. Four methods: start, submit, results, stop.

The default owns its worker processes, so a claim that hangs or crashes is stopped alone and the rest goes on. Workers
are shared by our own claims; every other file has workers of its own, since what it does to torch or to the judge would
change the verdicts that come after.
"""

import functools
import os
import selectors
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lemmata.judge.fingerprint import PACKAGE, Source
from lemmata.judge.verdict import Result
from lemmata.workers import Lost, Worker, threads

__all__ = ["TIME_LIMIT", "Engine", "ProcessEngine", "Task"]

# Seconds after which a claim counts as hung: far above its class, so that a slow machine is not accused.
TIME_LIMIT = {"instant": 30.0, "quick": 120.0, "long": 1800.0}
START_LIMIT = 180.0
MEMORY = 4 << 30  # bytes that a worker on a user's file may hold: torch itself takes a tenth
ADVICE = {"killed": "try --jobs 1", "memory": "allow more with --memory"}


@dataclass(frozen=True)
class Task:
    """One claim under one seed. `sources` has the digest of each file that its verdict is to rest on."""

    id: str
    module: str
    path: str
    function: str
    cost: str = "quick"
    seed: int = 0
    sharp: bool = False
    twice: bool = False
    truth_only: bool = False
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def patience(self) -> str:
        """The class whose time limit applies: bisection runs a check some hundred times."""
        return "long" if self.sharp else self.cost

    @property
    def home(self) -> str:
        """Whose workers may run it: nobody's in particular for a claim of ours, else those of this one file."""
        return _worker_home(self.path)

    def to_json(self) -> dict[str, Any]:
        """What a worker needs to know."""
        return {name: value for name, value in vars(self).items() if name != "sources"}


@functools.cache
def _worker_home(path: str) -> str:
    return "" if PACKAGE in Path(path).parents else path


@dataclass(frozen=True)
class Answer:
    """What became of a task: the result, what the worker had loaded for it, and with which instructions it computed."""

    result: Result
    loaded: Mapping[str, str] = field(default_factory=dict)
    capability: str = ""
    left: str = ""  # what it changed for those who come after it in the same process
    opened: Mapping[str, str] = field(default_factory=dict)  # the data that was read, with digests

    @classmethod
    def failed(cls, task: Task, reason: str) -> "Answer":
        return cls(Result(task.id, "error", reason=reason, seed=task.seed))


def credited(task: Task, message: Any) -> Answer:
    """The answer in a worker's message, if it is one to this task and nothing else; ValueError if not."""
    if not isinstance(message, dict):
        raise ValueError("it is no object")
    result = Result.from_json(message.get("result"))
    for who in (message.get("id"), message.get("seed")), (result.id, result.seed):
        if who != (task.id, task.seed):
            raise ValueError("it is about another claim or seed")
    if result.truth_only and not task.truth_only:
        raise ValueError("it leaves out the lies")
    loaded, opened = _files_of_message(message, "loaded", "loaded"), _files_of_message(message, "opened", "read")
    capability, left = message.get("capability"), message.get("left")
    if not isinstance(capability, str) or not isinstance(left, str):
        raise ValueError("it does not say how it was computed")
    return Answer(result, loaded, capability, left, opened)


def _files_of_message(message: Mapping[str, Any], name: str, done: str) -> dict[str, str]:
    files = message.get(name)
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        raise ValueError(f"it does not say what was {done}")
    return files


class Engine(Protocol):
    """What runs tasks. The same tasks give the same bits on every engine. A task may be submitted between results."""

    def start(self) -> None: ...
    def submit(self, task: Task) -> None: ...
    def results(self) -> Iterator[tuple[Task, Answer]]: ...
    def stop(self) -> None: ...


class ProcessEngine:
    """Worker processes on this machine, one torch thread each; `memory` bounds those that run a user's file."""

    def __init__(self, jobs: int | None = None, time_limit: dict[str, float] | None = None, memory: int = MEMORY):
        if jobs is not None and jobs < 1:
            raise ValueError(f"jobs must be >= 1, got {jobs}")
        self.jobs = jobs or available_cores()
        self.time_limit = time_limit or TIME_LIMIT
        self.memory = memory
        self.waiting: deque[Task] = deque()
        self.workers: list[_Judge] = []
        self.selector = selectors.DefaultSelector()

    def start(self) -> None:
        """Workers start when there is work for them."""

    def submit(self, task: Task) -> None:
        self.waiting.append(task)

    def results(self) -> Iterator[tuple[Task, Answer]]:
        """Answers in the order they come, until every submitted task has one."""
        while self.waiting or any(worker.task for worker in self.workers):
            yield from self._assign_tasks()
            if not self.workers:
                continue
            soonest = min(worker.deadline for worker in self.workers)
            wait = None if soonest == float("inf") else max(0.0, soonest - time.monotonic())
            for key, _ in self.selector.select(wait):
                yield from self._hear_worker(key.data)
            for worker in [w for w in self.workers if w.deadline <= time.monotonic()]:
                yield from self._end_overdue_task(worker)

    def stop(self) -> None:
        """End every worker at once; nothing of ours is left running."""
        for worker in list(self.workers):
            self._dismiss_worker(worker)
        self.waiting.clear()

    def _assign_tasks(self) -> Iterator[tuple[Task, Answer]]:
        """Give tasks to those who may run them, and start workers for the rest."""
        for worker in [w for w in self.workers if w.ready and w.task is None]:
            task = next((task for task in self.waiting if task.home == worker.home), None)
            if task is not None and worker.up_to_date(task):
                self.waiting.remove(task)
                worker.begin(task, self.time_limit[task.patience])
            elif task is not None or (self.waiting and len(self.workers) == self.jobs):
                # Its code is old, or it takes the place of one who would have work.
                self._dismiss_worker(worker)
        starting = Counter(worker.home for worker in self.workers if not worker.ready)
        for task in list(self.waiting):
            if starting[task.home]:
                starting[task.home] -= 1
            elif len(self.workers) < self.jobs:
                yield from self._start_worker(task)

    def _start_worker(self, task: Task) -> Iterator[tuple[Task, Answer]]:
        try:
            worker = _Judge(task.home, self.memory if task.home else None)
        except OSError as error:
            self.waiting.remove(task)
            yield task, Answer.failed(task, f"a worker cannot be started: {error.strerror}")
        else:
            self.selector.register(worker.output, selectors.EVENT_READ, worker)
            self.workers.append(worker)

    def _hear_worker(self, worker: "_Judge") -> Iterator[tuple[Task, Answer]]:
        try:
            for message in worker.hear():
                if worker.task is None:
                    worker.ready, worker.deadline = True, float("inf")
                    worker.loaded = message["loaded"]
                    continue
                task, answer = worker.finish(message)
                if answer.left:
                    self._dismiss_worker(worker)
                yield task, answer
        except Lost as lost:
            if worker in self.workers:
                yield from self._answer_lost_worker(worker, f"{lost}: {ADVICE[lost.why]}" if lost.why else str(lost))

    def _end_overdue_task(self, worker: "_Judge") -> Iterator[tuple[Task, Answer]]:
        if worker.task:
            limit = self.time_limit[worker.task.patience]
            yield from self._answer_lost_worker(
                worker, f"stopped after {limit:g} s: it hangs, or its cost class is wrong"
            )
        else:
            yield from self._answer_lost_worker(
                worker, f"a worker did not start within {START_LIMIT:g} s: is the machine overloaded?"
            )

    def _answer_lost_worker(self, worker: "_Judge", reason: str) -> Iterator[tuple[Task, Answer]]:
        task = worker.task
        if task is None and not worker.ready:  # a worker that cannot start would otherwise be replaced for ever
            task = next((task for task in self.waiting if task.home == worker.home), None)
            if task:
                self.waiting.remove(task)
        self._dismiss_worker(worker)
        if task:
            yield task, Answer.failed(task, reason)

    def _dismiss_worker(self, worker: "_Judge") -> None:
        self.selector.unregister(worker.output)
        self.workers.remove(worker)
        worker.kill()


class _Judge(Worker):
    """A worker, the file whose claims alone it may judge (nothing for ours), its task, and the clock against it."""

    def __init__(self, home: str, memory: int | None) -> None:
        super().__init__([str(PACKAGE / "judge" / "loaded.py"), "lemmata.judge.worker"], threads(1), memory)
        self.home = home
        self.task: Task | None = None
        self.ready = False
        self.deadline = time.monotonic() + START_LIMIT
        self.loaded: Mapping[str, str] = {}

    def up_to_date(self, task: Task) -> bool:
        """Whether what it has loaded already is what the verdict is to rest on."""
        return all(self.loaded.get(where, digest) == digest for where, digest in task.sources.items())

    def begin(self, task: Task, limit: float) -> None:
        self.task, self.deadline = task, time.monotonic() + limit
        self.give(task.to_json())

    def finish(self, message: dict[str, Any]) -> tuple[Task, Answer]:
        """The task with its answer, if the message is that."""
        assert self.task is not None
        try:
            task, answer = self.task, credited(self.task, message)
        except ValueError as error:
            raise Lost(f"the worker's answer cannot be believed: {error}") from None
        self.task, self.deadline, self.loaded = None, float("inf"), answer.loaded
        return task, answer


def available_cores() -> int:
    """The cores this process may use, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def task_of(
    claim: Any,
    seed: int,
    sharp: bool = False,
    twice: bool = False,
    truth_only: bool = False,
    sources: Mapping[str, Source] | None = None,
) -> Task:
    """The task that judges a catalogued claim under one seed, as its sources are.

    With `sharp` it measures how sharp the check is, with `twice` it runs the truth once more, with `truth_only` no lie.
    """
    digests = {where: source.digest for where, source in (sources or {}).items()}
    path = str(claim.path.resolve())
    return Task(claim.id, claim.module, path, claim.function, claim.cost, seed, sharp, twice, truth_only, digests)
