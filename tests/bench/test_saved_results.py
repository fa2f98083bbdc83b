"""What bench/results holds: entries that there are, and no time below what is called a limit."""

import json
from pathlib import Path

import pytest

from lemmata.bench.registry import entries

FOLDER = Path(__file__).parents[2] / "bench" / "results"
SAVED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def test_there_are_results():
    assert len(SAVED) > 20


@pytest.mark.parametrize("check", ["entry", "limit"])
def test_every_result_belongs_to_an_entry_and_is_above_its_limit(check):
    wrong = []
    for stem, saved in SAVED.items():
        cases = set(getattr(entries().get(saved["name"]), "cases", ()))
        for row in saved["rows"]:
            if check == "entry" and row["case"] not in cases:
                wrong.append(f"{stem}: there is no {saved['name']} with a case {row['case']}: delete it")
            if check == "limit" and row["limit_s"] and row["median_s"] and row["median_s"] < row["limit_s"]:
                below = f"{row['median_s']:.3g} s is below the limit of {row['limit_s']:.3g} s, which therefore is none"
                wrong.append(f"{stem}: {row['who']}, {row['case']}: {below}")
    assert wrong == []
