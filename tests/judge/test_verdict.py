"""Results as data, and what several seeds say together."""

import json

import pytest

from lemmata.judge.verdict import VERDICTS, Result, merge

EVIDENCE = {"holds": True, "by": "exact", "measured": 1, "predicted": 1, "margin": 0.0, "alpha": 0.0, "detail": ""}
EVIDENCE |= {"proof": False, "weak": "", "figure": None, "relation": "="}
LIE = {"text": "two", "printed": "", "rejected": True, "how": "measured 2"}
NOTICE = {"argument": "x", "truth": 1, "from": 1.5, "other": None, "away": 0.5, "away_other": None}
NOTICE |= {"regime": "", "loose": "the slack side"}
HOLDS = Result("a.b", "holds", "exact", 0.5, "", EVIDENCE, [LIE, LIE | {"notices": NOTICE}], 4).to_json()


def test_a_result_travels_through_json():
    for data in (HOLDS, Result("a.b", "error", reason="why").to_json()):
        result = Result.from_json(data)
        assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"verdict": "true"}, "unknown verdict 'true'"),
        ({"mood": "good"}, "a result has no field 'mood'"),
        ({"id": 7}, "id of a result cannot be of type int"),
        ({"by": None}, "by of a result cannot be of type NoneType"),
        ({"seconds": "0.5"}, "seconds of a result cannot be of type str"),
        ({"seconds": float("nan")}, "seed and seconds must be >= 0, got 4 and nan"),
        ({"seconds": -1}, "seed and seconds must be >= 0, got 4 and -1"),
        ({"seed": True}, "seed of a result cannot be of type bool"),
        ({"seed": 1.0}, "seed of a result cannot be of type float"),
        ({"reason": ["why"]}, "reason of a result cannot be of type list"),
        ({"reason": "caf\ud800"}, "surrogates not allowed"),
        ({"evidence": []}, "evidence of a result cannot be of type list"),
        ({"evidence": {}}, "evidence has no holds"),
        ({"evidence": EVIDENCE | {"holds": 1}}, "holds of evidence cannot be of type int"),
        ({"evidence": EVIDENCE | {"alpha": "nan"}}, "alpha of evidence cannot be of type str"),
        ({"evidence": EVIDENCE | {"figure": "none"}}, "figure of evidence cannot be of type str"),
        ({"lies": {}}, "lies of a result cannot be of type dict"),
        ({"lies": [LIE, "two"]}, "a lie must be an object, got str"),
        ({"lies": [{"text": "two"}]}, "a lie has no printed"),
        ({"lies": [LIE | {"rejected": "yes"}]}, "rejected of a lie cannot be of type str"),
        ({"evidence": None}, "needs evidence that holds"),
        ({"evidence": EVIDENCE | {"holds": False}}, "needs evidence that holds"),
        ({"lies": []}, "lies that were rejected"),
        ({"lies": [LIE, LIE | {"rejected": None}]}, "lies that were rejected"),
        ({"evidence": EVIDENCE | {"measured": 2}}, "needs evidence that holds"),
        ({"evidence": EVIDENCE | {"relation": "~", "measured": 2, "margin": 1}}, "needs evidence that holds"),
        ({"evidence": EVIDENCE | {"parts": [EVIDENCE, "two"]}}, "needs evidence that holds"),
        ({"evidence": EVIDENCE | {"parts": "two"}}, "parts of evidence cannot be of type str"),
        ({"lies": [LIE | {"evidence": EVIDENCE}]}, "lies that were rejected"),
        ({"lies": [LIE | {"evidence": {}}]}, "lies that were rejected"),
        ({"lies": [LIE | {"notices": 0.5}]}, "notices of a lie cannot be of type float"),
        ({"lies": [LIE | {"notices": {}}]}, "what a lie notices has no argument"),
        ({"lies": [LIE | {"notices": NOTICE | {"away": "far"}}]}, "away of what a lie notices cannot be of type str"),
    ],
)
def test_what_is_no_result_is_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        Result.from_json(HOLDS | change)


@pytest.mark.parametrize("data", [None, [], "holds", {}, {"id": "a.b"}, {"verdict": "holds"}])
def test_what_is_nothing_like_a_result_is_refused(data):
    with pytest.raises(ValueError, match="a result"):
        Result.from_json(data)


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
    assert (
        merge([Result("a.b", "refuted", reason="off", seed=s) for s in (5, 6)]).reason
        == "seed 5: off (seed 6 fell too)"
    )


def test_a_truth_alone_holds_by_its_numbers():
    unheard = HOLDS | {"lies": [LIE | {"rejected": None}], "truth_only": True}
    assert Result.from_json(unheard).verdict == "holds"
    with pytest.raises(ValueError, match="needs evidence that holds"):
        Result.from_json(unheard | {"evidence": EVIDENCE | {"measured": 2}})
    with pytest.raises(ValueError, match="lies that were rejected"):
        Result.from_json(unheard | {"truth_only": False})
