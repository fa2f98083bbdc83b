"""The one child process: start it, give it tasks, hear its answers, and end it with all that it started.

    with Worker(["-m", "lemmata.bench.child"], threads(1)) as worker:
        worker.wait(180.0)                      # it is ready
        worker.give({"repeat": True})
        answer = worker.wait(60.0)              # Lost, with a clause that says why, if there is none

The other side calls `serve(perform)`. Lines of JSON on pipes, no pickle: whatever the work prints, breaks or
keeps, it keeps to itself. Every task carries a nonce, and only a line with the nonce of the task at hand is an answer:
what a forked copy of the worker, a thread left behind or somebody who found the pipe says is credited to nobody.

On Linux a keeper stands between the two, a small process to which everything falls that loses its parent. It ends all
that it keeps, in whatever session or group it hides, when the worker ends, when it is told to, when the parent is gone,
and when all together hold more memory than allowed. Elsewhere the worker's group is ended, and memory is not bounded.
"""

import contextlib
import functools
import glob
import json
import os
import secrets
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import IO, Any, NoReturn

try:
    import resource
except ImportError:  # Windows
    resource = None

__all__ = ["Lost", "Worker", "descendants", "end_with_parent", "parsed", "progress", "serve", "signal_name", "threads"]

LONGEST_LINE = 16 << 20  # bytes: what a claim with its figures answers is hundreds of times smaller
MOST_SAID = 64 << 10  # bytes kept of what a process printed: the last ones
GRACE = 5.0  # seconds for a keeper to end what it keeps: it needs milliseconds
WATCH = 0.1  # seconds between two looks at the memory, in which a process can fill a few hundred megabytes
# Whether there is a keeper: Linux, which tells a process's children.
KEPT = sys.platform == "linux" and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def threads(count: int) -> dict[str, str]:
    """The environment of a process with so many threads, in which nothing else is left to chance."""
    libraries = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    # The order of a set decides last bits, and without its assertions code is other code.
    same = {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "PYTHONOPTIMIZE": ""}
    return dict.fromkeys(libraries, str(count)) | same


OnProgress = Callable[[dict[str, Any]], float | None]
PROGRESS = "progress"  # the one key of what is said before the answer


class Lost(Exception):
    """There will be no answer: the process ended, or what it says cannot be believed. `why`: killed, memory, or ""."""

    def __init__(self, reason: str, why: str = ""):
        super().__init__(reason)
        self.why = why


# --- The side that asks ---


