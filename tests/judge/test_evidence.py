"""Evidence: what counts as decided, how parts combine, and JSON that every reader accepts."""

import dataclasses
import json
import math
import subprocess
import sys

import pytest
import torch

from lemmata.judge import (
    Band,
    Bars,
    Domain,
    Evidence,
    Figure,
    Heat,
    Image,
    Line,
    Points,
    all_of,
    at_most,
    close,
    everywhere,
    exactly,
    probability_is,
)
from lemmata.judge.evidence import consistent

HOLDS, FAILS = close(1.0, 1.0), close(1.0, 2.0)
NAN = close(math.nan, 1.0)
WEAK = Evidence("statistical", math.nan, 0.5, math.nan, 1e-9, weak="needs too many samples")


def statistical(alpha):
    return Evidence("statistical", 0.5, 0.5, 0.1, alpha)


def test_the_ground_must_be_known():
    with pytest.raises(ValueError, match="by must be one of exact, numeric, statistical, training, got 'faith'"):
        Evidence("faith", 1, 1)


def test_all_parts_must_hold():
    assert all_of(HOLDS, HOLDS).holds
    assert all_of(HOLDS).detail == "1 of 1 checks hold"
    failed = all_of(HOLDS, FAILS, HOLDS, close(1.0, 3.0))
    assert not failed.holds
    assert (failed.predicted, failed.detail) == (2.0, "2 of 4 checks failed")


def test_the_first_part_speaks_for_all_that_hold():
    first, second = close(1.0, 1.0, within=1.0), close(1.0, 1.9, within=1.0)
    assert all_of(first, second).predicted == 1.0
    assert all_of(second, first).predicted == 1.9


def test_the_weakest_ground_names_the_whole():
    assert all_of(exactly(1, 1), HOLDS, statistical(1e-9)).by == "statistical"
    assert all_of(exactly(1, 1), exactly(2, 2)).by == "exact"


def test_a_proof_needs_all_its_parts():
    proof = everywhere(Domain.bits(2), lambda bits: sum(bits) <= 2)
    assert all_of(proof, proof).proof
    assert all_of(all_of(proof), proof).proof
    assert not all_of(proof, exactly(2, 2)).proof
    assert not all_of(proof, everywhere(Domain.bits(2), lambda bits: sum(bits) < 2)).proof


# --- What holds follows from the numbers ---


