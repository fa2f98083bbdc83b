"""One job: its state, its events, and its end. And what can go wrong with jobs, each a line for the page."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

__all__ = ["Job", "JobError", "JobFailed", "JobTimeout", "JobsFull", "UnknownJob"]

MOST_EVENTS = 4000
MOST_BYTES = 16 << 20


class JobError(Exception):
    """A job that cannot be, or came to nothing; the message is one line for the page."""


class JobsFull(JobError):
    """Too many jobs are waiting already."""


class JobFailed(JobError):
    """The job ended without a result."""


class JobTimeout(JobFailed):
    """The job took longer than it may."""


class UnknownJob(JobError):
    """No such job, or one that ended long ago."""


class Job:
    """A piece of work for a child process.

    `state` is queued, running, done, failed or cancelled. `events` are what the job told so far (the last of them, if
    there are many), each with an `id` that counts from 1; the very last is {"event": "done" | "failed" | "cancelled",
    "result": ..., "message": ...}.
    """

    def __init__(self, kind: str, parameters: dict[str, Any], seconds: float):
        self.id = secrets.token_hex(8)
        self.kind, self.parameters, self.seconds = kind, parameters, seconds
        self.state = "queued"
        self.events: list[dict[str, Any]] = []
        self.result: dict[str, Any] | None = None
        self.message = ""
        self.late = False
        self.over = asyncio.Event()
        self._news = asyncio.Event()
        self._told = 0
        self._sizes: list[int] = []
        self._bytes = 0

    def begin(self) -> None:
        """A child takes it up."""
        self.state = "running"
        self.tell({"event": "running"})

    def tell(self, event: dict[str, Any], size: int = 0) -> None:
        """Keep an event and wake those who follow; the oldest are dropped beyond a bound."""
        self._told += 1
        self.events.append({**event, "id": self._told})
        self._sizes.append(size)
        self._bytes += size
        while len(self.events) > MOST_EVENTS or (self._bytes > MOST_BYTES and len(self.events) > 1):
            self._bytes -= self._sizes.pop(0)
            del self.events[0]
        self._news.set()
        self._news = asyncio.Event()

    def finish(self, state: str, result: dict[str, Any] | None = None, message: str = "", size: int = 0) -> None:
        """The one end of a job; what comes later changes nothing."""
        if not self.over.is_set():
            self.state, self.result, self.message = state, result, message
            self.over.set()
            self.tell({"event": state, "result": result, "message": message}, size)

    async def follow(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Events with an id above `after`, those kept and those to come, until the job is over."""
        while True:
            news, over = self._news, self.over.is_set()
            for event in [event for event in self.events[-max(0, self._told - after) :] if event["id"] > after]:
                after = event["id"]
                yield event
            if over:
                return
            await news.wait()
