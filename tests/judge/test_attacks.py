"""What a claims file may do, by accident or not: it ends one claim, and gives no verdict to others or to the ledger."""

import os
import textwrap

import pytest

from lemmata.catalog import load, read_claims
from lemmata.judge.engine import ProcessEngine
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import judge_all, remembered
from lemmata.workers import KEPT

OURS = "cover.base_cases"

FORK = """
    import os
    import torch
    from lemmata.judge import *

    @claim("fork.twice")
    @lie("two", x=2)
    def twice(draw, x=1):
        os.fork()
        return exactly(x, 1)

    @claim("fork.false")
    @lie("two", x=2)
    def false(draw, x=1):
        return exactly(x, 3)

    @claim("fork.true")
    @lie("two", x=2)
    def true(draw, x=1):
        return exactly(torch.tensor(x).item(), 1)
"""

HIJACK = """
    import torch
    from lemmata.judge import *
    from lemmata.judge import runner

    @claim("hijack.judge")
    @lie("two", x=2)
    def judge(draw, x=1):
        torch.tensor = lambda *values, **words: None
        runner.attempt = lambda claim, seed, changed: exactly(1, 2 if changed else 1)
        return exactly(x, 1)
"""

SPOIL = """
    import os
    from lemmata.judge import *

    def spoil(data):
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, data)
            except OSError:
                pass

    @claim("spoil.forged")
    @lie("two", x=2)
    def forged(draw, x=1):
        spoil(b'{"id": "spoil.after", "verdict": "holds"}\\n')
        return exactly(x, 1)

    @claim("spoil.after")
    @lie("two", x=2)
    def after(draw, x=1):
        return exactly(x, 3)

    @claim("spoil.signal")
    def real_time(draw):
        os.kill(os.getpid(), 40)
"""

GREEDY = """
    import os, signal
    from lemmata.judge import *

    @claim("greedy.memory")
    def memory(draw):
        kept = bytes(range(256)) * (1 << 23)
        signal.pause()

    @claim("greedy.escape")
    def escape(draw):
        with open({fifo!r}, "w"):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.setsid()
                    signal.pause()
                os._exit(0)
            os.wait()
        os._exit(1)
"""


def entries(folder, text, name):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return list(read_claims(path, path.stem, []))


def judged(claims, engine, ledger):
    try:
        return {result.id: result for result, _ in judge_all(claims, engine, ledger)}
    finally:
        engine.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("attacks")


@pytest.fixture(scope="module")
def ledger(folder):
    return Ledger(folder / "ledger")


@pytest.fixture(scope="module")
def fifo(folder):
    """What the process that escapes holds open: it ends when that process does."""
    os.mkfifo(folder / "alive")
    descriptor = os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


@pytest.fixture(scope="module")
def results(folder, ledger, fifo):
    """All of them on one worker at a time, one after the other, with a claim of ours among them."""
    texts = {"hijack.py": HIJACK, "fork.py": FORK, "spoil.py": SPOIL}
    texts |= {"greedy.py": GREEDY.format(fifo=str(folder / "alive"))} if KEPT else {}
    claims = [claim for name, text in texts.items() for claim in entries(folder, text, name)]
    claims.insert(1, load().claims[OURS])
    return judged(claims, ProcessEngine(jobs=1, memory=1 << 30), ledger)


def test_a_claim_that_returns_twice_gives_its_verdict_to_no_other(results, ledger, folder):
    verdicts = {id: result.verdict for id, result in results.items() if id.startswith("fork.")}
    assert verdicts == {"fork.twice": "holds", "fork.false": "refuted", "fork.true": "holds"}
    known = remembered(read_claims(folder / "fork.py", "fork", []), ledger)
    assert {id: result.verdict for id, result in known.items()} == verdicts


