"""Worker processes: what hangs or crashes is stopped alone, the rest goes on, and the bits are the same everywhere."""

import errno
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import textwrap

import pytest

from lemmata.catalog import read_claims
from lemmata.judge.engine import ProcessEngine, Task, task_of
from lemmata.judge.ledger import Ledger
from lemmata.judge.worker import perform

GOOD = """
    import random, numpy, torch
    from lemmata.judge import *

    @claim("good.sum")
    @lie("shifted", shift=1.0)
    def good_sum(draw, shift=0.0):
        x = draw.normal(1000)
        table = torch.randn(50, 50) @ torch.randn(50, 50)
        noise = random.random() + numpy.random.rand() + hash("text") % 7
        shown = Figure("noise", marks=[Line([0, 1, 2], [float(table.sum()), noise, float("nan")])])
        return close(x.sum() + shift, sum(x.tolist()), ulps=10_000).showing(shown)

    @claim("good.mean")
    @lie("far", mean=0.5)
    def good_mean(draw, mean=0.0):
        return mean_is(lambda x: x, draw.normal, mean, effect=0.5)

    @claim("good.printer")
    @lie("two", x=2)
    def printer(draw, x=1):
        import os, subprocess, sys
        print('{"id": "good.sum", "verdict": "refuted"}', flush=True)
        sys.__stdout__.write("noise\\n" * 10_000)
        os.write(1, b'{"ready": true}\\n')
        subprocess.run(["echo", "from a child"])
        return exactly(x, 1)

    @claim("good.reader")
    @lie("two", x=2)
    def reader(draw, x=1):
        import sys
        return exactly((sys.stdin.read(), x), ("", 1))

    @claim("good.meddler")
    @lie("two", x=2)
    def meddler(draw, x=1):
        torch.manual_seed(1), random.seed(1), torch.set_default_dtype(torch.float64), torch.set_num_threads(2)
        return exactly(x, 1)

    @claim("good.default")
    @lie("double", dtype=torch.float64)
    def default(draw, dtype=torch.float32):
        return exactly(str(torch.randn(1).dtype), str(dtype))
"""

BAD = """
    import ctypes, os, signal
    import torch
    from lemmata.judge import *
    torch.set_default_dtype(torch.float64)  # on import: must not reach the claims of other files

    @claim("bad.hang", cost="instant")
    def hang(draw):
        while True:
            pass

    @claim("bad.segv")
    def segv(draw):
        os.kill(os.getpid(), signal.SIGSEGV)

    @claim("bad.exit")
    def leave(draw):
        print("something is on fire", flush=True)
        os._exit(3)

    @claim("bad.killed")
    def killed(draw):
        os.kill(os.getpid(), signal.SIGKILL)

    @claim("bad.memory")
    def memory(draw):
        return torch.empty(10**15)

    @claim("bad.twice")
    def twice(draw):
        return exactly(1, 1)

    @claim("bad.shadow")
    def twice(draw):
        return None
"""

LIMIT = {"instant": 3.0, "quick": 120.0, "long": 120.0}


def entries(folder, text, name):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return list(read_claims(path, path.stem, []))


def run(engine, tasks):
    for task in tasks:
        engine.submit(task)
    engine.start()
    try:
        results = dict(engine.results())
        running = [worker.process.pid for worker in engine.workers]
    finally:
        engine.stop()
    assert engine.workers == []
    assert not any(alive(pid) for pid in running)
    return {task.id: answer.result for task, answer in results.items()}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    good, bad = entries(folder, GOOD, "random.py"), entries(folder, BAD, "bad.py")
    (folder / "broken.py").write_text("import nowhere_to_be_found")
    broken = [
        Task("broken.import", "broken", str(folder / "broken.py"), "check"),
        Task("broken.name", "random", str(folder / "random.py"), "no_such_function"),
        Task("broken.file", "absent", str(folder / "absent.py"), "check"),
    ]
    return [task_of(claim, 0) for claim in good], [*(task_of(claim, 0) for claim in bad), *broken]


@pytest.fixture(scope="module")
def results(tasks):
    """Everything at once on two workers, the bad among the good."""
    good, bad = tasks
    mixed = [task for pair in zip(bad, good, strict=False) for task in pair]
    return run(ProcessEngine(jobs=2, time_limit=LIMIT), [*mixed, *bad[len(good) :]])


def test_every_task_has_a_result_whatever_the_others_did(results, tasks):
    assert set(results) == {task.id for some in tasks for task in some}
    assert {results[task.id].verdict for task in tasks[0]} == {"holds"}
    assert {results[task.id].verdict for task in tasks[1]} == {"error"}


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        ("bad.hang", "stopped after 3 s: it hangs, or its cost class is wrong"),
        ("bad.segv", "the worker ended by signal SIGSEGV"),
        ("bad.exit", "the worker ended with exit code 3: something is on fire"),
        ("bad.killed", "the worker was killed, often for lack of memory: try --jobs 1"),
        ("bad.memory", "RuntimeError: "),
        ("bad.twice", "bad.py has no claim 'bad.twice' under the name twice: is the name used twice?"),
        ("broken.import", "broken.py cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("broken.name", "random.py has no claim 'broken.name' under the name no_such_function"),
        ("broken.file", "absent.py cannot be imported: FileNotFoundError"),
    ],
)
def test_the_reason_says_what_happened(results, id, reason):
    assert reason in results[id].reason


