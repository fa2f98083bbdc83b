"""The one child process: only the answer to the task at hand is believed, and nothing that it started outlives it."""

import json
import os
import select
import selectors
import signal
import subprocess
import sys
import textwrap

import pytest

from lemmata import workers
from lemmata.workers import Lost, Worker, descendants, parsed, threads

CHILD = """
    import json, os, signal, subprocess, sys
    from lemmata.workers import serve

    def spoil(data):
        for descriptor in range(3, 32):
            try:
                os.write(descriptor, data)
            except OSError:
                pass

    def escape(fifo):
        '''A grandchild in a session of its own, without a parent, that holds a FIFO open until it dies.'''
        with open(fifo, "w"):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.setsid()
                    signal.pause()
                os._exit(0)
            os.wait()

    def perform(task):
        return globals()[task["do"]](*task.get("with", ())) or {"done": task["do"]}

    def fork():
        return {"copy": os.fork() == 0}

    def say(text):
        spoil(text.encode())

    def enormous():
        spoil(b"x" * (17 << 20))

    def end(number):
        os.kill(os.getpid(), number)

    def leave(code, text):
        print(text, flush=True)
        os._exit(code)

    def end_group():
        os.killpg(0, signal.SIGKILL)

    def chatter(megabytes):
        for _ in range(megabytes):
            os.write(1, b"all work and no play\\n" * 50_000)
        print("the last line", flush=True)
        os._exit(3)

    def hold(megabytes):
        return {"held": len(bytes(range(256)) * (megabytes << 12))}

    def keep(megabytes):
        kept = bytes(range(256)) * (megabytes << 12)
        signal.pause()

    def share_out(megabytes):
        for _ in range(4):
            if os.fork() == 0:
                keep(megabytes // 4)
        signal.pause()

    def inherited():
        script = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))"
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, close_fds=False)
        return {"open": json.loads(run.stdout)}

    def surrogate():
        return {"text": "caf\\ud800"}

    def not_json():
        return {"number": float("nan")}

    def environment():
        return {"environment": dict(os.environ), "assertions": __debug__}

    def stop_the_keeper(fifo):
        with open(fifo, "w"):
            os.kill(os.getppid(), signal.SIGSTOP)
            signal.pause()

    def hang():
        while True:
            pass

    serve(perform, lambda: {"ready": os.getpid()})
"""

linux = pytest.mark.skipif(not workers.KEPT, reason="only Linux has a keeper")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("child") / "child.py"
    path.write_text(textwrap.dedent(CHILD))
    return path


@pytest.fixture
def worker(script):
    with Worker([str(script)], threads(1)) as started:
        assert started.wait(60.0).keys() == {"ready"}
        yield started


def ask(worker, do, *arguments):
    worker.give({"do": do, "with": arguments})
    return worker.wait(60.0)


def closed(fifo):
    """Wait until nobody holds the other end of a FIFO any more."""
    with selectors.DefaultSelector() as selector:
        selector.register(fifo, selectors.EVENT_READ)
        assert selector.select(60.0)
        return os.read(fifo, 1) == b""


@pytest.fixture
def fifo(tmp_path):
    """The path of a FIFO, and its end for reading; opening it waits for nobody."""
    path = tmp_path / "alive"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield str(path), descriptor
    os.close(descriptor)


def test_tasks_are_answered_one_by_one(worker):
    assert ask(worker, "hold", 1) == {"held": 1 << 20}
    assert ask(worker, "say", "") == {"done": "say"}


def test_a_forked_copy_says_nothing(worker):
    """Else its answer would be taken for that to the next task."""
    assert ask(worker, "fork") == {"copy": False}
    assert ask(worker, "hold", 1) == {"held": 1 << 20}
    assert ask(worker, "hold", 2) == {"held": 2 << 20}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("garbage\n", "the pipe on which the worker's answers travel was spoilt"),
        ("no line", "the pipe on which the worker's answers travel was spoilt"),
        ("\xff\n", "the pipe on which the worker's answers travel was spoilt"),
        ("[" * 100_000 + "\n", "the pipe on which the worker's answers travel was spoilt"),
        ('{"nonce": NaN}\n', "the pipe on which the worker's answers travel was spoilt"),
        ("[]\n", "the worker answered what it was not asked"),
        ("null\n", "the worker answered what it was not asked"),
        ('{"verdict": "holds"}\n', "the worker answered what it was not asked"),
        ('{"nonce": "", "answer": {"held": 7}}\n', "the worker answered what it was not asked"),
        ('{"stopped": "memory"}\n', "the worker answered what it was not asked"),
    ],
)
def test_what_is_no_answer_ends_the_worker_with_a_clause(worker, text, reason):
    with pytest.raises(Lost) as lost:
        ask(worker, "say", text)
    assert str(lost.value) == reason


