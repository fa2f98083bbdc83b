"""One contest: every contender in a process of its own, repeats in turn, until the time budget is spent.

Repeats are interleaved, A B C, B C A, C A B ...: when the machine warms up, slows down or gets company, it does so for
all alike, which blocks of A A A B B B would not survive. All processes belong to one tree, run the same number of
threads, and only one works at a time; the others wait for their line.
"""

import contextlib
import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lemmata import workers
from lemmata.bench.registry import BenchEntry, Contender
from lemmata.workers import Lost, Worker

__all__ = ["Measured", "contest", "installed"]

LEAST, MOST = 5, 200  # repeats
START_LIMIT = 300.0  # seconds to import and prepare
REPEAT_LIMIT = 600.0  # seconds after which a single repeat counts as hung

Tell = Callable[[str], None]


@dataclass
class Measured:
    """What one contender did, or why it did nothing."""

    contender: Contender
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    answer: dict[str, float] = field(default_factory=dict)
    reason: str = ""  # empty if all went well
    missing: bool = False  # what it needs is not installed

    def add(self, repeat: dict[str, Any], counts: bool = True) -> None:
        """Take note of a repeat. A warm-up does not count, unless only the first repeat can tell its memory."""
        if counts:
            self.seconds.append(repeat["seconds"])
        if repeat["peak_bytes"] is not None and (counts or not repeat["lowered"]):
            self.peak_bytes = max(repeat["peak_bytes"], self.peak_bytes or 0)
        self.answer = self.answer or repeat["answer"]


Playing = list[tuple[Measured, Worker]]


def installed(package: str) -> str:
    """The version of a package, or nothing if it is absent."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def contest(
    entry: BenchEntry, case: str, *, device: str, threads: int, budget: float, tell: Tell = lambda line: None
) -> list[Measured]:
    """Measure every contender of one case, the limit among them; `tell` hears what is going on."""
    everyone = [Measured(contender) for contender in entry.contenders_for(case)]
    for one in everyone:
        if one.contender.needs and not installed(one.contender.needs):
            one.missing, one.reason = True, f"missing: pip install {one.contender.needs}"
    with contextlib.ExitStack() as stack:
        command, same = ["-m", "lemmata.bench.child"], workers.threads(threads)
        playing = [(one, stack.enter_context(Worker(command, same))) for one in everyone if not one.missing]
        tell(f"{entry.name} ({case}): preparing {len(playing)} processes")
        playing = _who_answer(playing)
        for one, worker in playing:
            worker.give(_task_message(entry, one.contender, case, device, threads))
        playing = _who_answer(playing)
        playing = _warm_up(playing, budget, tell)
        _play_rounds(playing, budget, tell)
    return everyone


def _who_answer(playing: Playing) -> Playing:
    return [(one, worker) for one, worker in playing if _hear_answer(one, worker, START_LIMIT) is not None]


def _warm_up(playing: Playing, budget: float, tell: Tell) -> Playing:
    """One repeat each that does not count: it pays for late imports. Who then still needs the whole budget is done."""
    quick = []
    for one, worker in playing:
        tell(f"{one.contender.who}: warm-up")
        repeat = _repeat_once(one, worker)
        if repeat is not None:
            one.add(repeat, counts=False)
            again = _repeat_once(one, worker) if repeat["seconds"] > budget else None
            slow = again is not None and again["seconds"] > budget
            if again is not None and slow:
                one.add(again)
            quick += [] if slow or one.reason else [(one, worker)]
    return quick


def _play_rounds(playing: Playing, budget: float, tell: Tell) -> None:
    began, turn = time.perf_counter(), 0
    while playing and turn < MOST and (turn < LEAST or time.perf_counter() - began < budget):
        for one, worker in turns(playing, turn):
            tell(f"{one.contender.who}: repeat {turn + 1}")
            repeat = _repeat_once(one, worker)
            if repeat is not None:
                one.add(repeat)
        playing = [(one, worker) for one, worker in playing if not one.reason]
        turn += 1


def turns(playing: list[Any], turn: int) -> list[Any]:
    """The order of one round: each round another one begins, so that nobody always follows the same neighbour.

    >>> [turns(["A", "B", "C"], turn) for turn in (0, 1)]
    [['A', 'B', 'C'], ['B', 'C', 'A']]
    """
    first = turn % len(playing)
    return playing[first:] + playing[:first]


def _repeat_once(one: Measured, worker: Worker) -> dict[str, Any] | None:
    worker.give({"repeat": True})
    return _hear_answer(one, worker, REPEAT_LIMIT)


def _hear_answer(one: Measured, worker: Worker, patience: float) -> dict[str, Any] | None:
    """The answer; None, with the reason noted, if there is none or it is an error."""
    try:
        answer = worker.wait(patience)
    except Lost as lost:
        worker.kill()  # or it might take the cores from the others
        answer = {"error": str(lost)}
    if "error" not in answer:
        return answer
    one.reason = f"failed: {answer['error']}"
    return None


def _task_message(entry: BenchEntry, contender: Contender, case: str, device: str, threads: int) -> dict[str, Any]:
    agreement = "" if contender.role == "limit" else entry.agreement
    functions = {"problem": entry.problem, "contender": contender.function, "agreement": agreement}
    return functions | {"path": str(entry.path.resolve()), "case": case, "device": device, "threads": threads}
