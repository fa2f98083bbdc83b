"""The lab's work: a few warm child processes, a short queue, and an end to every job.

    job = jobs.start("judge", {"id": "novikoff", "seed": 0})      # a Job at once; JobsFull if too many wait
    answer = await jobs.call("probe", {...}, seconds=10)          # quick work; JobFailed, JobTimeout
    await jobs.cancel(job.id)                                     # gone within three seconds

All of it belongs to one event loop: call it from `async def` views.
"""

import asyncio
import logging
import os
import secrets
from collections import deque
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from lemmata.lab.site import work
from lemmata.lab.site.job import Job, JobFailed, JobsFull, JobTimeout, UnknownJob
from lemmata.lab.site.limits import Limits
from lemmata.lab.site.process import GRACE, ChildProcess

__all__ = ["Jobs"]

START_LIMIT = 180.0  # seconds for a child to become ready: torch on a slow disk and a busy machine
CLOSING = "the lab is closing"
logger = logging.getLogger(__name__)


class Jobs:
    """At most `running` jobs at a time, each in a child of its own, `waiting` more in line; `kept` remembered after.

    One child more answers calls alone, so that a slider moves while trainings run.
    """

    def __init__(
        self,
        running: int = 2,
        waiting: int = 8,
        kept: int = 200,
        limits: Limits | None = None,
        warm: Sequence[str] = ("lemmata.judge.runner",),
        folders: Sequence[Path] = (),
    ):
        for name, value in {"running": running, "waiting": waiting, "kept": kept}.items():
            if value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        self.running, self.waiting, self.kept = running, waiting, kept
        self.limits = limits or Limits()
        self.warm, self.folders = warm, [str(folder) for folder in folders]
        self.kinds = work.kinds(self.folders)
        self.children: list[_Child] = []
        self.closed = False
        self._calls: deque[Job] = deque()  # somebody waits for these, so they go first
        self._queue: deque[Job] = deque()
        self._table: dict[str, Job] = {}
        self._finished: deque[str] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wanted = asyncio.Event()
        self._tried = asyncio.Event()  # the first child is ready, or will not be

    # --- What views use ---

    def start(self, kind: str, parameters: dict[str, Any], seconds: float | None = None) -> Job:
        """Put a job in line and give it back at once."""
        job = self._add_job(self._queue, Job(kind, parameters, seconds or self.limits.seconds))
        self._table[job.id] = job
        return job

    async def call(self, kind: str, parameters: dict[str, Any], seconds: float = 10.0) -> dict[str, Any]:
        """The result of quick work. The clock starts once children are ready, and includes waiting for one."""
        job = self._add_job(self._calls, Job(kind, parameters, seconds))
        ready = any(child.ready for child in self.children)
        try:
            await asyncio.wait_for(job.over.wait(), seconds if ready else seconds + START_LIMIT)
        except TimeoutError:
            job.late = True
        finally:
            self._cancel_job(job)  # nobody waits for it any more; no harm if it is over
        if job.late:
            raise JobTimeout(f"no answer within {seconds:g} s")
        if job.result is None:
            raise JobFailed(job.message or CLOSING)
        return job.result

    def get(self, id: str) -> Job | None:
        """A job that was started and is not forgotten yet."""
        return self._table.get(id)

    def cancel(self, id: str) -> "asyncio.Task[None]":
        """Stop a job; await what this gives back to see its process gone. A job that is over stays as it is."""
        job = self.get(id)
        if job is None:
            raise UnknownJob("no such job; it may have ended long ago")
        self._cancel_job(job)
        return self._keep_task(_wait_until_gone(job))

    # --- Opening and closing, by the server ---

    def open(self) -> None:
        """Start the children, the first alone: importing torch twice at once would starve whoever opens the page.

        Nobody has to wait for them: jobs are taken up as soon as one is ready.
        """
        for number in range(self.running + 1):
            self._keep_task(self._run_slot(number))

    async def close(self) -> None:
        """Stop everything, within three seconds; may be repeated."""
        self.closed = True
        for job in [*self._calls, *self._queue]:
            self._finish_job(job, "cancelled", message=CLOSING)
        self._calls.clear()
        self._queue.clear()
        for child in self.children:
            child.ending = child.ending or ("cancelled", CLOSING)
        await asyncio.gather(*(child.process.stop(GRACE if child.job else 0.0) for child in self.children))
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- The line ---

    def _add_job(self, line: deque[Job], job: Job) -> Job:
        asyncio.get_running_loop()  # a view without `async` runs in another thread, which must not touch any of this
        if job.kind not in self.kinds:
            raise ValueError(f"kind must be one of {', '.join(sorted(self.kinds))}; got {job.kind!r}")
        if self.closed:
            raise JobFailed(CLOSING)
        if len(self._queue) + len(self._calls) >= self.waiting:
            raise JobsFull(f"{self.waiting} jobs are waiting already: stop one, or try again later")
        line.append(job)
        self._wanted.set()
        self._assign_jobs()
        return job

    def _next_call(self) -> Job | None:
        if self._calls:
            return self._calls.popleft()
        started = sum(child.job is not None and child.job.id in self._table for child in self.children)
        return self._queue.popleft() if self._queue and started < self.running else None

    def _assign_jobs(self) -> None:
        for child in self.children:
            if child.free and (job := self._next_call()):
                child.job, child.nonce = job, secrets.token_hex(8)
                job.begin()
                # The clock is the limit; processor time ends a child that no server and no clock is left to end.
                seconds = job.seconds * (os.cpu_count() or 1) + 10
                task = {"kind": job.kind, "parameters": job.parameters, "processor_seconds": seconds}
                child.process.give(task | {"nonce": child.nonce})
                child.limit(job.seconds, lambda child=child, job=job: self._end_overdue(child, job))

    def _cancel_job(self, job: Job) -> None:
        for line in (self._calls, self._queue):
            if job in line:
                line.remove(job)
                self._finish_job(job, "cancelled")
        for child in self.children:
            if child.job is job and not child.ending:
                self._end_job(child, "cancelled", "")

    def _end_overdue(self, child: "_Child", job: Job) -> None:
        job.late = True
        self._end_job(child, "failed", f"stopped after {job.seconds:g} s")

    def _end_job(self, child: "_Child", state: str, message: str) -> None:
        child.ending = (state, message)
        self._keep_task(child.process.stop(GRACE))

    def _finish_job(self, job: Job, state: str, **rest: Any) -> None:
        job.finish(state, **rest)
        if job.id in self._table and job.id not in self._finished:
            self._finished.append(job.id)
            while len(self._finished) > self.kept:
                del self._table[self._finished.popleft()]

    # --- The children ---

    async def _run_slot(self, number: int) -> None:
        """One place for a child: when one is gone, the next one comes."""
        if number:
            await self._tried.wait()
        while not self.closed:
            try:
                child = _Child(await ChildProcess.start(self.limits, self.warm, self.folders))
            except OSError as error:
                self._tried.set()
                await self._no_child(f"a child process cannot start: {error.strerror}")
                continue
            self.children.append(child)
            child.limit(
                START_LIMIT, lambda child=child: self._end_job(child, "failed", f"no start in {START_LIMIT:g} s")
            )
            try:
                async for message, size in child.process.messages():
                    self._hear_child(child, message, size)
            finally:
                self._tried.set()
                child.limit(None)
                await child.process.stop()
                self.children.remove(child)
                self._child_lost(child)
            if not child.ready:
                await self._no_child(child.said or child.process.epitaph())

    def _hear_child(self, child: "_Child", message: dict[str, Any], size: int) -> None:
        job = child.job
        if message.get("nonce") != child.nonce:
            return  # of an earlier task: a job may leave a process behind that goes on talking
        if job is None:
            child.ready = child.ready or "ready" in message
            child.said = message.get("failed", "")
            self._tried.set()
            child.limit(None)
        elif "event" in message:
            job.tell(message["event"], size)
        else:
            if "trace" in message:
                logger.debug("%s failed: %s", job.kind, message["trace"])
            child.job, child.nonce = None, ""
            child.limit(None)
            if "last" in message:  # it ends itself; nothing more for this one
                child.ending = child.ending or ("failed", message.get("failed", ""))
            state, text = child.ending or ("failed" if "failed" in message else "done", message.get("failed", ""))
            self._finish_job(job, state, result=message.get("result"), message=text, size=size)
        self._assign_jobs()

    def _child_lost(self, child: "_Child") -> None:
        if job := child.job:
            state, message = child.ending or ("failed", child.process.epitaph())
            self._finish_job(job, state, message=message)

    async def _no_child(self, reason: str) -> None:
        """Without any child no job can run: tell the next one so, and only then try again."""
        if any(child.ready for child in self.children) or not (self._calls or self._queue):
            self._wanted.clear()
            await self._wanted.wait()
        if not any(child.ready for child in self.children) and (job := self._next_call()):
            self._finish_job(job, "failed", message=reason)

    def _keep_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Child:
    """A child process, what it does at the moment, and the clock that runs against it."""

    def __init__(self, process: ChildProcess):
        self.process = process
        self.job: Job | None = None
        self.nonce = ""  # of the task that it does
        self.ready = False
        self.ending: tuple[str, str] | None = None
        self.said = ""
        self._clock: asyncio.TimerHandle | None = None

    @property
    def free(self) -> bool:
        return self.ready and self.job is None and self.ending is None

    def limit(self, seconds: float | None, then: Any = None) -> None:
        if self._clock:
            self._clock.cancel()
        self._clock = asyncio.get_running_loop().call_later(seconds, then) if seconds else None


async def _wait_until_gone(job: Job) -> None:
    await job.over.wait()