def test_what_a_file_does_to_torch_and_to_the_judge_reaches_no_other(results):
    assert results["hijack.judge"].verdict == "holds"  # of itself it may say what it likes
    assert results[OURS].verdict == "holds"
    assert results[OURS].evidence["detail"], "judged by our own judge"
    assert results["fork.false"].verdict == "refuted"


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        ("spoil.forged", "the worker answered what it was not asked"),
        ("spoil.signal", "the worker ended by signal 40"),
    ],
)
def test_what_spoils_the_pipe_ends_one_claim_with_a_sentence(results, id, reason):
    assert (results[id].verdict, results[id].reason) == ("error", reason)
    assert results["spoil.after"].verdict == "refuted"


@pytest.mark.skipif(not KEPT, reason="only Linux tells how much memory processes hold")
def test_memory_is_bounded_and_said(results):
    said = "it took more than the 1 GiB of memory that it may use: allow more with --memory"
    assert results["greedy.memory"].reason == said


@pytest.mark.skipif(not KEPT, reason="only Linux tells what a process started")
def test_what_escaped_is_ended(results, fifo):
    assert results["greedy.escape"].reason == "the worker ended with exit code 1"
    assert os.read(fifo, 1) == b"", "nobody holds the other end"


# --- A file that changes while it is judged ---

FALSE = """
    from lemmata.judge import *
    from helper_of_mine import one

    @claim("mine.one")
    @lie("two", x=2)
    def check(draw, x=1):
        return exactly(x, one)
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "helper_of_mine.py").write_text("one = 3\n")
    return entries(tmp_path, FALSE, "mine.py"), tmp_path / "helper_of_mine.py", Ledger(tmp_path / "ledger")


def test_a_verdict_is_that_of_the_code_on_the_disk(mine):
    """The true version is there only while the worker loads it: before and afterwards the file is the false one."""
    claims, helper, ledger = mine

    class Edited(ProcessEngine):
        def start(self):
            helper.write_text("one = 1\n")

        def results(self):
            for answered in super().results():
                helper.write_text("one = 3\n")
                yield answered

    assert judged(claims, Edited(jobs=1), ledger)["mine.one"].verdict == "refuted"
    assert remembered(claims, ledger)["mine.one"].verdict == "refuted"


def test_a_warm_worker_does_not_judge_new_code_by_the_old(mine):
    """Neither the module in its memory nor the bytecode on the disk, which an edit of equal time and length keeps."""
    claims, helper, ledger = mine
    status = helper.stat()
    engine = ProcessEngine(jobs=1)
    try:
        ((first, _),) = judge_all(claims, engine, ledger)
        helper.write_text("one = 1\n")
        os.utime(helper, ns=(status.st_atime_ns, status.st_mtime_ns))
        ((second, known),) = judge_all(claims, engine, ledger)
    finally:
        engine.stop()
    assert (first.verdict, second.verdict, known) == ("refuted", "holds", False)


def test_a_file_that_never_stands_still_is_an_error_and_never_remembered(tmp_path):
    text = "from pathlib import Path\nPath(__file__).write_text(Path(__file__).read_text() + '#')\n"
    claims = entries(
        tmp_path, text + textwrap.dedent(FALSE).replace("from helper_of_mine import one", "one = 1"), "mine.py"
    )
    ledger = Ledger(tmp_path / "ledger")
    result = judged(claims, ProcessEngine(jobs=1), ledger)["mine.one"]
    assert result.verdict == "error"
    assert result.reason == f"{tmp_path / 'mine.py'} changed while it was judged: run the check again"
    assert ledger.size()[0] == 0


def test_what_the_text_does_not_show_is_judged_and_not_remembered(mine):
    claims, helper, ledger = mine
    text = claims[0].path.read_text()
    claims[0].path.write_text(text.replace("from helper_of_mine import one", "one = __import__('helper_of_mine').one"))
    assert judged(claims, ProcessEngine(jobs=1), ledger)["mine.one"].verdict == "refuted"
    assert ledger.size()[0] == 0
    why = f"it loads {helper} in a way that cannot be read from its text"
    assert ledger.messages == [f"verdicts on mine.py are not remembered, since {why}"]
