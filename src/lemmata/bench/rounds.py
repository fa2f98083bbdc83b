"""One contest: every contender in a process of its own, repeats in turn, until the time budget is spent.

Repeats are interleaved, A B C, B C A, C A B ...: when the machine warms up, slows down or gets company, it does so for
all alike, which blocks of A A A B B B would not survive. All processes belong to one tree, run the same number of
threads, and only one works at a time; the others wait for their line.
"""

import contextlib
import importlib.metadata
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from lemmata.bench.registry import BenchEntry, Contender

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
        playing: list[tuple[Measured, Child]] = []
        for one in everyone:
            if not one.missing:
                child = stack.enter_context(Child(threads))
                child.send(_task(entry, one.contender, case, device, threads))
                playing.append((one, child))
        tell(f"{entry.name} ({case}): preparing {len(playing)} processes")
        playing = [(one, child) for one, child in playing if _hear(one, child, START_LIMIT) is not None]
        playing = _warm_up(playing, budget, tell)
        _rounds(playing, budget, tell)
    return everyone


def _warm_up(playing: "list[tuple[Measured, Child]]", budget: float, tell: Tell) -> "list[tuple[Measured, Child]]":
    """One repeat each that does not count: it pays for late imports. Who then still needs the whole budget is done."""
    quick = []
    for one, child in playing:
        tell(f"{one.contender.who}: warm-up")
        repeat = _repeat(one, child)
        if repeat is not None:
            one.add(repeat, counts=False)
            again = _repeat(one, child) if repeat["seconds"] > budget else None
            slow = again is not None and again["seconds"] > budget
            if again is not None and slow:
                one.add(again)
            quick += [] if slow or one.reason else [(one, child)]
    return quick


def _rounds(playing: "list[tuple[Measured, Child]]", budget: float, tell: Tell) -> None:
    began, turn = time.perf_counter(), 0
    while playing and turn < MOST and (turn < LEAST or time.perf_counter() - began < budget):
        for one, child in turns(playing, turn):
            tell(f"{one.contender.who}: repeat {turn + 1}")
            repeat = _repeat(one, child)
            if repeat is not None:
                one.add(repeat)
        playing = [(one, child) for one, child in playing if not one.reason]
        turn += 1


def turns(playing: list[Any], turn: int) -> list[Any]:
    """The order of one round: each round another one begins, so that nobody always follows the same neighbour.

    >>> [turns(["A", "B", "C"], turn) for turn in (0, 1)]
    [['A', 'B', 'C'], ['B', 'C', 'A']]
    """
    first = turn % len(playing)
    return playing[first:] + playing[:first]


def _repeat(one: Measured, child: "Child") -> dict[str, Any] | None:
    child.send({"repeat": True})
    return _hear(one, child, REPEAT_LIMIT)


def _hear(one: Measured, child: "Child", patience: float) -> dict[str, Any] | None:
    """The child's answer; None, with the reason noted, if there is none or it is an error."""
    answer = child.hear(patience)
    if "error" not in answer:
        return answer
    one.reason = f"failed: {answer['error']}"
    return None


def _task(entry: BenchEntry, contender: Contender, case: str, device: str, threads: int) -> dict[str, Any]:
    agreement = "" if contender.role == "limit" else entry.agreement
    functions = {"problem": entry.problem, "contender": contender.function, "agreement": agreement}
    return functions | {"path": str(entry.path.resolve()), "case": case, "device": device, "threads": threads}


class Child:
    """The process of a contender. It leads its own group: Ctrl-C reaches the parent alone, which then ends it."""

    def __init__(self, threads: int):
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        same = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.process = subprocess.Popen(
            # -P: a file such as random.py in the current folder must not stand in for Python's own.
            [sys.executable, "-P", "-m", "lemmata.bench.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, **same, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output, self.buffer = self.process.stdin, self.process.stdout, b""

    def __enter__(self) -> "Child":
        return self

    def send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the read that follows says why
            self.input.write(json.dumps(message).encode() + b"\n")
            self.input.flush()

    def hear(self, patience: float) -> dict[str, Any]:
        """The next answer, or an error if the process ends or takes longer than this."""
        deadline = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.end()  # or it would take the cores from the others
                    return {"error": f"no answer within {patience:g} s"}
                data = os.read(self.output.fileno(), 1 << 16)
                if not data:
                    return {"error": self._epitaph()}
                self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def _epitaph(self) -> str:
        code = self.process.wait()
        self.errors.seek(0)
        said = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()][-1:]
        if code == -signal.SIGKILL:
            return "its process was killed, often for lack of memory"
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"its process ended {how}{': ' + said[0][:200] if said else ''}"

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the process and all it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.input, self.output, self.errors):
            with contextlib.suppress(OSError):
                stream.close()
