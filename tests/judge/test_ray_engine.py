"""Ray gives the same bits as our own workers."""

import dataclasses
from pathlib import Path

import pytest

from lemmata.catalog import load
from lemmata.judge.engine import ProcessEngine
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import judge_all

pytest.importorskip("ray", reason="needs Ray: pip install 'lemmata[ray]'")


@pytest.mark.filterwarnings("ignore")  # Ray's own, at import and at shutdown
def test_ray_and_processes_agree_to_the_last_bit(tmp_path: Path):
    from lemmata.judge.ray_engine import RayEngine

    claims = [load().claims[id] for id in ("cover.base_cases", "perceptron.margin_point", "hopfield.metastable")]
    found = []
    for engine in (ProcessEngine(2), RayEngine(2)):
        try:
            judged = judge_all(claims, engine, Ledger(tmp_path / type(engine).__name__), seeds=2)
            found.append({result.id: dataclasses.replace(result, seconds=0.0) for result, _ in judged})
        finally:
            engine.stop()
    assert found[0] == found[1]
    assert {result.verdict for result in found[0].values()} == {"holds"}
