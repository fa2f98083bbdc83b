"""`dev.py test` and the other words that run something: which commands, in which order, and what they say."""

import importlib
import json
import os
import sys

import pytest


def test_test_is_lint_quick_claims_and_quick_tests(dev, script, capsys, monkeypatch):
    record, _ = script
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert dev.main(["test"]) == 0
    assert record == [
        "ruff check --output-format=concise",
        "ruff format --check",
        "lint-imports --no-logo",
        "beside: basedpyright",
        "lemmata check --budget 700",
        "python -m pytest -m not slow and not browser and not long -n 2 --dist loadfile --no-loadscope-reorder",
    ]
    said = capsys.readouterr().out
    assert "minutes on 2 idle cores" in said.splitlines()[0]
    assert said.endswith("\n== pytest\n")


def test_words_choose_tests_in_one_process(dev, script):
    record, _ = script
    assert dev.main(["test", "-k", "judge"]) == 0
    assert record[-2:] == ["lemmata check --budget 700", "python -m pytest -k judge"]


def test_all_judges_afresh_and_runs_every_test(dev, script, monkeypatch):
    record, _ = script
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(importlib.import_module("suite"), "has_instructions", lambda name: False)
    assert dev.main(["test", "--all"]) == 0
    assert record[4:] == [
        "lemmata check --fresh --twice --budget 700 --slowest 20",
        "lemmata check --fresh --truths --seed 1 --seeds 3",
        "lemmata check --fresh --slowest 5 mine.long",
        "python -m lemmata.lab.site.assets --dev",
        "python -m pytest --prices -n 2 --dist loadfile --no-loadscope-reorder",
    ]


def test_claims_and_tests_of_rounding_are_run_as_other_processors_compute_them(dev, script, monkeypatch):
    record, _ = script
    monkeypatch.setattr(importlib.import_module("suite"), "has_instructions", lambda name: True)
    assert dev.main(["test", "--all"]) == 0
    elsewhere = [line for line in record if line.startswith("ATEN_CPU_CAPABILITY")]
    assert [line.split()[0].split("=")[1] for line in elsewhere] == ["default", "default", "avx2", "avx2"]
    assert all("pytest -m rounding and not long" in line for line in elsewhere[1::2])


def test_a_processor_pretends_to_be_another_only_where_it_can(dev, monkeypatch):
    suite = importlib.import_module("suite")
    monkeypatch.setattr(suite.platform, "machine", lambda: "arm64")
    assert not any(map(suite.has_instructions, suite.PROCESSORS))
    monkeypatch.setattr(suite.platform, "machine", lambda: "AMD64")
    monkeypatch.setattr(suite.Path, "read_text", lambda path: "flags : sse4_1 fma\n")
    assert list(map(suite.has_instructions, suite.PROCESSORS)) == [True, False]


def test_test_stops_at_the_first_stage_that_fails(dev, script, capsys):
    record, failing = script
    failing.add("lint-imports")
    assert dev.main(["test"]) == 3
    assert record[-1] == "lint-imports --no-logo"
    assert capsys.readouterr().err == "dev.py: import-linter failed (exit 3)\n"


def test_what_runs_beside_a_stage_fails_after_it(dev, capfd):
    late = "print('what is wrong'); raise SystemExit(3)"
    stages = importlib.import_module("stages")
    with (
        pytest.raises(dev.Failed, match=r"types failed \(exit 3\)"),
        stages.beside("types", sys.executable, "-c", late),
    ):
        print("the stage")
    assert capfd.readouterr().out.splitlines()[0] == "the stage"
    assert stages.prices[-1][0] == "types"


def test_what_runs_beside_a_stage_that_fails_is_ended(dev):
    stages = importlib.import_module("stages")
    with pytest.raises(dev.Failed, match="the stage"), stages.beside("types", sys.executable, "-c", "input()"):
        raise dev.Failed("the stage")


def test_a_stage_says_what_it_cost(dev, capfd):
    stages = importlib.import_module("stages")
    stages.stage("work", sys.executable, "-c", "sum(range(10**6))")
    assert "CPU seconds in" in capfd.readouterr().out
    stages.say_prices()
    assert [line.split()[-1] for line in capfd.readouterr().out.split("\n")[1:-1]] == ["part", "work", "together"]


def test_nothing_is_printed_after_the_closing_line_of_pytest(dev, script, capsys):
    _, failing = script
    failing.add("pytest")
    assert dev.main(["test"]) == 3
    assert capsys.readouterr().err == ""


def test_slow_tests_are_those_that_took_over_two_seconds_of_cpu_with_all_their_parameters(dev, script, capsys):
    assert dev.main(["slow"]) == 1
    assert "`python3 dev.py test --all` measures them" in capsys.readouterr().err
    took = {"tests/test_a.py::test_b[1]": 1.5, "tests/test_a.py::test_b[2]": 1.0, "tests/test_a.py::test_c": 1.9}
    (dev.HERE / ".lemmata").mkdir()
    (dev.HERE / ".lemmata/durations.json").write_text(json.dumps({name: {"cpu": cpu} for name, cpu in took.items()}))
    (dev.HERE / "tests").mkdir()
    assert dev.main(["slow"]) == 0
    assert (dev.HERE / "tests/slow.txt").read_text() == "tests/test_a.py::test_b\n"
    assert capsys.readouterr().out == "1 slow tests, 1 new and 0 no longer: tests/slow.txt\n"


def test_run_hands_its_words_to_check(dev, script):
    record, failing = script
    failing.add("--fresh")
    assert dev.main(["run", "perceptron.*", "--fresh"]) == 3
    assert record == ["lemmata check perceptron.* --fresh"]


def test_lint_fix_repairs_before_it_looks(dev, script):
    record, _ = script
    assert dev.main(["lint", "--fix"]) == 0
    assert record[:3] == ["python -m lemmata.lazy", "ruff check --output-format=concise --fix", "ruff format"]


def test_torture_goes_on_after_a_failure_and_names_it(dev, script, capsys):
    record, failing = script
    failing.add("mutate")
    assert dev.main(["torture"]) == 1
    assert [len(record), record[0]] == [4, "lemmata check --all --fresh --seeds 16"]
    assert capsys.readouterr().err == "dev.py: mutation failed (exit 3)\n"
