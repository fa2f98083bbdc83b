"""`lemmata bench`: the contract, the table, the saved file, exit codes, and bad use in one line."""

import json
import subprocess
import sys

import pytest

from lemmata.bench import registry, rounds
from lemmata.lab.cli import main

ENTRY = """
from lemmata.bench.registry import agreement, entry, limit, ours, peer

@entry("sums", title="Sums", measures="one sum", cases={"only": "100 numbers"}, targets={"loop": 1e9, "absent": 1.0})
def numbers(case, device): return list(range(100))

@ours("lemmata")
def builtin(numbers): return lambda: sum(numbers)

@peer("loop")
def loop(numbers): return lambda: sum(number for number in numbers)

@peer("absent", needs="a-package-that-nobody-has")
def absent(numbers): ...

@limit("counting them")
def counting(numbers): return lambda: len(numbers)

@agreement(within=0.0)
def total(result): return {"total": result}
"""
LIAR = ENTRY.replace("sum(number for", "1 + sum(number for").replace('"sums"', '"lies"')
CONTRACT = ["name", "who", "size", "median_s", "peak_bytes", "ratio_to_best_peer", "limit_s"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """One entry, five repeats, and a folder to stand in."""
    monkeypatch.setattr(registry, "FOLDER", tmp_path)
    monkeypatch.setattr(rounds, "MOST", rounds.LEAST)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.py").write_text(ENTRY)
    yield tmp_path
    registry._read_entries.cache_clear()


def call(capsys, *words):
    """(exit code, stdout, stderr) of one call."""
    code = main(["bench", *words, "--budget", "60", "--threads", "1"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_is_the_contract(capsys):
    code, out, err = call(capsys, "sums", "--json")
    rows = json.loads(out)
    assert (code, err) == (0, "")
    assert [row["who"] for row in rows] == ["lemmata", "loop", "absent"]
    for row in rows:
        assert list(row)[: len(CONTRACT)] == CONTRACT
    assert rows[0]["median_s"] > 0 < rows[0]["limit_s"]
    assert rows[1]["ratio_to_best_peer"] == 1
    assert rows[2]["median_s"] is rows[2]["peak_bytes"] is rows[2]["ratio_to_best_peer"] is None
    assert rows[2]["reason"] == "missing: pip install a-package-that-nobody-has"


def test_the_table_tells_sizes_limit_targets_and_what_is_missing(capsys):
    code, out, _ = call(capsys)
    assert code == 0
    for said in ("Sums", "100 numbers", "cpu, 1 thread", "median", "x peer", "limit: counting them: "):
        assert said in out
    assert "✔ target met: at most 1e+09 x loop" in out
    assert "○ target not judged: not slower than absent" in out
    assert "– absent missing: pip install a-package-that-nobody-has" in out


def test_who_computes_something_else_is_told_and_the_exit_code_says_so(capsys, folder):
    (folder / "sums.py").write_text(LIAR)
    code, out, _ = call(capsys)
    assert code == 1
    assert "! loop disagrees: total is 4951, 4950 with lemmata" in out


@pytest.mark.parametrize("checkout", [False, True])
def test_results_are_saved_where_one_stands_or_in_the_checkout(capsys, folder, checkout):
    place = folder
    if checkout:
        (folder / "src" / "lemmata" / "bench").mkdir(parents=True)
        place = folder / "bench" / "results"
    code, out, err = call(capsys, "--save", "--json")
    (path,) = place.glob("sums-cpu-*.json")
    assert code == 0
    assert f"saved {path}" in err
    assert json.loads(path.read_text())["rows"] == json.loads(out)


def test_a_busy_machine_is_told_and_recorded(capsys, folder, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1000.04, 0.0, 0.0))
    code, _, err = call(capsys, "--save", "--json")
    (path,) = folder.glob("sums-cpu-*.json")
    assert code == 0
    assert "other work is running here (load 1000 on" in err
    assert json.loads(path.read_text())["load"] == 1000.0


def test_unknown_names_are_told_and_the_known_ones_still_measured(capsys):
    code, out, err = call(capsys, "smus", "sums", "--json")
    assert code == 2
    assert "unknown bench 'smus': did you mean sums?" in err
    assert {row["name"] for row in json.loads(out)} == {"sums"}
    code, out, err = call(capsys, "zzz")
    assert (code, out) == (2, "")
    assert "known are sums" in err


def test_the_list_tells_who_is_compared(capsys):
    code, out, _ = call(capsys, "--list")
    assert code == 0
    assert "lemmata, loop, absent; target: at most 1e+09 x loop, not slower than absent" in out
    code, out, _ = call(capsys, "--list", "--json")
    assert json.loads(out)[0]["who"] == ["lemmata", "loop", "absent"]


def test_listing_imports_no_torch():
    code = "import sys; from lemmata.lab.cli import main; main(['bench', '--list']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert "perceptron" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "0"], "--budget > 0 seconds"),
        (["--budget", "inf"], "--budget > 0 seconds"),
        (["--threads", "-1"], "--threads must be >= 0"),
        (["--device", "tpu"], "--device must be one of cpu"),
        (["--budgte", "3"], "did you mean --budget?"),
    ],
)
def test_bad_use_is_one_line(capsys, words, said):
    code = main(["bench", *words])
    captured = capsys.readouterr()
    assert (code, captured.out, captured.err.count("\n")) == (2, "", 1)
    assert said in captured.err


def test_an_entry_for_another_device_is_passed_over(capsys, folder, monkeypatch):
    (folder / "sums.py").write_text(ENTRY.replace('measures="one sum"', 'measures="one sum", devices="cuda"'))
    code, out, err = call(capsys, "--json")
    assert (code, json.loads(out)) == (0, [])
    assert "sums runs on cuda only" in err