def test_an_enormous_line_is_not_read_to_its_end(worker):
    with pytest.raises(Lost, match="the worker's answer is longer than 16 MiB"):
        ask(worker, "enormous")


def test_an_answer_to_an_earlier_task_is_not_believed(worker):
    worker.give({"do": "hold", "with": [1]})
    worker.give({"do": "hold", "with": [2]})
    with pytest.raises(Lost, match="answered what it was not asked"):
        worker.wait(60.0)


def test_a_second_answer_is_nobodys(worker):
    worker.give({"do": "hold", "with": [1]})
    nonce = worker._nonce
    assert worker.wait(60.0) == {"held": 1 << 20}
    for late in ({"nonce": nonce, "answer": {"held": 1}}, {"nonce": "", "answer": {"held": 1}}):
        with pytest.raises(Lost, match="answered what it was not asked"):
            worker._believed_answer(json.dumps(late).encode())


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGSEGV, "the worker ended by signal SIGSEGV"),
        (signal.SIGTERM, "the worker ended by signal SIGTERM"),
        (signal.SIGPIPE, None),  # Python ignores it
        pytest.param(40, "the worker ended by signal 40", marks=linux),  # real-time signals have no names
        pytest.param(64, "the worker ended by signal SIGRTMAX", marks=linux),
    ],
)
def test_the_signal_that_ended_it_is_named(worker, number, reason):
    if reason is None:
        assert ask(worker, "end", number) == {"done": "end"}
        return
    with pytest.raises(Lost) as lost:
        ask(worker, "end", number)
    assert (str(lost.value), lost.value.why) == (reason, "")


def test_a_kill_is_told_apart(worker):
    with pytest.raises(Lost, match="the worker was killed, often for lack of memory") as lost:
        ask(worker, "end", signal.SIGKILL)
    assert lost.value.why == "killed"


@linux
def test_a_worker_that_ends_its_own_group_is_noticed(worker):
    with pytest.raises(Lost, match="the worker was killed"):
        ask(worker, "end_group")


def test_the_exit_code_comes_with_the_last_line(worker):
    with pytest.raises(Lost) as lost:
        ask(worker, "leave", 3, "something is on fire\n\n")
    assert str(lost.value) == "the worker ended with exit code 3: something is on fire"


def test_of_what_it_prints_the_end_is_kept(worker):
    with pytest.raises(Lost, match="with exit code 3: the last line"):
        ask(worker, "chatter", 50)
    assert len(worker._said) == workers.MOST_SAID


def test_what_it_starts_has_no_pipe_of_ours(worker):
    if workers.KEPT:
        assert ask(worker, "inherited")["open"] == [0, 1, 2, 3]  # 3 is the listing itself


def test_an_answer_can_be_printed_and_is_json(worker):
    assert ask(worker, "surrogate") == {"text": "caf?"}
    with pytest.raises(Lost, match="with exit code 1: ValueError: Out of range float values"):
        ask(worker, "not_json")


