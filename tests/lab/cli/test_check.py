"""`lemmata check` and `lemmata show` with real workers, on a small file of claims."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lemmata.judge.fingerprint import SWITCHES
from lemmata.judge.verdict import Result
from lemmata.lab.cli import main
from lemmata.workers import KEPT

CLAIMS = '''
"""Claims for the tests of the command line."""

import os

import torch

from lemmata.judge import close, claim, lie


@claim("mine.half")
@lie("a third", value=1 / 3)
@lie("a quarter", value=1 / 4)
def half(draw, value=1 / 2):
    """One half is one half."""
    return close(torch.tensor(0.5, dtype=torch.float64), value)


@claim("mine.false")
@lie("two", value=2.0)
def false(draw, value=1.0):
    """Zero is one."""
    return close(0.0, value)


@claim("mine.weak")
@lie("also true", value=2.0)
def weak(draw, value=1.0):
    """Nothing is measured."""
    return close(1.0, 1.0)


@claim("mine.crash")
@lie("two", value=2.0)
def crash(draw, value=1.0):
    """The worker dies."""
    os._exit(3)
'''

HANG = """
from lemmata.judge import close, claim, lie

@claim("hang.first", cost="long")
@lie("two", value=2.0)
def first(draw, value=1.0):
    return close(1.0, value)

@claim("hang.second", cost="quick")
@lie("two", value=2.0)
def second(draw, value=1.0):
    while True:
        pass
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(CLAIMS)
    return str(path)


def check(*words: str) -> int:
    """`lemmata check` with one worker: each costs an import of torch, and only the first test is about several."""
    return main(["check", *words, "--jobs", "1"])


def test_a_users_file_is_judged_with_the_known_ids(capsys, mine):
    code = main(["check", mine, "no.such", "cover.base_cases", "--json"])
    captured = capsys.readouterr()
    entries = json.loads(captured.out)
    verdicts = {entry["id"]: entry["verdict"] for entry in entries}
    assert code == 2
    assert "unknown id 'no.such'" in captured.err
    assert verdicts == {
        "mine.half": "holds",
        "mine.false": "refuted",
        "mine.weak": "weak",
        "mine.crash": "error",
        "cover.base_cases": "holds",
    }
    half = entries[0]
    assert list(half) == ["id", "verdict", "by", "seconds", "evidence", "lies"]
    assert list(half["evidence"]) == ["measured", "predicted", "margin", "alpha"]
    assert half["lies"] == [
        {"text": "a third", "printed": "", "rejected": True},
        {"text": "a quarter", "printed": "", "rejected": True},
    ]


def test_what_fell_is_said_and_remembered(capsys, mine):
    assert check(mine) == 1
    out = capsys.readouterr().out
    assert "measured 0, predicted 1" in out
    assert "accepted the lie: also true" in out
    assert "exit code 3" in out
    assert check(mine) == 1
    again = capsys.readouterr().out
    assert again.count("remembered") == 3  # an error is judged again each time


def test_one_claim_of_a_users_file_is_judged_and_shown(capsys, mine):
    assert check(mine, "mine.half", "--json") == 0
    assert [entry["id"] for entry in json.loads(capsys.readouterr().out)] == ["mine.half"]
    assert main(["show", mine, "mine.half"]) == 0
    assert "a third" in capsys.readouterr().out
    assert main(["show", mine, "mine.hlaf"]) == 2
    assert "did you mean mine.half" in capsys.readouterr().err


def test_a_check_that_reads_the_clock_is_caught_by_twice(capsys, tmp_path):
    path = tmp_path / "clock.py"
    path.write_text(
        "import time\nfrom lemmata.judge import claim, close, lie\n"
        '@claim("mine.clock")\n@lie("far", value=1e9)\ndef clock(draw, value=0.0):\n'
        "    return close(time.time_ns() % 10**6, value, within=1e7)\n"
    )
    assert check(str(path)) == 0
    assert check(str(path), "--twice") == 1, "the verdict that was remembered does not count"
    assert "the truth gave two different results from the same seed: draw from `draw`" in capsys.readouterr().out


def test_a_users_file_may_not_take_an_id_of_ours(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CLAIMS.replace("mine.half", "cover.count"))
    assert check(str(path), "mine.false") == 2
    assert "'cover.count' is a statement of lemmata" in capsys.readouterr().err


