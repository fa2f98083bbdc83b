"""Ray tasks as an engine: the same claims on more machines. Needs `pip install 'lemmata[ray]'`."""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from lemmata.judge.engine import TIME_LIMIT, Task
from lemmata.judge.verdict import Result
from lemmata.judge.worker import perform

__all__ = ["RayEngine"]


class RayEngine:
    """Ray Core tasks on a local or an existing cluster; a lost worker is retried, an overdue task cancelled.

    Without an address Ray starts on this machine alone, on loopback, without its dashboard.
    """

    def __init__(self, jobs: int | None = None, address: str | None = None, time_limit: dict[str, float] | None = None):
        self.jobs, self.address, self.time_limit = jobs, address, time_limit or TIME_LIMIT
        self.waiting: list[Task] = []
        self.ray: Any = None

    def start(self) -> None:
        if self.ray is not None or not self.waiting:
            return
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        import ray

        local = {"num_cpus": self.jobs, "include_dashboard": False} if self.address is None else {}
        same = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}  # as in our own workers: the same bits
        where = self.address or "local"
        ray.init(where, log_to_driver=False, logging_level="error", runtime_env={"env_vars": same}, **local)
        self.ray = ray

    def submit(self, task: Task) -> None:
        self.waiting.append(task)

    def results(self) -> Iterator[tuple[Task, Result]]:
        """Results in the order they come. As many tasks are in flight as the cluster has cores."""
        if not self.waiting:
            return
        remote = self.ray.remote(num_cpus=1, max_retries=2)(_perform)
        width = int(self.ray.cluster_resources().get("CPU", 1))
        flying: dict[Any, tuple[Task, float]] = {}
        while self.waiting or flying:
            while self.waiting and len(flying) < width:
                task = self.waiting.pop(0)
                # Ray's own start of a worker is not the claim's time: the limit is doubled and half a minute added.
                flying[remote.remote(vars(task))] = (task, time.monotonic() + 2 * self.time_limit[task.patience] + 30)
            soonest = min(deadline for _, deadline in flying.values())
            done, _ = self.ray.wait(list(flying), num_returns=1, timeout=max(0.0, soonest - time.monotonic()))
            for reference in done:
                task, _ = flying.pop(reference)
                yield task, self._collect(reference, task)
            for reference in [r for r, (_, deadline) in flying.items() if deadline <= time.monotonic()]:
                task, _ = flying.pop(reference)
                self.ray.cancel(reference, force=True)
                reason = f"stopped after {self.time_limit[task.patience]:g} s: it hangs, or its cost class is wrong"
                yield task, Result(task.id, "error", reason=reason, seed=task.seed)

    def stop(self) -> None:
        self.waiting.clear()
        if self.ray is not None:
            with contextlib.suppress(Exception):
                self.ray.shutdown()
            self.ray = None

    def _collect(self, reference: Any, task: Task) -> Result:
        try:
            return Result.from_json(self.ray.get(reference))
        except self.ray.exceptions.RayError as error:
            reason = f"the worker was lost: {' '.join(str(error).split())[:200]}"
            return Result(task.id, "error", reason=reason, seed=task.seed)


def _perform(task: dict[str, Any]) -> dict[str, Any]:
    return perform(task).to_json()
