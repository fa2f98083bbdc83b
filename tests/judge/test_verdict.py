"""Results as data, and what several seeds say together."""

import json

import pytest

from lemmata.judge.verdict import VERDICTS, Result, merge


def test_a_result_travels_through_json():
    result = Result("a.b", "weak", "exact", 0.5, "why", {"measured": "nan"}, [{"text": "no"}], 4)
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_what_is_no_result_is_refused():
    with pytest.raises(ValueError, match="unknown verdict 'true'"):
        Result.from_json({"id": "a.b", "verdict": "true"})
    with pytest.raises(TypeError):
        Result.from_json({"id": "a.b", "verdict": "holds", "mood": "good"})


@pytest.mark.parametrize("worst", list(VERDICTS))
def test_the_worst_seed_speaks_for_all(worst):
    order = list(VERDICTS)
    better = order[: order.index(worst) + 1]
    results = [Result("a.b", verdict, seconds=1.0, seed=seed) for seed, verdict in enumerate(better)]
    merged = merge(results)
    assert merged.verdict == worst
    assert merged.seconds == len(results)
    assert merged.seed == len(results) - 1


def test_one_seed_is_left_as_it_is():
    assert merge([Result("a.b", "refuted", reason="off")]).reason == "off"
    assert merge([Result("a.b", "refuted", reason="off", seed=s) for s in (5, 6)]).reason == "seed 5: off"
