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


HANGUP = getattr(signal, "SIGHUP", None)  # a closed terminal; Windows has none


@contextlib.contextmanager
def asked_to_stop() -> Iterator[Asked]:
    """Ctrl-C, SIGTERM and a closed terminal end the run after its step, checkpoint written.

    A second Ctrl-C or SIGTERM ends it at once. A hang-up is never impatience: shell and kernel send one each. Whoever
    had us ignore it (nohup) wants the run to outlive the terminal.
    """
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(number: int, frame: Any) -> None:
        if number != HANGUP and asked.signal not in (None, HANGUP):
            raise KeyboardInterrupt
        if number != HANGUP or asked.signal is None:
            asked.signal = number

    numbers = [signal.SIGINT, signal.SIGTERM]
    numbers += [HANGUP] if HANGUP and signal.getsignal(HANGUP) is not signal.SIG_IGN else []
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
