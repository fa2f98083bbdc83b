"""One process for each contender, repeats in turn; who fails, lies, hangs or is missing stops nobody else."""

import itertools
import os
import select
import signal
import subprocess
import sys

import pytest

from lemmata.bench import rounds
from lemmata.bench.rounds import contest

NAMES = """
    @entry("names", title="", measures="", cases={{"only": ""}}, targets={{}})
    def names(case, device):
        return open({path!r}, "a")

    def writer(name):
        return lambda file: lambda: print(name, end="", file=file, flush=True)

    @ours("A")
    def a(file): return writer("A")(file)
    @peer("B")
    def b(file): return writer("B")(file)
    @peer("C")
    def c(file): return writer("C")(file)

    @agreement(within=0.0)
    def nothing(result): return {{}}
"""
ENDLESS = """
    import os

    @entry("endless", title="", measures="", cases={{"only": ""}}, targets={{}})
    def alive(case, device):
        fifo = os.open({path!r}, os.O_WRONLY)
        os.write(fifo, b"here ")
        return fifo  # open as long as this process lives

    @ours("first")
    def first(fifo):
        def spin():
            os.write(fifo, b"working ")
            while True:
                pass
        return spin

    @peer("second")
    def second(fifo): return lambda: 0

    @agreement(within=0.0)
    def nothing(result): return {{}}
"""

HANGS = """
    import threading

    @entry("hangs", title="", measures="", cases={"only": ""}, targets={})
    def nothing_comes(case, device):
        threading.Event().wait()

    @ours("first")
    def first(problem): return lambda: 0
    @peer("second")
    def second(problem): return lambda: 0

    @agreement(within=0.0)
    def nothing(result): return {}
"""


def measure(entry, case, budget=60.0):
    return {one.contender.who: one for one in contest(entry, case, device="cpu", threads=1, budget=budget)}


def test_repeats_take_turns_and_each_round_another_begins(folder, tmp_path):
    order = tmp_path / "order"
    measured = measure(folder(names=NAMES.format(path=str(order)))["names"], "only")
    turns = [letter for letter, calls in itertools.groupby(order.read_text())]  # each is called some times in its turn
    assert "".join(turns) == "ABC" + "ABC" + "BCA" + "CAB" + "ABC" + "BCA"
    assert [len(one.seconds) for one in measured.values()] == [5, 5, 5]


def test_all_that_are_here_are_measured_and_the_missing_one_is_named(sums):
    measured = measure(sums, "small")
    assert measured["absent"].missing
    assert measured["absent"].reason == "missing: pip install a-package-that-nobody-has"
    assert measured["absent"].seconds == []
    for who in ("lemmata", "loop", "counting them"):
        assert measured[who].reason == ""
        assert len(measured[who].seconds) == 5
        assert measured[who].peak_bytes is not None
    assert measured["lemmata"].answer == measured["loop"].answer == {"total": 4950.0}
    assert measured["counting them"].answer == {}


def test_a_contender_that_fails_is_told_in_one_line_and_the_others_go_on(bad):
    measured = measure(bad, "only")
    assert measured["unprepared"].reason == "failed: FileNotFoundError: no such file"
    assert measured["late"].reason == "failed: StopIteration:"
    assert measured["nowhere"].reason == "failed: ValueError: the answer's number is nan"
    assert measured["dead"].reason == "failed: the worker ended with exit code 3: gone"
    assert len(measured["late"].seconds) == 1
    assert len(measured["lemmata"].seconds) == len(measured["liar"].seconds) == 5


def test_who_needs_the_whole_budget_for_one_repeat_is_measured_once(sums):
    measured = measure(sums, "large", budget=1e-12)
    assert len(measured["lemmata"].seconds) == 1
    assert measured["lemmata"].peak_bytes is not None


def test_who_hangs_is_ended(folder, monkeypatch):
    monkeypatch.setattr(rounds, "START_LIMIT", 0.0)
    measured = measure(folder(hangs=HANGS)["hangs"], "only")
    assert {one.reason for one in measured.values()} == {"failed: no answer within 0 s"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sees a process's end by the end of its pipe")
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_children_end_with_ctrl_c_and_with_the_death_of_their_parent(folder, tmp_path, stop, code):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    folder(endless=ENDLESS.format(path=str(fifo)))
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    start = f"""
import pathlib, sys
from lemmata.bench import registry
registry.FOLDER = pathlib.Path({str(tmp_path)!r})
from lemmata.lab.cli import main
sys.exit(main(["bench"]))
"""
    with subprocess.Popen([sys.executable, "-c", start], stderr=subprocess.PIPE) as parent:
        said = b""
        while b"working" not in said:
            assert select.select([reader], [], [], 60)[0], "no contender came to work"
            said += os.read(reader, 100)
        parent.send_signal(stop)
        while os.read(reader, 100) if select.select([reader], [], [], 60)[0] else pytest.fail("a child lives on"):
            pass
        parent.communicate(timeout=60)
    os.close(reader)
    assert said.count(b"here") == 2
    assert parent.returncode == code


def test_the_number_of_repeats_lies_between_five_and_a_bound():
    assert 5 == rounds.LEAST <= rounds.MOST
