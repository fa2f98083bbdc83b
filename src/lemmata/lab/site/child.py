"""A child of the lab's server: one JSON task per line in, events and one answer per task out, also as lines of JSON.

Each line carries the nonce of its task, so that nothing is credited to another. The child imports what is slow before
it says that it is ready, performs what the files of `work/` can do, and ends with the server, however that happens.
"""

import contextlib
import importlib
import json
import math
import os
import signal
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import IO, Any

from lemmata.lab.site import work
from lemmata.lab.site.limits import bound_memory, bound_processor_time
from lemmata.workers import end_with_parent

__all__ = []  # a program, not a library

GRACE_SECONDS = 2.0
LONGEST_MESSAGE = 300
CANNOT_ALLOCATE = ("can't allocate memory", "Cannot allocate memory", "Unable to allocate", "bad_alloc")


def main() -> None:
    setup = json.loads(sys.argv[1])
    # What jobs print or read must not touch the pipes on which tasks and answers travel.
    tasks, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    end_with_parent(signal.SIGKILL, setup["parent"])
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen_for_tasks, args=(tasks, lines), daemon=True).start()
    work.__path__.extend(setup["folders"])
    voice = _Voice(answers, setup["memory"])
    try:
        for module in setup["warm"]:
            importlib.import_module(module)
    except Exception as error:
        voice.say({"failed": f"a child process cannot start: {voice.told(error)}"})
        return
    bound_memory(setup["memory"], voice.too_much)
    voice.say({"ready": True})
    later = [f"{work.__name__}.{kind}" for kind in sorted(work.kinds(setup["folders"]))]
    for module in [*later, "torch._dynamo"] if setup["warm"] else ():  # torch's first optimiser imports that one
        if lines.empty():  # nobody asks for anything yet
            with contextlib.suppress(Exception):
                importlib.import_module(module)
    while True:
        _perform_task(json.loads(lines.get()), voice)


def _listen_for_tasks(tasks: IO[str], lines: SimpleQueue[str]) -> None:
    """Pass tasks on. When the pipe ends the server is gone: stop, politely at first, with all that this job started."""
    for line in tasks:
        lines.put(line)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_SECONDS)
    _end_process()


def _end_process() -> None:
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _work_module(kind: str) -> Any:
    return importlib.import_module(f"{work.__name__}.{kind}")


def _perform_task(task: dict[str, Any], voice: "_Voice") -> None:
    """Do one task. SystemExit is not caught: a run that was told to stop has saved its state and ends the process."""
    bound_processor_time(task["processor_seconds"])
    voice.nonce = task["nonce"]
    try:
        result = _work_module(task["kind"]).perform(task["parameters"], lambda event: voice.say({"event": dict(event)}))
        voice.say({"result": dict(result)})
    except (Exception, KeyboardInterrupt) as error:
        voice.say({"failed": voice.told(error), "trace": traceback.format_exc()[-5000:]})


class _Voice:
    """Lines to the server, whole even if two threads speak; a copy of the process, which a job forked, has no say."""

    def __init__(self, answers: IO[str], memory: int):
        self.answers = answers
        self.memory = memory
        self.process, self.nonce = os.getpid(), ""
        self.lock = threading.Lock()

    def say(self, message: dict[str, Any]) -> None:
        if os.getpid() != self.process:
            os._exit(0)
        message = {"nonce": self.nonce} | message
        try:
            line = json.dumps(message, allow_nan=False)
        except ValueError:  # not a number, or infinite
            line = json.dumps(_finite_json(message), allow_nan=False)
        with self.lock:
            print(line, file=self.answers, flush=True)

    def told(self, error: BaseException) -> str:
        """An error as one short line for the page."""
        said = " ".join(str(error).split()).encode("utf-8", "replace").decode()
        if isinstance(error, MemoryError) or any(sign in said for sign in CANNOT_ALLOCATE):
            return self.lack_of_memory()
        return f"{type(error).__name__}: {said}"[:LONGEST_MESSAGE]

    def lack_of_memory(self) -> str:
        return f"it needs more than the {self.memory / 2**30:.2g} GiB of memory that a job may use"

    def too_much(self) -> None:
        try:
            self.say({"failed": self.lack_of_memory(), "last": True})
        finally:
            _end_process()


def _finite_json(value: Any) -> Any:
    """The same with 'nan', 'inf' and '-inf' for the numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _finite_json(item) for key, item in value.items()}
    return [_finite_json(item) for item in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main()
