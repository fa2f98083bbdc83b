"""Stopping politely: a signal is noted, and obeyed once the step is done and saved."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = []  # for the loop


@dataclass
class Asked:
    """A request to stop, which waits for the end of a step: half a step would be lost or done twice."""

    signal: int | None = None

    def obey(self) -> None:
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + (self.signal or 0))


@contextlib.contextmanager
def asked_to_stop() -> Iterator[Asked]:
    """Ctrl-C and SIGTERM end the run after its step, checkpoint written; a second one ends it at once."""
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(number: int, frame: Any) -> None:
        if asked.signal is not None:
            raise KeyboardInterrupt
        asked.signal = number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
