"""Where mutants run: a parent that has imported what takes long, and for each mutant a forked child.

The first line of JSON on the input is the setting, each further one a batch of tasks; the answer is a line per task, as
they finish. A child imports the mutant in place of the module, runs its claims, and is gone: a hang, a crash or a full
memory is its own.
"""

import contextlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FrameType
from typing import IO, Any

__all__ = []  # started by `mutate`

MEMORY = 8 << 30  # bytes a child may take beyond what its parent has


class Snapshot(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports modules from the sources given here: as they were when the run began, or broken.

    Whoever edits a file meanwhile neither kills a mutant nor saves it. No bytecode is read or written.
    """

    def __init__(self, sources: dict[str, tuple[str, str]]) -> None:
        self.paths = {module: path for module, (path, _) in sources.items()}
        self.data = {path: text.encode() for path, text in sources.values()}
        self.compiled: dict[str, Any] = {}
        for module, (path, text) in sources.items():
            with contextlib.suppress(SyntaxError):  # told to whoever imports it
                self.compiled[module] = self.source_to_code(text.encode(), path)

    def replace(self, module: str, path: str, source: str) -> None:
        """From now on the module is made of this source."""
        self.paths[module], self.data[path] = path, source.encode()
        self.compiled.pop(module, None)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self.paths:
            return None
        return importlib.util.spec_from_file_location(fullname, self.paths[fullname], loader=self)

    def get_code(self, fullname: str) -> Any:
        return self.compiled.get(fullname) or super().get_code(fullname)

    def get_filename(self, fullname: str) -> str:
        return self.paths[fullname]

    def get_data(self, path: str) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.data[path]

    def get_resource_reader(self, fullname: str) -> Any:
        """Data files of a package are read from where they are."""
        return SourceFileLoader(fullname, self.paths[fullname]).get_resource_reader(fullname)

    def path_stats(self, path: str) -> Any:
        raise OSError  # importlib's word for "there is no bytecode that could stand for this source"


# --- In the child ---


def run(task: dict[str, Any], snapshot: Snapshot, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Every truth first, the cheapest leading; then the whole judgement, for lies that are no longer rejected."""
    if task.get("trace"):
        return _measure(task["claims"][0], task["trace"])
    if task["module"] in sys.modules:
        return {"error": f"{task['module']} was imported before it could be replaced"}
    snapshot.replace(task["module"], task["path"], task["source"])
    for with_lies in (False, True):
        for claim in task["claims"]:
            tell({"running": claim["id"]})
            _alarm(claim["limit"][with_lies])
            result = _judge(claim, with_lies)
            if not _passes(result, with_lies):
                return {"by": claim["id"], "how": f"{result.verdict}: {result.reason}"}
    return {"by": ""}


def _measure(claim: dict[str, Any], files: list[str]) -> dict[str, Any]:
    """The judgement of the unbroken code with the lines it runs, from the first import on; then the truth's time."""
    _alarm(claim["limit"][1])
    seen: dict[str, set[int]] = {file: set() for file in files}
    with _tracing(seen):
        result = _judge(claim, with_lies=True)
    truth = _judge(claim, with_lies=False)
    lines = {file: sorted(found) for file, found in seen.items() if found}
    return {**result.to_json(), "evidence": None, "lies": [], "truth_seconds": truth.seconds, "lines": lines}


def _judge(claim: dict[str, Any], with_lies: bool) -> Any:
    from lemmata.judge.decorators import Claim
    from lemmata.judge.runner import judge
    from lemmata.judge.verdict import Result

    try:
        found = getattr(importlib.import_module(claim["module"]), claim["function"])
    except (Exception, SystemExit) as error:
        return Result(claim["id"], "error", reason=f"{type(error).__name__} on import: {error}")
    lies = found.lies if with_lies else ()
    return judge(Claim(found.id, found.function, lies, found.cost), cost=claim["cost"])


def _passes(result: Any, with_lies: bool) -> bool:
    """Without its lies a claim is at best weak for want of one: then its evidence speaks."""
    if with_lies or result.evidence is None:
        return result.verdict in ("holds", "skipped")
    return result.evidence["holds"] and not result.evidence["weak"]


def _alarm(seconds: float) -> None:
    """Seconds of work, and ten times as many on the clock, for a machine that is busy or a child that only waits.

    Nobody handles these signals, so the kernel itself ends the child, wherever it hangs.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


@contextlib.contextmanager
def _tracing(seen: dict[str, set[int]]) -> Iterator[None]:
    """Collect the lines that run in some files; code of other files is not slowed down beyond its calls."""
    known: dict[str, set[int] | None] = {}

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in known:
            known[file] = seen.get(os.path.realpath(file))
        return None if known[file] is None else line

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        seen_here = known[frame.f_code.co_filename]
        if seen_here is not None:
            seen_here.add(frame.f_lineno)
        return line

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


# --- Whoever asks ---


class Server:
    """The process that forks a child for each mutant. It leads its own group: ending it ends every child."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        quiet = {"PYTHONWARNINGS": "ignore", "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "lemmata.testing.mutant_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            encoding="utf-8",
            env={**os.environ, **threads, **quiet},
            start_new_session=True,
        )
        self._say(setting)

    def __enter__(self) -> "Server":
        return self

    def ask(self, tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The answers to a batch of tasks, as they come."""
        assert self.process.stdout is not None
        self._say(tasks)
        for _ in tasks:
            line = self.process.stdout.readline()
            if not line:
                self.errors.seek(0)
                last = self.errors.read().decode(errors="replace").strip().splitlines()[-1:]
                raise ValueError(f"the process that runs the mutants ended: {last[0] if last else 'without a word'}")
            yield json.loads(line)

    def _say(self, message: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the missing answer tells
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(OSError):
                stream.close() if stream else None


# --- In the parent ---


def main() -> None:
    """Answer batches until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    setting = json.loads(sys.stdin.readline())
    sys.path[:0] = [path for path in setting["paths"] if path not in sys.path]
    _import(setting["imports"])
    snapshot = Snapshot(setting["sources"])
    sys.meta_path.insert(0, snapshot)
    for line in sys.stdin:
        for answer in _batch(json.loads(line), snapshot, setting["jobs"]):
            print(json.dumps(answer), file=answers, flush=True)


def _import(names: list[str]) -> None:
    """Import now what every child would have to import."""
    import torch

    import lemmata.judge.runner  # noqa: F401

    torch.set_num_threads(1)
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _batch(tasks: list[dict[str, Any]], snapshot: Snapshot, jobs: int) -> Iterator[dict[str, Any]]:
    waiting, children = deque(tasks), {}
    with selectors.DefaultSelector() as selector:
        while waiting or children:
            while waiting and len(children) < jobs:
                child = _Child(waiting.popleft(), snapshot)
                children[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            for key, _ in selector.select():
                child = children[key.fd]
                if not child.read():
                    selector.unregister(key.fd)
                    yield children.pop(key.fd).answer()


class _Child:
    """One forked process and the pipe it speaks through."""

    def __init__(self, task: dict[str, Any], snapshot: Snapshot) -> None:
        self.key, self.said = task["key"], b""
        self.pipe, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _live(task, snapshot, theirs)
        os.close(theirs)

    def read(self) -> bool:
        """Take what it says; False once it is gone."""
        said = os.read(self.pipe, 1 << 16)
        self.said += said
        return bool(said)

    def answer(self) -> dict[str, Any]:
        os.close(self.pipe)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        lines = [json.loads(line) for line in self.said.splitlines()]
        last = lines[-1] if lines else {}
        if code == 0 and "running" not in last:
            return {**last, "key": self.key}
        how = "it hangs" if -code in (signal.SIGPROF, signal.SIGALRM) else f"the process ended with code {code}"
        return {"key": self.key, "by": last.get("running", "?"), "how": how}


def _live(task: dict[str, Any], snapshot: Snapshot, pipe: int) -> None:
    """A child's whole life. It never returns into its parent's code."""
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _limit_memory()

        def tell(message: dict[str, Any]) -> None:
            os.write(pipe, json.dumps(message).encode() + b"\n")

        answer = json.dumps(run(task, snapshot, tell)).encode() + b"\n"
        while answer:
            answer = answer[os.write(pipe, answer) :]
        os._exit(0)
    except BaseException:
        os._exit(1)


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # where the system cannot count, it does not limit
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
