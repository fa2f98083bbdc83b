"""The process of one contender: prepare once, then one repeat for each line that asks.

JSON lines on pipes, no pickle: whatever a contender prints, breaks or keeps, it keeps to itself.
"""

import gc
import importlib.util
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import ModuleType
from typing import IO, Any

from lemmata.bench.memory import PeakMemory

__all__ = ["Prepared"]

QUICK, AGAIN = 0.5, 7  # seconds, and calls within them


class Prepared:
    """A contender with its problem built, ready to repeat."""

    def __init__(self, task: dict[str, Any]):
        module = _load(task["path"])
        if "torch" in sys.modules:  # an entry without torch need not wait for its import
            sys.modules["torch"].set_num_threads(task["threads"])
        self.device: str = task["device"]
        self.tell: Callable[[Any], dict[str, float]] | None = getattr(module, task["agreement"], None)
        problem = getattr(module, task["problem"])(task["case"], self.device)
        self.work: Callable[[], Any] = getattr(module, task["contender"])(problem)

    def repeat(self) -> dict[str, Any]:
        """One repeat: its time, its peak memory, and its answer as numbers.

        A call whose memory is measured begins with none kept by the C library, and with caches that the others have
        emptied: it pays for both, and so may the next one, as no call in a loop does. So quick work is called some
        times more, and its time is their median.
        """
        with PeakMemory(self.device) as peak:
            result, seconds = self.clocked()
        times: list[float] = []
        while seconds + sum(times) < QUICK and len(times) < AGAIN:
            del result
            result, again = self.clocked()
            times.append(again)
        seconds = statistics.median(times or [seconds])
        answer = {name: float(value) for name, value in self.tell(result).items()} if self.tell else {}
        del result
        gc.collect()
        gc.freeze()  # what survived stays: collecting before the next repeat then takes no time
        return {"seconds": seconds, "peak_bytes": peak.bytes, "lowered": peak.lowered, "answer": answer}

    def clocked(self) -> tuple[Any, float]:
        """What the work gives, and its time."""
        self.wait()
        began = time.perf_counter()
        result = self.work()
        self.wait()
        return result, time.perf_counter() - began

    def wait(self) -> None:
        """An accelerator works on after a call returns: the clock must wait for it."""
        if self.device != "cpu":
            sys.modules["torch"].accelerator.synchronize()


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lemmata_bench_entry", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer until the pipe ends."""
    # What a contender prints or reads must not touch the pipes on which tasks and answers travel.
    tasks, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(tasks, lines), daemon=True).start()
    prepared: Prepared | None = None
    while True:
        task = json.loads(lines.get())
        try:
            if prepared is None:
                prepared, answer = Prepared(task), {"ready": True}
            else:
                answer = prepared.repeat()
        except (Exception, SystemExit) as error:
            answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
        print(json.dumps(answer), file=answers, flush=True)


def _listen(tasks: IO[str], lines: SimpleQueue[str]) -> None:
    """Pass tasks on. When the pipe ends the parent is gone, however it died: nobody waits for this process either."""
    for line in tasks:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
