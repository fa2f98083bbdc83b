"""Evidence: what counts as decided, how parts combine, and JSON that every reader accepts."""

import dataclasses
import json
import math

import pytest
import torch

from lemmata.judge import (
    Band,
    Bars,
    Evidence,
    Figure,
    Heat,
    Image,
    Line,
    Points,
    all_of,
    at_most,
    close,
    exactly,
    probability_is,
)

HOLDS, FAILS = close(1.0, 1.0), close(1.0, 2.0)
NAN = close(math.nan, 1.0)
WEAK = Evidence(False, "statistical", math.nan, 0.5, math.nan, 1e-9, weak="needs too many samples")


def statistical(alpha):
    return Evidence(True, "statistical", 0.5, 0.5, 0.1, alpha)


def test_the_ground_must_be_known():
    with pytest.raises(ValueError, match="by must be one of exact, numeric, statistical, training, got 'faith'"):
        Evidence(True, "faith", 1, 1)


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
    assert all_of(exactly(1, 1, exhaustive=True), exactly(2, 2, exhaustive=True)).proof
    assert not all_of(exactly(1, 1, exhaustive=True), exactly(2, 2)).proof


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
        Evidence(True, "exact", torch.ones(2), (1, 2), detail="built by hand"),
        WEAK,
    ],
)
def test_all_evidence_is_strict_json(evidence):
    data = evidence.to_json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {field.name for field in dataclasses.fields(Evidence)}


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