def test_the_environment_leaves_nothing_to_chance(script, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    with Worker([str(script)], threads(3)) as worker:
        worker.wait(60.0)
        found = ask(worker, "environment")
    assert found["assertions"]
    assert found["environment"]["PYTHONHASHSEED"] == "0"
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    assert [found["environment"][name] for name in names] == ["3"] * 4


def test_a_worker_that_is_late_is_ended(worker):
    worker.give({"do": "hang"})
    with pytest.raises(Lost, match=r"no answer within 0\.5 s"):
        worker.wait(0.5)
    assert worker.process.returncode is not None
    worker.kill()


def test_a_worker_that_cannot_start_says_its_last_line(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("import nowhere_to_be_found")
    with Worker([str(broken)], {}) as worker, pytest.raises(Lost, match="exit code 1: ModuleNotFoundError: No module"):
        worker.wait(60.0)


def test_a_task_for_the_dead_is_noticed_by_whoever_hears(worker):
    with pytest.raises(Lost, match="exit code 0"):
        ask(worker, "leave", 0, "")
    worker.give({"do": "hold", "with": [1]})
    with pytest.raises(Lost, match="exit code 0"):
        worker.wait(60.0)


# --- Memory, and what escapes ---


@linux
@pytest.mark.parametrize("do", ["keep", "share_out"])
def test_memory_is_bounded_that_of_children_too(script, do):
    with Worker([str(script)], threads(1), memory=256 << 20) as worker:
        worker.wait(60.0)
        assert ask(worker, "hold", 50) == {"held": 50 << 20}
        with pytest.raises(Lost) as lost:
            ask(worker, do, 400)
    assert str(lost.value) == "it took more than the 0.25 GiB of memory that it may use"
    assert lost.value.why == "memory"


@linux
@pytest.mark.parametrize("how", ["kill", "crash", "signal"])
def test_what_escaped_is_ended_with_its_worker(script, fifo, how):
    path, alive = fifo
    with Worker([str(script)], threads(1)) as worker:
        worker.wait(60.0)
        ask(worker, "escape", path)
        if how == "crash":
            with pytest.raises(Lost):
                ask(worker, "leave", 1, "")
        elif how == "signal":
            with pytest.raises(Lost):
                ask(worker, "end", signal.SIGKILL)
    assert closed(alive)


@linux
def test_a_worker_that_stops_its_keeper_is_ended_all_the_same(script, fifo, monkeypatch):
    monkeypatch.setattr(workers, "GRACE", 0.5)
    path, alive = fifo
    with Worker([str(script)], threads(1)) as worker:
        worker.wait(60.0)
        worker.give({"do": "stop_the_keeper", "with": [path]})
        os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WNOWAIT)
    assert closed(alive)


PARENT = """
    import sys
    from lemmata.workers import Worker, threads

    worker = Worker([sys.argv[1]], threads(1))
    worker.wait(60.0)
    worker.give({"do": "escape", "with": [sys.argv[2]]})
    worker.wait(60.0)
    worker.give({"do": "hang"})
    print("hanging", flush=True)
    worker.wait(600.0)
"""


@linux
def test_what_escaped_is_ended_when_the_parent_is_killed(script, fifo, tmp_path):
    path, alive = fifo
    parent = tmp_path / "parent.py"
    parent.write_text(textwrap.dedent(PARENT))
    with subprocess.Popen([sys.executable, str(parent), str(script), path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"hanging\n"
        process.kill()
    assert closed(alive)


@linux
def test_descendants_are_counted_through_the_generations(worker, fifo):
    assert len(descendants(worker.process.pid)) == 1
    ask(worker, "escape", fifo[0])
    assert len(descendants(worker.process.pid)) == 2
    assert descendants(2**22 + 1) == []


@pytest.mark.parametrize("text", [b"", b"nonsense", b"\xff", b"NaN", b"[Infinity]", b"[" * 100_000, b"1" * 5000])
def test_what_cannot_be_parsed_is_one_kind_of_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 (each says something else)
        parsed(text)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_what_was_started_ends_with_a_parent_that_is_killed():
    """A grandchild that would run for ever holds the end of a pipe, which closes when it is gone."""
    ours, theirs = os.pipe()
    runs_on = "import sys; print('here', flush=True)\nwhile True: pass"
    parent = (
        "import subprocess, sys; from lemmata.workers import end_with_parent\n"
        f"start = dict(pass_fds=[{theirs}], preexec_fn=end_with_parent)\n"
        f"subprocess.Popen([sys.executable, '-c', {runs_on!r}], **start).wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], pass_fds=[theirs], stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        assert process.stdout.readline() == "here\n"  # the grandchild's, which runs by now
        process.kill()
        assert select.select([ours], [], [], 60)[0], "the grandchild runs on"
        assert os.read(ours, 1) == b""
    os.close(ours)