class Worker:
    """A process that performs one task at a time. The answer to no task at all comes first: it is ready.

    `command` follows the name of the interpreter; `memory` bounds what it and its descendants may hold, in bytes.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], memory: int | None = None):
        self.memory = memory
        self.process = subprocess.Popen(
            # -P: a file such as random.py in the current folder must not stand in for Python's own.
            [sys.executable, "-P", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends it
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.input, self.output, self.errors = self.process.stdin, self.process.stdout, self.process.stderr
        self._nonce = ""
        self._buffer = bytearray()
        self._said = b""
        self.killed = False  # for being late
        self._ear = threading.Thread(target=self._overhear_stderr, daemon=True)
        self._ear.start()
        self.give({"memory": memory})

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def give(self, task: dict[str, Any]) -> None:
        """Send a task; from now on only an answer to this one is believed."""
        self._nonce = secrets.token_hex(16)
        with contextlib.suppress(BrokenPipeError):  # a process that is gone is noticed by whoever hears it
            self.input.write(json.dumps({"nonce": self._nonce, "task": task}).encode() + b"\n")
            self.input.flush()

    def hear(self) -> Iterator[dict[str, Any]]:
        """The answer, if this completes it; waits only if nothing has come on `output`. Raises Lost."""
        data = os.read(self.output.fileno(), 1 << 16)
        if not data:
            raise self._exit_reason()
        self._buffer += data
        if b"\n" in data:
            *lines, self._buffer = self._buffer.split(b"\n")
            yield from (self._believed_answer(line) for line in lines if line)
        if len(self._buffer) > LONGEST_LINE:
            raise Lost(f"the worker's answer is longer than {LONGEST_LINE >> 20} MiB")

    def wait(self, seconds: float, on_progress: OnProgress | None = None) -> dict[str, Any]:
        """The answer, waited for so long. Raises Lost; a process that is late is ended.

        What `progress` says on the way goes to `on_progress`, which may answer how many seconds are left from now on.
        """
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                for message in self.hear():
                    if set(message) != {PROGRESS}:
                        return message
                    left = on_progress(message[PROGRESS]) if on_progress else None
                    deadline = deadline if left is None else time.monotonic() + left
        self.killed = True
        self.kill()
        raise Lost(f"no answer within {seconds:g} s")

    @property
    def said(self) -> str:
        """The last of what the work printed."""
        return self._said.decode(errors="replace")

    def kill(self) -> None:
        """End the process and all that it started; returns when they are gone, and may be repeated."""
        with contextlib.suppress(OSError):
            self.input.close()
        if KEPT:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
        if not KEPT or self.process.poll() is None:  # no keeper, or one that was stopped
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._ear.join(GRACE)
        for stream in (self.output, self.errors):
            if not self._ear.is_alive():  # else somebody who escaped holds the other end, and the ear still listens
                stream.close()

    def _believed_answer(self, line: bytes | bytearray) -> dict[str, Any]:
        try:
            message = parsed(line)
        except ValueError:
            raise Lost("the pipe on which the worker's answers travel was spoilt") from None
        if message == {"stopped": "memory"} and self.memory:
            raise Lost(f"it took more than the {self.memory / 2**30:.3g} GiB of memory that it may use", "memory")
        if not isinstance(message, dict) or not self._nonce or message.get("nonce") != self._nonce:
            raise Lost("the worker answered what it was not asked")
        answer = message.get("answer")
        if not isinstance(answer, dict):
            raise Lost("the worker's answer is empty")
        self._nonce = self._nonce if set(answer) == {PROGRESS} else ""
        return answer

    def _overhear_stderr(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.errors.fileno(), 1 << 16):
                self._said = (self._said + data)[-MOST_SAID:]

    def _exit_reason(self) -> Lost:
        """Why the process ended, as well as can be known."""
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:  # it closed the pipe and runs on
            return Lost("the worker closed the pipe on which its answers travel")
        self._ear.join(GRACE)
        last = [line for line in self._said.decode(errors="replace").splitlines() if line.strip()][-1:]
        if code < 0 and -code == getattr(signal, "SIGKILL", 0):
            return Lost("the worker was killed, often for lack of memory", "killed")
        how = f"by signal {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        return Lost(f"the worker ended {how}{': ' + last[0][:200] if last else ''}")


def parsed(text: bytes | bytearray) -> Any:
    """What a line of JSON says. ValueError for whatever is none, or says NaN, or is nested too deep to be anything."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def signal_name(number: int) -> str:
    """The name of a signal; those in real time have none, and are told by their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# --- The side that answers ---


def serve(perform: Callable[[dict[str, Any]], dict[str, Any]], ready: Callable[[], dict[str, Any]] = dict) -> NoReturn:
    """Answer tasks until the pipe ends; `ready` does what takes long before the first and is the first answer."""
    # What the work prints or reads must not touch the pipes on which tasks and answers travel. Copies of a descriptor
    # are not inheritable: what is started with them closed cannot speak here.
    tasks, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    first = tasks.readline()
    if not first:  # the parent is gone
        os._exit(0)
    setup = json.loads(first)
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash must not fill the disk
    if KEPT:
        _under_a_keeper(tasks.fileno(), answers, setup["task"]["memory"])
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _close_descriptors(tasks.fileno(), answers))
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen_for_tasks, args=(tasks, lines), daemon=True).start()
    me = os.getpid()

    def answer(nonce: str, message: dict[str, Any]) -> None:
        if os.getpid() != me:  # the work forked, and this is the copy: it must not go on as if it were the worker
            os._exit(0)
        # A lone surrogate cannot be printed by whoever asked; NaN is not JSON.
        line = json.dumps({"nonce": nonce, "answer": message}, ensure_ascii=False, allow_nan=False)
        rest = memoryview(line.encode(errors="replace") + b"\n")
        while rest:
            rest = rest[os.write(answers, rest) :]

    answer(setup["nonce"], ready())
    while True:
        asked = json.loads(lines.get())
        _say.append(functools.partial(answer, asked["nonce"]))
        try:
            done = perform(asked["task"])
        finally:
            _say.clear()
        answer(asked["nonce"], done)


def progress(message: dict[str, Any]) -> None:
    """Tell whoever waits for the answer to the task at hand what happened on the way to it; elsewhere, nobody."""
    for say in _say:
        say({PROGRESS: message})


_say: list[Callable[[dict[str, Any]], None]] = []  # to whoever gave the task at hand


def _listen_for_tasks(tasks: IO[str], lines: SimpleQueue[str]) -> None:
    """Pass tasks on. When the pipe ends the parent is gone, however it died: nobody waits for this process either."""
    for line in tasks:
        lines.put(line)
    if not KEPT and hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _close_descriptors(*descriptors: int) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def end_with_parent(number: int = signal.SIGTERM, parent: int = 0) -> None:
    """Get this signal when the parent ends, however it does, on Linux: a killed launcher takes its processes along.

    Whoever was told the id of its `parent` also ends if that one was gone before this is called.
    """
    if sys.platform != "linux":
        return
    import ctypes

    parent = parent or os.getppid()
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, int(number), 0, 0, 0)
    if os.getppid() != parent:  # it died before we could ask
        os.kill(os.getpid(), number)


# --- The keeper, on Linux ---

SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36  # of prctl(2)
HEARD = (signal.SIGCHLD, signal.SIGTERM) if KEPT else ()


def _under_a_keeper(tasks: int, answers: int, memory: int | None) -> None:
    """Go on as a child of the keeper, in a session of its own: to end its own group does not end the keeper."""
    import ctypes  # nobody else needs it

    prctl = ctypes.CDLL(None).prctl
    prctl(SET_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    keeper, worker = os.getpid(), os.fork()
    if worker:
        _keep_worker(worker, tasks, answers, memory)
    os.setsid()
    prctl(SET_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != keeper:  # it died before we could ask
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)


def _keep_worker(worker: int, tasks: int, answers: int, memory: int | None) -> NoReturn:
    """The keeper's life: it waits for the worker's end, or for a reason to end the worker."""
    pipe = select.poll()
    pipe.register(tasks, 0)  # nothing but its end is of interest here
    while True:
        heard = signal.sigtimedwait(HEARD, WATCH if memory else 1.0)
        if (heard and heard.si_signo == signal.SIGTERM) or pipe.poll(0):
            _end_all()
            os._exit(0)
        for pid, status in _reap_children():
            if pid == worker:
                _end_all()
                _end_as(os.waitstatus_to_exitcode(status))
        if memory and _resident_bytes(descendants(os.getpid())) > memory:
            _end_all()
            os.write(answers, b'\n{"stopped": "memory"}\n')
            os._exit(0)


def _reap_children() -> Iterator[tuple[int, int]]:
    """The children that are gone, reaped."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _end_all() -> None:
    """Kill everything below this process. What loses its parent on the way becomes our child: the next turn's."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _end_as(code: int) -> NoReturn:
    """End as the worker ended, so that the parent sees how."""
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL, which always acts
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def descendants(pid: int) -> list[int]:
    """Every process below this one, the nearest first; none where the system does not tell."""
    found = [pid]
    for parent in found:
        for file in glob.glob(f"/proc/{parent}/task/*/children"):
            with contextlib.suppress(OSError), open(file) as children:  # else gone by now
                found += map(int, children.read().split())
    return found[1:]


def _resident_bytes(pids: Iterable[int]) -> int:
    """The memory that processes hold. What they share (libraries, above all) is counted once."""
    own, shared = 0, 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:
            _, resident, common = map(int, file.read().split()[:3])
            own, shared = own + resident - common, max(shared, common)
    return (own + shared) * os.sysconf("SC_PAGE_SIZE")
