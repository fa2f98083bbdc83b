"""Which lines of some files run: with `sys.monitoring` at almost no cost, before Python 3.12 with `sys.settrace`."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

__all__ = []  # for mutation alone


class Lines:
    """The lines that have run since the last `take`, by file."""

    def __init__(self, files: Iterable[str]) -> None:
        self.seen: dict[str, set[int]] = {file: set() for file in files}
        self.known: dict[str, set[int] | None] = {}

    def of(self, code: CodeType) -> set[int] | None:
        """Where to put lines of this code; nowhere if nobody asked for its file."""
        file = code.co_filename
        if file not in self.known:
            self.known[file] = self.seen.get(os.path.realpath(file))
        return self.known[file]

    def take(self) -> dict[str, list[int]]:
        """What has run, and from now on what runs anew."""
        found = {file: sorted(lines) for file, lines in self.seen.items() if lines}
        for lines in self.seen.values():
            lines.clear()
        if found and MONITORING:
            MONITORING.restart_events()
        return found


# A module of Python 3.12, which type checkers look for in the oldest Python we support.
MONITORING: Any = getattr(sys, "monitoring", None)


def tracing(files: Iterable[str]) -> contextlib.AbstractContextManager[Lines]:
    """Collect the lines that run in some files, in every thread."""
    return _monitored(Lines(files)) if MONITORING else _traced(Lines(files))


@contextlib.contextmanager
def _monitored(lines: Lines) -> Iterator[Lines]:
    tool = next(number for number in range(6) if MONITORING.get_tool(number) is None)

    def line(code: CodeType, number: int) -> Any:
        seen = lines.of(code)
        if seen is not None:
            seen.add(number)
        return MONITORING.DISABLE  # once is enough, until somebody takes what there is

    MONITORING.use_tool_id(tool, "lemmata mutation")
    MONITORING.register_callback(tool, MONITORING.events.LINE, line)
    MONITORING.set_events(tool, MONITORING.events.LINE)
    MONITORING.restart_events()  # for what an earlier tool had enough of
    try:
        yield lines
    finally:
        MONITORING.set_events(tool, 0)
        MONITORING.register_callback(tool, MONITORING.events.LINE, None)
        MONITORING.free_tool_id(tool)


@contextlib.contextmanager
def _traced(lines: Lines) -> Iterator[Lines]:
    """Code of other files is not slowed down beyond its calls."""

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        return None if lines.of(frame.f_code) is None else line

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        seen = lines.of(frame.f_code)
        if seen is not None:
            seen.add(frame.f_lineno)
        return line

    before = sys.gettrace()
    sys.settrace(called)
    threading.settrace(called)
    try:
        yield lines
    finally:
        sys.settrace(before)
        threading.settrace(before)  # pyright: ignore[reportArgumentType]
