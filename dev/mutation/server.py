"""Where mutants run: a worker that has imported what takes long, and for each mutant a forked child.

The first task is the setting, each further one a mutant with its claims or its tests, or one of these on the unbroken
code. A child imports the mutant in place of the module, runs them, and is gone: a hang, a crash or a full memory is its
own.
"""

import contextlib
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from lemmata.workers import Lost, Worker, serve, threads
from mutation.traced_lines import tracing

__all__ = []  # started by `mutate`

MEMORY = 8 << 30  # bytes a child may take beyond what its parent has
START_LIMIT = 300.0  # seconds for a worker to import everything on a busy machine
GRACE = 60.0  # seconds on top of what a child's own clocks allow it, for one that has switched them off

DEV = Path(__file__).resolve().parents[1]  # where the package `mutation` is found

Task = dict[str, Any]
Tell = Callable[[dict[str, Any]], None]


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
        self._for_every_loader(path, source.encode())

    def _for_every_loader(self, path: str, source: bytes) -> None:
        """Whoever else loads this file, such as a hook that adds checks of types, gets this source and no bytecode."""
        get_data, path_stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

        def data(loader: Any, wanted: str) -> bytes:
            return source if os.path.realpath(wanted) == path else get_data(loader, wanted)

        def stats(loader: Any, wanted: str) -> Any:
            return self.path_stats(wanted) if os.path.realpath(wanted) == path else path_stats(loader, wanted)

        SourceFileLoader.get_data = data  # pyright: ignore[reportAttributeAccessIssue]
        SourceFileLoader.path_stats = stats  # pyright: ignore[reportAttributeAccessIssue]

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


def run(task: Task, snapshot: Snapshot, tell: Tell) -> dict[str, Any]:
    """What a task asks for: `claims` or `tests` of a mutant, or, where there is none, of the unbroken code."""
    if task["mutant"]:
        module, path, source = task["mutant"]
        if module in sys.modules:
            return {"error": f"{module} was imported before it could be replaced"}
        snapshot.replace(module, path, source)
    if "tests" in task:
        from mutation import child_tests  # and by it pytest

        return child_tests.run(task, tell, alarm)
    return _try(task["claims"], tell) if task["mutant"] else _measure(task["claims"][0], task["trace"], tell)


def _try(claims: list[dict[str, Any]], tell: Tell) -> dict[str, Any]:
    """Every truth first, the cheapest leading; then the whole judgement, for lies that are no longer rejected."""
    for with_lies in (False, True):
        for claim in claims:
            tell({"running": claim["id"]})
            alarm(claim["limit"][with_lies])
            result = _judge(claim, with_lies)
            if not _passes(result, with_lies):
                return {"by": claim["id"], "how": f"{result.verdict}: {result.reason}"}
    return {"by": ""}


def _measure(claim: dict[str, Any], files: list[str], tell: Tell) -> dict[str, Any]:
    """The judgement of the unbroken code with the lines it runs, from the first import on; then the truth's time."""
    tell({"running": claim["id"]})
    alarm(claim["limit"][1])
    with tracing(files) as lines:
        result = _judge(claim, with_lies=True)
    truth, ran = _judge(claim, with_lies=False), lines.take()
    return {**result.to_json(), "evidence": None, "lies": [], "truth_seconds": truth.seconds, "lines": ran}


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


