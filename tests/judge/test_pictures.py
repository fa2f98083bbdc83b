"""The picture that each kind of judge draws: of the moved values, thinned, and only where somebody watches."""

import math

import pytest
import torch

from lemmata.figure import Bars, Figure, Line, Points
from lemmata.judge import (
    Domain,
    all_of,
    always,
    at_least,
    at_most,
    claim,
    close,
    count_is,
    everywhere,
    exactly,
    figure_of,
    judge,
    law_is,
    lie,
    mean_is,
    probability_is,
    probe_claim,
    reaches,
    same_everywhere,
    slope_is,
    symbolic,
    watched,
)
from lemmata.judge.evidence import failed_part

X = torch.linspace(1.0, 2.0, 5000, dtype=torch.float64)


def uniform(n):
    return torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def curves(shift):
    import sympy

    x = sympy.symbols("x", real=True)
    return symbolic((x + 1) ** 2, x**2 + 2 * x + 1 + (sympy.Integer(1) if shift else 0))


JUDGES = {
    "close": lambda moved: close(X, X + moved),
    "close on few": lambda moved: close([1.0, 2.0], [1.0, 2.0 + moved]),
    "close on one": lambda moved: close(1.0, 1.0 + moved),
    "close on complex": lambda moved: close(X * 1j, X * 1j + moved),
    "at_most": lambda moved: at_most(X, 2.0 - moved),
    "at_least": lambda moved: at_least(X, X / 2 + moved),
    "exactly": lambda moved: exactly(X, X + moved),
    "exactly on one": lambda moved: exactly(3, 3 + moved),
    "always": lambda moved: always(X - moved >= 1.0),
    "everywhere": lambda moved: everywhere(Domain.bits(3), lambda bits: sum(bits) <= 3 - moved),
    "count_is": lambda moved: count_is(Domain.bits(3), lambda bits: sum(bits) == 1, 3 + int(moved)),
    "same_everywhere": lambda moved: same_everywhere(Domain.range(0, 9), lambda n: n, lambda n: n + int(moved * n)),
    "slope_is": lambda moved: slope_is(X, X**2, 2.0 + moved, within=0.1),
    "law_is": lambda moved: law_is(uniform, lambda x: (x - moved / 2).clamp(0, 1), effect=0.1),
    "mean_is": lambda moved: mean_is(lambda x: x, uniform, 0.5 + moved, effect=0.1),
    "probability_is": lambda moved: probability_is(lambda n: uniform(n) < 0.5, 0.5 + 0.4 * moved, effect=0.1),
    "reaches": lambda moved: reaches(0.9, 0.8 + moved),
    "symbolic": curves,
}


def drawn(name, moved):
    with watched():
        evidence = JUDGES[name](moved)
    return figure_of(evidence)


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_draws_a_picture_that_moves_with_what_it_compares(name):
    before, after = drawn(name, 0), drawn(name, 1)
    assert before.title
    assert before.to_json() == drawn(name, 0).to_json() != after.to_json()
    assert before.title == after.title
    sizes = [len(mark.names if isinstance(mark, Bars) else mark.x) for mark in [*before.marks, *after.marks]]
    assert 0 < max(sizes) <= 300


@pytest.mark.parametrize("name", JUDGES)
def test_where_nobody_watches_nothing_is_kept_and_the_evidence_is_the_same(name):
    evidence = JUDGES[name](0)
    with watched():
        seen = JUDGES[name](0)
    assert evidence.picture is None
    assert evidence.to_json() == seen.to_json()
    assert evidence.figure is None


def test_the_worst_entry_stays_when_many_are_thinned():
    off = X.clone()
    off[4321] += 1.0
    with watched():
        equal, different, _ = figure_of(close(X, off)).marks
    assert isinstance(different, Points)
    assert [abs(x - y) for x, y in zip(different.x, different.y, strict=True)] == [pytest.approx(1.0)]
    assert equal.x == equal.y


def test_instances_that_break_a_bound_are_told_apart():
    with watched():
        kept, broken, bound = figure_of(at_most(X, 1.5)).marks
    assert isinstance(bound, Line)
    assert max(kept.y) <= 1.5 < min(broken.y)


def test_the_part_that_fails_is_shown_or_the_one_that_is_watched():
    with watched():
        parts = [close(1.0, 1.0), at_most(1.0, 2.0), slope_is(X, X, 1.0, within=0.1)]
        failing = [close(1.0, 1.0), at_most(3.0, 2.0), slope_is(X, X, 1.0, within=0.1)]
    assert figure_of(all_of(*parts)).title == "Measured against predicted"
    assert figure_of(all_of(*parts), [1]).title == "Measured against the bound"
    assert figure_of(all_of(parts[0], all_of(*parts)), [1, 2]).title == "How fast it grows"
    assert figure_of(all_of(*failing)).title == figure_of(all_of(*failing), [0]).title == "Measured against the bound"
    assert figure_of(all_of(*parts), [7]).title == "Measured against predicted"


def test_a_figure_of_the_claim_itself_wins():
    own = Figure("Mine")
    with watched():
        assert figure_of(all_of(close(1.0, 1.0), close(2.0, 2.0).showing(own))) is own


def test_what_has_no_numbers_has_no_picture():
    with watched():
        assert figure_of(exactly("a", "b")) is None


def test_remembered_evidence_tells_which_part_failed():
    parts = [exactly(1, 1), all_of(exactly(2, 2), exactly(3, 4))]
    assert failed_part(all_of(*parts).to_json()) == [1, 1]
    assert (
        failed_part(exactly(1, 2).to_json()) == failed_part(None) == failed_part(all_of(exactly(1, 1)).to_json()) == []
    )


@claim("test.area")
@lie("a quarter", factor=math.pi / 4)
def area(draw, factor=math.pi):
    return close(factor * 4.0, math.pi * 4.0)


def test_a_probe_has_a_picture_and_a_verdict_has_none():
    figures = [probe_claim(area, 0, value)["evidence"]["figure"] for value in (math.pi, math.pi / 4)]
    assert figures[0]["marks"][0]["values"] == pytest.approx([12.566, 12.566], abs=1e-3)
    assert figures[1]["marks"][0]["values"] == pytest.approx([3.1416, 12.566], abs=1e-3)
    assert judge(area).evidence["figure"] is None


def test_what_agrees_up_to_rounding_is_drawn_as_equal():
    with watched():
        seen = close(1e-16 * torch.linspace(-1, 1, 50).double(), torch.zeros(50).double(), within=1e-9)
    points, _, equal = figure_of(seen).marks
    assert set(points.y) == {0.0}
    assert set(equal.x) == {0.0}


def test_bars_of_no_height_give_way_to_another_part_where_all_hold():
    with watched():
        parts = close(0.0, 0.0, within=1e-9), close([1.0, 2.0], [1.0, 2.0])
        broken = all_of(close(0.0, 1.0, within=1e-9), parts[1])
    assert figure_of(all_of(*parts), [0]).marks[0].values == [1.0, 2.0]
    assert figure_of(broken, [0]).marks[0].values == [0.0, 1.0]
