"""The process of one contender: prepare once, then one repeat for each task that asks."""

import gc
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lemmata.bench.memory import PeakMemory
from lemmata.bench.registry import Seconds
from lemmata.workers import serve

__all__ = ["Prepared"]

QUICK, AGAIN = 0.5, 7  # seconds, and calls within them


class Prepared:
    """A contender with its problem built, ready to repeat."""

    def __init__(self, task: dict[str, Any]):
        module = _load_module(task["path"])
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
        for name, value in answer.items():
            if not math.isfinite(value):
                raise ValueError(f"the answer's {name} is {value}")
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
        return result, result if isinstance(result, Seconds) else time.perf_counter() - began

    def wait(self) -> None:
        """An accelerator works on after a call returns: the clock must wait for it."""
        if self.device != "cpu":
            sys.modules["torch"].accelerator.synchronize()


def _load_module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lemmata_bench_entry", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer until nobody asks: the first task says what to prepare."""
    prepared: Prepared | None = None

    def perform(task: dict[str, Any]) -> dict[str, Any]:
        nonlocal prepared
        try:
            if prepared:
                return prepared.repeat()
            prepared = Prepared(task)
        except (Exception, SystemExit) as error:
            return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
        return {"ready": True}

    serve(perform)


if __name__ == "__main__":
    main()