def alarm(seconds: float) -> None:
    """Seconds of work, and ten times as many on the clock, for a machine that is busy or a child that only waits.

    Nobody handles these signals, so the kernel itself ends the child, wherever it hangs.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


# --- Whoever asks ---


class Pool:
    """Workers, each with a mutant at a time. Whatever a mutant starts ends with its worker at the latest."""

    def __init__(self, setting: dict[str, Any], jobs: int) -> None:
        self.setting, self.jobs = setting, jobs
        # With its task, or none while it prepares, and the time at which it counts as hanging.
        self.busy: dict[Worker, tuple[Task | None, float]] = {}
        self.idle: list[Worker] = []
        self.selector = selectors.DefaultSelector()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in [*self.busy, *self.idle]:
            worker.kill()
        self.selector.close()

    def answers(self, waiting: deque[Task], until: float = float("inf")) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Tasks with their answers as they come. Tasks may be added meanwhile; none is begun when the time is up."""
        while (waiting and time.monotonic() < until) or any(task for task, _ in self.busy.values()):
            while waiting and self.idle and time.monotonic() < until:
                self._begin(self.idle.pop(), waiting.popleft())
            preparing = sum(task is None for task, _ in self.busy.values())
            if preparing < len(waiting) and len(self.busy) < self.jobs and time.monotonic() < until:
                self._start()
                continue
            soonest = min([until, *(deadline for _, deadline in self.busy.values())])
            for key, _ in self.selector.select(max(0.0, soonest - time.monotonic())):
                yield from self._hear(key.data)
            for worker in [w for w, (_, deadline) in self.busy.items() if deadline < time.monotonic()]:
                yield from self._lose(worker, {"by": "?", "how": "it hangs"})
            if time.monotonic() >= until:
                break
        for worker in [worker for worker, (task, _) in self.busy.items() if task]:
            self._drop(worker)

    def _start(self) -> None:
        # To look for a GPU takes every child a second; tests that need one are left out.
        quiet = {"OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES", "CUDA_VISIBLE_DEVICES": ""}
        home = {"PYTHONPATH": os.pathsep.join([str(DEV), *filter(None, [os.environ.get("PYTHONPATH")])])}
        worker = Worker(["-m", "mutation.server"], {**threads(1), **quiet, **home})
        self.selector.register(worker.output, selectors.EVENT_READ, worker)
        self.busy[worker] = None, time.monotonic() + START_LIMIT

    def _begin(self, worker: Worker, task: Task) -> None:
        self.busy[worker] = task, time.monotonic() + 10 * task["seconds"] + GRACE
        worker.give({name: value for name, value in task.items() if name != "about"})

    def _hear(self, worker: Worker) -> Iterator[tuple[Task, dict[str, Any]]]:
        try:
            for answer in worker.hear():
                task, deadline = self.busy.pop(worker)
                if task is not None:
                    self.idle.append(worker)
                    yield task, answer
                elif "prepared" in answer:
                    self.idle.append(worker)
                else:  # it is ready for the setting
                    self.busy[worker] = None, deadline
                    worker.give({"setting": self.setting})
        except Lost as lost:
            yield from self._lose(worker, {"lost": str(lost), "how": str(lost)})

    def _lose(self, worker: Worker, answer: dict[str, Any]) -> Iterator[tuple[Task, dict[str, Any]]]:
        task, _ = self.busy.get(worker, (None, 0.0))
        unused = worker in self.idle
        self._drop(worker)
        if unused:
            return
        if task is None:
            raise ValueError(f"a process for the mutants cannot be started: {answer['how']}")
        yield task, answer

    def _drop(self, worker: Worker) -> None:
        self.selector.unregister(worker.output)
        self.busy.pop(worker, None)
        self.idle = [other for other in self.idle if other is not worker]
        worker.kill()


# --- In the worker ---

_snapshots: list[Snapshot] = []  # one, from the setting on


def perform(task: Task) -> dict[str, Any]:
    """Prepare for all that is to come, or run one task in a child."""
    if "setting" not in task:
        return _in_child(task)
    setting = task["setting"]
    sys.path[:0] = [path for path in setting["paths"] if path not in sys.path]
    for name in setting["imports"]:
        with contextlib.suppress(Exception):  # who needs it will say what is wrong with it
            importlib.import_module(name)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    _snapshots.append(Snapshot(setting["sources"]))
    sys.meta_path.insert(0, _snapshots[0])
    gc.collect()
    gc.freeze()  # so that no child looks for garbage here, which would copy every page
    return {"prepared": True}


def _in_child(task: Task) -> dict[str, Any]:
    """What a child said last, or how it ended. It speaks into a file: a pipe may be kept open by what it started."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if pid == 0:
            _live(task, said.fileno(), folder)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        said.seek(0)
        lines = [json.loads(line) for line in said.read().splitlines()]
    shutil.rmtree(folder, ignore_errors=True)
    last = lines[-1] if lines else {}
    if code == 0 and last and "running" not in last:
        return last
    how = "it hangs" if -code in (signal.SIGPROF, signal.SIGALRM) else f"the process ended with code {code}"
    return {"by": last.get("running", "?"), "how": how}


def _live(task: Task, said: int, folder: str) -> None:
    """A child's whole life. It never returns into its parent's code."""
    try:
        os.setsid()  # what it starts is ended with it
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _limit_memory()
        os.environ["TMPDIR"] = tempfile.tempdir = folder

        def tell(message: dict[str, Any]) -> None:
            line = json.dumps(message).encode() + b"\n"
            while line:
                line = line[os.write(said, line) :]

        tell(_answer(task, tell))
        os._exit(0)
    except BaseException:
        os._exit(1)


def _answer(task: Task, tell: Tell) -> dict[str, Any]:
    try:
        return run(task, _snapshots[0], tell)
    except BaseException as error:  # whatever a mutant raised past those who judge and test
        return {"by": "?", "how": f"{type(error).__name__}: {error}"}


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # where the system cannot count, it does not limit
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    serve(perform)