def test_nobody_says_that_evidence_holds():
    assert not Evidence("exact", 1, 99).holds
    for promise in ({"holds": True}, {"proof": True}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            Evidence("exact", 1, 99, **promise)
    with pytest.raises(TypeError, match="no class of its own may say otherwise"):
        type("Promise", (Evidence,), {"holds": True})


@pytest.mark.parametrize(
    ("measured", "relation", "predicted", "margin", "holds"),
    [
        (1.0, "=", 1.5, 0.5, True),
        (1.0, "=", 1.5, 0.49, False),
        (1, "=", 1.0, 0.0, True),
        (2**53 + 1, "=", 2.0**53, 0.0, False),
        (2**53 + 1, "≤", 2.0**53, 0.0, False),
        (2.0**53, "≥", 2**53 + 1, 0.0, False),
        (1.0, "≤", 2.0, 0.0, True),
        (2.5, "≤", 2.0, 0.5, True),
        (2.6, "≤", 2.0, 0.5, False),
        (2.0, "≥", 1.0, 0.0, True),
        (0.5, "≥", 1.0, 0.5, True),
        (0.4, "≥", 1.0, 0.5, False),
        (-math.inf, "≤", 0.0, 0.1, True),
        (math.inf, "≤", 0.0, 0.1, False),
        (math.inf, "=", math.inf, 0.1, True),
        (math.inf, "=", -math.inf, 0.1, False),
        (1j, "=", 1j + 0.1, 0.11, True),
        (1j, "=", 1j + 0.1, 0.09, False),
        (1j, "≤", 2.0, 9.0, False),
        ("a", "=", "a", 0.0, True),
        ("a", "=", "b", 9.0, False),
        ("a", "≤", 2.0, 9.0, False),
        ("1", "=", 1, 9.0, False),
        (10**400, "≤", 1.0, 0.5, False),
        (None, "=", None, 0.0, True),
        (True, "=", 1, 0.0, True),
        (torch.tensor(0.5), "=", 0.5, torch.tensor(0.0), True),
        (math.nan, "=", math.nan, 0.0, False),
        (1.0, "=", 1.0, math.nan, False),
        (1.0, "=", 99.0, math.inf, False),
    ],
)
def test_the_rule_is_the_same_here_and_for_who_reads_json(measured, relation, predicted, margin, holds):
    evidence = Evidence("numeric", measured, predicted, margin, relation=relation)
    assert evidence.holds is holds
    data = json.loads(json.dumps(evidence.to_json(), allow_nan=False))
    assert data["holds"] is holds
    assert consistent(data, True) is holds
    assert consistent(data, False) is (not holds and not evidence.undecided)


def test_a_margin_without_end_decides_nothing():
    assert Evidence("numeric", 1.0, 99.0, math.inf).undecided
    assert close(1.0, 99.0, within=math.inf).undecided


def test_numbers_that_were_tampered_with_are_noticed():
    data = all_of(HOLDS, all_of(HOLDS, exactly(2, 2))).to_json()
    assert consistent(data, True)
    assert not consistent(data, False)
    for change in (
        {"measured": 1.5},
        {"relation": "≥", "measured": 0.5},
        {"weak": "x"},
        {"unmet": "x"},
        {"margin": "nan"},
    ):
        assert not consistent(data | change, True)
    inner = {"measured": 2, "predicted": 3}
    assert not consistent(data | {"parts": [data["parts"][0], {**data["parts"][1], "parts": [inner]}]}, True)
    assert not consistent({}, True)
    assert not consistent({}, False)
    assert not consistent({"measured": 1}, True)


def test_a_condition_that_is_not_met_is_named():
    evidence = at_most([1.0], 2.0, attained=True)
    assert evidence.unmet == "none of 1 instances reaches the bound"
    assert not evidence.holds
    assert consistent(evidence.to_json(), False)
    whole = all_of(HOLDS, evidence)
    assert (whole.holds, whole.unmet) == (False, evidence.unmet)
    assert not all_of(all_of(HOLDS, HOLDS), evidence).holds


def test_parts_can_be_computed_again():
    parts = [
        HOLDS,
        close(1j, 1j),
        at_most([1.0, 2.0], 2.0, attained=True),
        exactly("a", "a"),
        close(1.0, 1.9, within=1),
    ]
    whole = all_of(*parts, all_of(*parts))
    assert whole.parts[:5] == tuple(parts)
    data = json.loads(json.dumps(whole.to_json(), allow_nan=False))
    assert consistent(data, True)
    for k in range(len(parts)):
        broken = [dict(part) for part in data["parts"]]
        broken[k]["predicted"] = -77
        assert not consistent(data | {"parts": broken}, True)
        broken[k] = {**data["parts"][k], "unmet": "a condition"}
        assert not consistent(data | {"parts": broken}, True)


def test_the_relation_and_the_margin_must_make_sense():
    with pytest.raises(ValueError, match="relation must be one of =, ≤, ≥, got '<'"):
        Evidence("numeric", 1, 1, relation="<")
    for margin in (-0.1, "wide", None):
        with pytest.raises(ValueError, match="margin must be a number >= 0"):
            Evidence("numeric", 1, 1, margin)


def test_an_infinite_gap_does_not_hide_a_broken_entry():
    wide = torch.tensor([math.inf, 0.1], dtype=torch.float64)
    assert not close(torch.tensor([math.inf, 1.0]), torch.tensor([1.0, 2.0]), within=wide).holds


def test_reading_evidence_needs_no_torch():
    code = "import sys; from lemmata.judge.evidence import consistent; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("parts", [(NAN, FAILS), (FAILS, NAN), (WEAK, FAILS), (FAILS, WEAK), (NAN, WEAK, FAILS)])
def test_one_certain_failure_decides_whatever_else_is_unknown(parts):
    whole = all_of(*parts)
    assert not whole.holds
    assert not whole.undecided
    assert not whole.weak


@pytest.mark.parametrize("parts", [(HOLDS, NAN), (NAN, HOLDS)])
def test_nan_leaves_the_whole_undecided(parts):
    assert all_of(*parts).undecided
    assert not all_of(*parts).holds


def test_weak_parts_make_the_whole_weak():
    assert all_of(HOLDS, WEAK).weak == "needs too many samples"


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_parts_share_one_alpha(k):
    parts = [statistical(1e-9 / k)] * k
    assert all_of(HOLDS, *parts).alpha == pytest.approx(1e-9)
    with pytest.raises(ValueError, match=r"the parts spend alpha = .* of 1e-09: give each of k statistical parts"):
        all_of(*parts, statistical(1e-10))


def test_the_alpha_of_nested_parts_is_counted():
    pair = all_of(statistical(5e-10), statistical(5e-10))
    with pytest.raises(ValueError, match=r"spend alpha = 1\.5e-09"):
        all_of(pair, statistical(5e-10))


def test_only_evidence_has_parts():
    with pytest.raises(ValueError, match="at least one piece of evidence"):
        all_of()
    for wrong, name in ((True, "bool"), (None, "NoneType"), ([HOLDS], "list")):
        with pytest.raises(TypeError, match=f"all_of takes evidence, got {name}"):
            all_of(HOLDS, wrong)


def test_a_probability_out_of_range_falls_without_samples():
    def never(n):
        raise AssertionError("no sample is needed")

    for impossible in (-0.1, 1.1, math.inf):
        assert not probability_is(never, impossible, effect=0.1).holds


# --- JSON ---


@pytest.mark.parametrize(
    "evidence",
    [
        NAN,
        close(math.inf, 1.0),
        close(1j, 1j),
        at_most([-math.inf], 0.0),
        exactly(torch.tensor([1 + 2j]), torch.tensor([1 - 2j])),
        Evidence("exact", torch.ones(2), (1, 2), detail="built by hand"),
        WEAK,
    ],
)
def test_all_evidence_is_strict_json(evidence):
    data = evidence.to_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {field.name for field in dataclasses.fields(Evidence)} | {"holds"}


def test_a_figure_travels_through_json():
    x = torch.linspace(0, 1, 3)
    marks = [Line(x, x**2, "theory"), Points([0, 1], [0.5, 0.25]), Band(x, x - 1, x + 1), Bars(["a", "b"], [1, 2])]
    figure = Figure("Title", "x", "y", [*marks, Heat(torch.eye(2), x=[1, 2]), Image(torch.zeros(2, 2))], y_log=True)
    data = json.loads(json.dumps(HOLDS.showing(figure).to_json(), allow_nan=False))
    assert Figure.from_json(data["figure"]) == figure
    assert data["figure"]["marks"][0]["x"] == [0.0, 0.5, 1.0]


def test_gaps_in_a_figure_are_not_nan():
    """NaN is no JSON: one would keep the verdict out of the ledger and the page from loading."""
    figure = Figure("Gaps", marks=[Line([0, 1, 2], torch.tensor([1.0, math.nan, math.inf])), Heat([[math.nan, 1.0]])])
    assert figure.marks[0].y == [1.0, None, None]
    assert figure.marks[1].values == [[None, 1.0]]
    json.dumps(HOLDS.showing(figure).to_json(), allow_nan=False)


def test_showing_leaves_the_original_alone():
    assert HOLDS.showing(Figure("a")).figure
    assert HOLDS.figure is None
    assert all_of(HOLDS, HOLDS.showing(Figure("a"))).figure == Figure("a")
    assert everywhere(Domain.bits(2), lambda bits: True).showing(Figure("a")).proof