def same_bits(one, other):
    return (one.verdict, one.evidence, one.lies, one.by, one.seed) == (
        other.verdict, other.evidence, other.lies, other.by, other.seed,
    )  # fmt: skip


def test_one_worker_two_workers_and_this_process_agree_to_the_last_bit(results, tasks):
    alone = run(ProcessEngine(jobs=1), [task for task in tasks[0] if task.id != "good.reader"])
    assert alone["good.sum"].evidence["figure"]["marks"][0]["y"][2] is None
    for task in tasks[0]:
        if task.id in alone:
            assert same_bits(results[task.id], alone[task.id]), task.id
        if task.id in ("good.mean", "good.meddler", "good.default"):
            assert same_bits(results[task.id], perform(vars(task))), task.id


def test_no_tasks_need_no_workers():
    engine = ProcessEngine(jobs=2)
    engine.start()
    assert list(engine.results()) == []
    assert engine.workers == []
    engine.stop()


def test_jobs_must_be_positive():
    with pytest.raises(ValueError, match="jobs must be >= 1, got -1"):
        ProcessEngine(jobs=-1)
    assert ProcessEngine().jobs == len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else True


def test_a_worker_that_cannot_start_does_not_go_on_for_ever(monkeypatch, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho no torch here >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    got = run(ProcessEngine(jobs=2), [Task(f"a.{k}", "m", "/m.py", "f") for k in range(3)])
    assert {result.reason for result in got.values()} == {"the worker ended with exit code 1: no torch here"}
    assert len(got) == 3


def test_a_machine_that_starts_no_process_is_said(monkeypatch):
    def full(*arguments, **words):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", full)
    got = run(ProcessEngine(jobs=2), [Task(f"a.{k}", "m", "/m.py", "f") for k in range(3)])
    assert {result.reason for result in got.values()} == {
        "a worker cannot be started: Resource temporarily unavailable"
    }


# --- Being stopped ---

JUDGE = """
    import sys
    from pathlib import Path
    from lemmata.catalog import read_claims
    from lemmata.judge.engine import ProcessEngine
    from lemmata.judge.ledger import Ledger
    from lemmata.judge.session import judge_all

    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    engine = ProcessEngine(jobs=1)
    for result, known in judge_all(list(read_claims(path, "mine", [])), engine, Ledger(folder)):
        print(result.id, result.verdict, *(worker.process.pid for worker in engine.workers), flush=True)
"""

SLOW = """
    from lemmata.judge import *

    @claim("a.first", cost="quick")
    @lie("two", x=2)
    def first(draw, x=1):
        return exactly(x, 1)

    @claim("a.second", cost="instant")
    @lie("two", x=2)
    def second(draw, x=1):
        open({fifo!r}, "w").close()
        while True:
            pass
"""


@pytest.fixture
def judging(tmp_path):
    """A process that judges; its first claim is done, its second runs and never ends."""
    fifo, mine, script = tmp_path / "running", tmp_path / "mine.py", tmp_path / "judge.py"
    os.mkfifo(fifo)
    mine.write_text(textwrap.dedent(SLOW.format(fifo=str(fifo))))
    script.write_text(textwrap.dedent(JUDGE))
    command = [sys.executable, str(script), str(mine), str(tmp_path / "ledger")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        id, verdict, worker = process.stdout.readline().split()
        assert (id, verdict) == ("a.first", "holds")
        assert readable(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
        yield process, int(worker), Ledger(tmp_path / "ledger")
        process.kill()


def readable(descriptor, seconds=120):
    """Wait until a pipe or a process descriptor says something; no polling."""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            return bool(selector.select(seconds))
    finally:
        os.close(descriptor)


def gone(pid):
    try:
        return readable(os.pidfd_open(pid))
    except ProcessLookupError:
        return True


linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux to wait for a process not its own")


@linux
def test_ctrl_c_keeps_what_is_finished_and_leaves_no_worker(judging):
    process, worker, ledger = judging
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors
    assert gone(worker)
    assert ledger.size()[0] == 1


@linux
@pytest.mark.long
def test_workers_die_with_a_parent_that_is_killed(judging):
    process, worker, ledger = judging
    assert alive(worker)
    process.kill()
    process.communicate(timeout=120)
    assert gone(worker)
    assert ledger.size()[0] == 1
    assert list(pathlib.Path(ledger.folder).rglob("*.tmp")) == []
