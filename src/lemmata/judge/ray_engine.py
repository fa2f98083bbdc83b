"""Ray tasks as an engine: the same claims on more machines. Needs `pip install 'lemmata[ray]'`.

Ray brings tasks to machines and answers back. There our own worker processes judge, with the same limits and the same
distrust as on this one: a process of Ray's, which it lends to anybody, runs no claim.
"""

import contextlib
import dataclasses
import functools
import os
import secrets
import time
from collections.abc import Iterator
from typing import Any

from lemmata.judge.engine import MEMORY, START_LIMIT, TIME_LIMIT, Answer, ProcessEngine, Task, credited

__all__ = ["RayEngine"]


class RayEngine:
    """Ray Core tasks on a local or an existing cluster; a lost worker is retried, an overdue task cancelled.

    Without an address Ray starts on this machine alone, without its dashboard. Its own processes (gcs_server, raylet,
    workers) listen on every address of the machine all the same, and no setting of Ray 2.60 changes that: what keeps
    strangers out is the token that its local clusters ask for, and a firewall. Where neither is to be trusted, use the
    engine of processes, which opens no port.
    """

    def __init__(
        self,
        jobs: int | None = None,
        address: str | None = None,
        time_limit: dict[str, float] | None = None,
        memory: int = MEMORY,
    ):
        self.jobs, self.address, self.time_limit, self.memory = jobs, address, time_limit or TIME_LIMIT, memory
        self.waiting: list[Task] = []
        self.ray: Any = None

    def start(self) -> None:
        if self.ray is not None or not self.waiting:
            return
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        import ray

        local = {"num_cpus": self.jobs, "include_dashboard": False} if self.address is None else {}
        where = self.address or "local"
        ray.init(where, log_to_driver=False, logging_level="error", **local)
        self.ray = ray

    def submit(self, task: Task) -> None:
        self.waiting.append(task)

    def results(self) -> Iterator[tuple[Task, Answer]]:
        """Answers in the order they come. As many tasks are in flight as the cluster has cores."""
        if not self.waiting:
            return
        remote = self.ray.remote(num_cpus=1, max_retries=2)(_perform_task)
        width = int(self.ray.cluster_resources().get("CPU", 1))
        flying: dict[Any, tuple[Task, str, float]] = {}
        while self.waiting or flying:
            while self.waiting and len(flying) < width:
                task, nonce = self.waiting.pop(0), secrets.token_hex(16)
                limit = self.time_limit[task.patience]
                # Our own worker's clock starts when it is ready: this one is for what Ray itself loses.
                deadline = time.monotonic() + 2 * limit + START_LIMIT + 30
                flying[remote.remote(nonce, dataclasses.asdict(task), limit, self.memory)] = (task, nonce, deadline)
            soonest = min(deadline for *_, deadline in flying.values())
            done, _ = self.ray.wait(list(flying), num_returns=1, timeout=max(0.0, soonest - time.monotonic()))
            for reference in done:
                task, nonce, _ = flying.pop(reference)
                yield task, self._collect_answer(reference, task, nonce)
            for reference in [r for r, (*_, deadline) in flying.items() if deadline <= time.monotonic()]:
                task, *_ = flying.pop(reference)
                self.ray.cancel(reference, force=True)
                reason = f"stopped after {self.time_limit[task.patience]:g} s: it hangs, or its cost class is wrong"
                yield task, Answer.failed(task, reason)

    def stop(self) -> None:
        self.waiting.clear()
        if self.ray is not None:
            with contextlib.suppress(Exception):
                self.ray.shutdown()
            self.ray = None

    def _collect_answer(self, reference: Any, task: Task, nonce: str) -> Answer:
        try:
            message = self.ray.get(reference)
            if not isinstance(message, dict) or message.get("nonce") != nonce:
                raise ValueError("it was not asked for")
            return credited(task, message)
        except ValueError as error:
            return Answer.failed(task, f"the worker's answer cannot be believed: {error}")
        except self.ray.exceptions.RayError as error:
            return Answer.failed(task, f"the worker was lost: {' '.join(str(error).split())[:200]}")


@functools.cache
def _own_engine() -> ProcessEngine:
    """One worker of our own beside each process of Ray's; it ends with it."""
    return ProcessEngine(1)


def _perform_task(nonce: str, task: dict[str, Any], limit: float, memory: int) -> dict[str, Any]:
    engine, asked = _own_engine(), Task(**task)
    engine.time_limit, engine.memory = {asked.patience: limit}, memory
    engine.submit(asked)
    ((_, answer),) = engine.results()
    return {"nonce": nonce, "id": asked.id, "seed": asked.seed, **dataclasses.asdict(answer)}