def test_a_damaged_entry_is_set_aside_and_judged_again(capsys, mine):
    ledger = Path(os.environ["LEMMATA_CACHE"]) / "ledger"
    check(mine)
    capsys.readouterr()
    for entry in ledger.rglob("*.json"):
        entry.write_bytes(entry.read_bytes()[:-20])
    assert check(mine) == 1
    captured = capsys.readouterr()
    assert "set aside" in captured.err
    assert "remembered" not in captured.out
    assert len(list(ledger.rglob("*.damaged"))) == 3


def test_a_cache_that_cannot_be_written_costs_only_the_memory(capsys, mine, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("LEMMATA_CACHE", str(blocked))
    check(mine)
    captured = capsys.readouterr()
    assert "✔ holds  mine.half" in captured.out
    assert "verdicts are shown but not kept" in captured.err
    assert captured.err.count("verdicts are shown but not kept") == 1


def test_a_claim_without_a_result_is_an_error(capsys, mine, monkeypatch):
    monkeypatch.setattr("lemmata.judge.engine.ProcessEngine.results", lambda engine: iter(()))
    assert check(mine, "mine.half") == 1
    assert "error  mine.half" in capsys.readouterr().out
    assert check(mine, "mine.half", "--json") == 1
    assert [entry["verdict"] for entry in json.loads(capsys.readouterr().out)] == ["error"]


@pytest.mark.skipif(not KEPT, reason="only Linux tells how much memory processes hold")
def test_memory_of_a_users_file_is_bounded(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import signal\nfrom lemmata.judge import claim\n@claim('mine.greedy')\ndef greedy(draw):\n"
        "    kept = bytes(range(256)) * (5 << 20)\n    signal.pause()\n"
    )
    assert check(str(path), "--memory", "1") == 1
    assert "it took more than the 1 GiB of memory that it may use: allow more with --memory" in capsys.readouterr().out
    for amount in ("0", "0.5", "nan", "inf"):
        assert check(str(path), "--memory", amount) == 2
        assert "--memory must be at least 1" in capsys.readouterr().err


def test_missing_empty_and_broken_files_are_named(capsys, tmp_path):
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    files = [str(tmp_path / name) for name in ("missing.py", "empty.py", "broken.py")]
    assert check(*files) == 2
    err = capsys.readouterr().err
    assert "there is no file" in err
    assert "has no claims" in err
    assert "broken.py:1: not valid Python" in err


def test_an_import_error_in_a_users_file_is_one_line(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import no_such_package\n" + CLAIMS)
    assert check(str(path)) == 1
    assert "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'" in capsys.readouterr().out


def test_open_and_skipped_count_only_when_strict(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from lemmata.judge import Skip, claim, lie\n"
        "@claim('mine.absent')\n@lie('two', value=2)\ndef absent(draw, value=1):\n    raise Skip('needs a GPU')\n"
    )
    assert check(str(path)) == 0
    assert "needs a GPU" in capsys.readouterr().out
    assert check(str(path), "--strict") == 1


def test_a_budget_that_is_exceeded_is_told_and_no_failure(capsys):
    assert check("cover.base_cases", "--fresh", "--budget", "1e-9") == 0
    assert "CPU seconds, the budget is" in capsys.readouterr().err


def test_long_work_is_announced(capsys, monkeypatch):
    monkeypatch.setattr("lemmata.lab.cli.check.judge_all", lambda *given, **how: (one for one in ()))
    main(["check", "--all", "--jobs", "2"])
    assert "on this machine when it is idle" in capsys.readouterr().out
    main(["check", "cover.base_cases", "--jobs", "2"])
    assert "when it is idle" not in capsys.readouterr().out


MOODY = """
from lemmata.judge import claim, close, lie

@claim("mine.moody")
@lie("a half", value=0.5)
def moody(draw, value=1.0):
    return close(2.0 if draw.seed == 2 else 1.0, value)

@claim("mine.weak")
@lie("also true", value=2.0)
def weak(draw, value=1.0):
    return close(1.0, 1.0)
"""


def test_a_seed_that_falls_is_told_with_the_command_that_repeats_it(tmp_path, capsys, monkeypatch):
    for name in SWITCHES:  # what moves the last bit of some machines is told before the command
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "mine.py"
    path.write_text(MOODY)
    assert check(str(path), "mine.moody", "--seeds", "2") == 0
    capsys.readouterr()
    assert check(str(path), "--truths", "--seed", "1", "--seeds", "3") == 1, "the fall of seed 2 is found"
    out = capsys.readouterr().out
    assert "seed 2: measured 2, predicted 1" in out
    assert "mine.weak" not in out.partition("chapter")[2], "no lie was asked for, so none was accepted"
    command = next(line for line in out.splitlines() if "--seed 2 --fresh" in line).split()
    assert command == ["lemmata", "check", str(path), "mine.moody", "--seed", "2", "--fresh"]
    assert check(*command[2:]) == 1
    assert "measured 2, predicted 1" in capsys.readouterr().out
    assert check(str(path), "mine.moody", "--seed", "1") == 0
    assert "remembered" in capsys.readouterr().out, "as it was judged with its lies"


def test_truths_alone_are_not_remembered(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(MOODY)
    assert check(str(path), "--truths") == 0
    assert "2 truths hold; lies were not asked for" in capsys.readouterr().out
    assert check(str(path)) == 1
    out = capsys.readouterr().out
    assert "remembered" not in out
    assert "accepted the lie: also true" in out


def test_show_judges_what_is_not_known_and_tells_how_each_lie_failed(capsys):
    assert main(["show", "cover.theorem"]) == 0
    out = capsys.readouterr().out
    assert "Cover's function counting theorem" in out
    assert "✔ holds" in out
    assert "✘ rejected" in out
    assert "printed in 002" in out
    assert "$" not in out
    assert main(["show", "cover.theorem", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["verdict"] == "holds"


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_worker(tmp_path):
    path = tmp_path / "hang.py"
    path.write_text(HANG)
    command = [sys.executable, "-u", "-m", "lemmata", "check", str(path), "--all", "--jobs", "1"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert "hang.first" in running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err == "lemmata: stopped; what was finished is kept\n"
    ledger = Path(os.environ["LEMMATA_CACHE"]) / "ledger"
    assert len(list(ledger.rglob("*.json"))) == 1
    assert not list(ledger.rglob("*.tmp"))


def test_a_file_that_cannot_be_imported_is_one_fault(tmp_path, capsys):
    claims = "".join(
        f"""
@claim("mine.c{k}")
@lie("three", two=3.0)
def c{k}(draw, two=2.0):
    return close(2.0, two)
"""
        for k in range(5)
    )
    mine = tmp_path / "mine.py"
    mine.write_text(f"from lemmata.judge import claim, close, lie\nimport nothing_like_this\n{claims}")
    assert check(str(mine)) == 1
    out = capsys.readouterr().out
    assert out.count("No module named") == 2  # while it happens, and at the end
    assert "mine.c0 and 4 others" in " ".join(out.split())


def test_a_folder_is_all_its_files_with_claims(tmp_path, capsys):
    notes = tmp_path / "notes"
    (notes / ".hidden").mkdir(parents=True)
    for name in ("one", ".hidden/two"):
        text = f'@claim("mine.{name[-3:]}")\n@lie("three", two=3)\ndef f(draw, two=2):\n    return close(2, two)\n'
        (notes / f"{name}.py").write_text(f"from lemmata.judge import claim, close, lie\n\n\n{text}")
    (notes / "plain.py").write_text("x = 1\n")
    assert check(str(notes)) == 0
    assert "1 claim holds" in capsys.readouterr().out
    assert check(str(tmp_path / "nowhere.py")) == 2
    assert "there is no file" in capsys.readouterr().err


def test_what_an_engine_prints_does_not_stand_in_the_json(capsys, monkeypatch):
    """Ray tells on stdout that a worker of its died."""

    def judged(claims, arguments, ledger):
        print("(raylet) A worker died")
        return {claim.id: Result(claim.id, "holds") for claim in claims}

    monkeypatch.setattr("lemmata.lab.cli.check._judge_claims", judged)
    assert main(["check", "cover.base_cases", "--json"]) == 0
    captured = capsys.readouterr()
    assert [entry["id"] for entry in json.loads(captured.out)] == ["cover.base_cases"]
    assert "raylet" in captured.err
