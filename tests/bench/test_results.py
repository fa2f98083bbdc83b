"""Rows from repeats: medians, ratios, targets, disagreements, and the file that keeps them."""

import json
from dataclasses import asdict
from datetime import date

from lemmata.bench.results import rows_of, save_results
from lemmata.bench.rounds import Measured

CONTRACT = ["name", "who", "size", "median_s", "peak_bytes", "ratio_to_best_peer", "limit_s"]


def measured(entry, times, answers=None):
    """What contenders did, by their names; who has no times was missing."""
    found = []
    for one in entry.contenders_for("small"):
        answer = {} if one.role == "limit" else {"total": (answers or {}).get(one.who, 4950.0)}
        missing = one.who not in times
        reason = "missing: pip install it" if missing else ""
        found.append(Measured(one, times.get(one.who, []), None if missing else 10, {} if missing else answer, reason))
    return found


TIMES = {"lemmata": [3.0, 1.0, 2.0, 9.0, 2.0], "loop": [4.0] * 5, "counting them": [0.5] * 5}


def test_ratios_are_those_of_medians(sums):
    ours, loop, absent = rows_of(sums, "small", measured(sums, TIMES))
    assert (ours.median_s, ours.spread_s, ours.repeats) == (2.0, 1.0, 5)
    assert (ours.ratio_to_best_peer, ours.limit_s, ours.ratio_to_limit) == (0.5, 0.5, 4.0)
    assert (loop.ratio_to_best_peer, loop.role, loop.size) == (1.0, "peer", "100 numbers")
    assert (absent.median_s, absent.peak_bytes, absent.ratio_to_best_peer) == (None, None, None)
    assert absent.reason.startswith("missing")


def test_the_first_of_ours_is_judged_against_the_peers_that_are_here(sums):
    ours, *others = rows_of(sums, "small", measured(sums, TIMES))
    assert [(t.peer, t.met) for t in ours.targets] == [("loop", True), ("absent", None)]
    assert [t.words for t in ours.targets] == ["at most 1e+09 x loop", "not slower than absent"]
    assert not any(row.targets for row in others)
    quick_peer = TIMES | {"loop": [1e-10] * 5, "absent": [2.0] * 5}
    ours, *_ = rows_of(sums, "small", measured(sums, quick_peer))
    assert [t.met for t in ours.targets] == [False, True]


def test_a_peer_with_another_answer_is_told_and_no_longer_compared(sums):
    ours, loop, _ = rows_of(sums, "small", measured(sums, TIMES, {"loop": 4951.0}))
    assert loop.reason == "disagrees: total is 4951, 4950 with lemmata"
    assert loop.median_s == 4.0
    assert (ours.reason, ours.ratio_to_best_peer) == ("", None)
    assert ours.targets[0].met is None


def test_answers_may_differ_by_the_stated_relative_error(sums):
    _, near, _ = rows_of(sums, "small", measured(sums, TIMES, {"loop": 4950 * (1 + 5e-10)}))
    _, far, _ = rows_of(sums, "small", measured(sums, TIMES, {"loop": 4950 * (1 + 2e-9)}))
    _, nothing, _ = rows_of(sums, "small", measured(sums, TIMES, {"loop": float("nan")}))
    assert near.reason == ""
    assert far.reason.startswith("disagrees")
    assert nothing.reason.startswith("disagrees")


def test_without_peers_or_limit_the_ratios_are_empty(sums):
    ours, *_ = rows_of(sums, "small", measured(sums, {"lemmata": [1.0]}))
    assert (ours.median_s, ours.spread_s, ours.ratio_to_best_peer, ours.limit_s) == (1.0, None, None, None)


def test_the_saved_file_holds_device_versions_and_rows(sums, tmp_path):
    rows = rows_of(sums, "small", measured(sums, TIMES))
    path = save_results(tmp_path / "results", sums, rows, "cpu", date(2031, 5, 6), threads=2, load=0.5)
    saved = json.loads(path.read_text())
    assert path.name == "sums-cpu-2031-05-06.json"
    assert (saved["date"], saved["threads"], saved["load"], saved["name"]) == ("2031-05-06", 2, 0.5, "sums")
    assert saved["device"]
    assert saved["versions"]["a-package-that-nobody-has"] == "absent"
    assert {"lemmata", "python", "platform", "torch", "numpy"} <= set(saved["versions"])
    assert saved["rows"] == json.loads(json.dumps([asdict(row) for row in rows]))
    assert str(tmp_path) not in path.read_text()


def test_rows_begin_with_the_contract(sums):
    row = asdict(rows_of(sums, "small", measured(sums, TIMES))[0])
    assert list(row)[: len(CONTRACT)] == CONTRACT
