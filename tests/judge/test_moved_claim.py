"""Probing a claim: any value between truth and lie, judged as the judge would."""

import importlib
import math

import pytest
import torch

from lemmata import catalog
from lemmata.judge import Skip, claim, close, dials, exactly, judge, lie, probe_claim


@claim("test.square")
@lie("three", x=3)
@lie("half a root", root=0.25)
@lie("another function", of=math.sqrt)
@lie("not a number at all", shift=math.nan)
@lie("a size that cannot be", size=0, raises=ZeroDivisionError)
def square(draw, x=-2, root=0.5, of=math.fabs, shift=0.0, size=1):
    return close(of(x * x / size) ** root + shift, 2.0)


def outcome(number, value, of=square):
    return probe_claim(of, number, value)["outcome"]


def test_the_truth_holds_and_the_lie_is_rejected():
    for number, dial in enumerate(dials(square)):
        assert outcome(number, dial.truth) == "still holds"
        assert outcome(number, dial.lie) == ("undecided" if dial.argument == "shift" else "rejected")


def test_between_them_the_verdict_breaks_somewhere():
    assert [outcome(0, x) for x in range(-2, 4)] == ["still holds", *["rejected"] * 3, "still holds", "rejected"]
    assert outcome(1, 0.5 - 1e-6) == "rejected"


def test_at_its_ends_a_dial_gives_the_truth_and_the_lie_themselves():
    seen = []

    @claim("test.ends")
    @lie("two", x=2)
    def ends(draw, x=1.5):
        seen.append(x)
        return exactly(1, 1)

    dial = dials(ends)[0]
    for position in (0, dial.last):
        probe_claim(ends, 0, dial.value(position))
    assert [(type(x), x) for x in seen] == [(float, 1.5), (int, 2)]


def test_whole_numbers_stay_whole():
    seen = []

    @claim("test.whole")
    @lie("five", n=5)
    def whole(draw, n=1):
        seen.append(n)
        return exactly(n, 1)

    probe_claim(whole, 0, 3.0)
    assert seen == [3]
    assert type(seen[0]) is int
    with pytest.raises(ValueError, match=r"n must be an integer, got 2\.5"):
        probe_claim(whole, 0, 2.5)


@pytest.mark.parametrize(("number", "value"), [(0, math.nan), (0, math.inf), (0, 4), (1, 0.51), (2, 0.5), (2, 2)])
def test_a_value_that_the_dial_does_not_have_is_refused(number, value):
    with pytest.raises(ValueError, match="must be"):
        probe_claim(square, number, value)


@pytest.mark.parametrize("number", [-1, 5])
def test_a_lie_that_is_not_there_is_refused(number):
    with pytest.raises(ValueError, match=f"lie must be from 0 to 4, got {number}"):
        probe_claim(square, number, 0)


def test_what_raises_is_undecided_unless_it_was_promised():
    @claim("test.raises")
    @lie("two", x=2)
    @lie("three", y=1)
    def raises(draw, x=1, y=0):
        if y:
            raise Skip("this machine lacks it")
        return exactly(1 / (2 - x), 1.0)

    found = probe_claim(raises, 0, 2)
    assert (found["outcome"], found["evidence"]) == ("undecided", None)
    assert found["how"].startswith("ZeroDivisionError: ")
    assert probe_claim(raises, 1, 1)["how"].startswith("Skip: this machine lacks it")


def test_a_probe_draws_what_the_judge_draws_and_leaves_no_trace():
    @claim("test.draw")
    @lie("two", x=2.0)
    def drawn(draw, x=1.0):
        return exactly(torch.rand(3).sum().item(), 0)

    before = torch.get_rng_state()
    found = probe_claim(drawn, 0, 1.0, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert found["evidence"]["measured"] == judge(drawn, seed=3).evidence["measured"]
    assert found["evidence"]["measured"] != probe_claim(drawn, 0, 1.0, seed=4)["evidence"]["measured"]


@pytest.mark.parametrize("id", ["hopfield.energy", "mcculloch.expressivity", "pdp.elements"])
def test_at_every_lie_of_a_real_claim_the_probe_finds_what_the_judge_finds(id):
    entry = catalog.load().claims[id]
    found = getattr(importlib.import_module(entry.module), entry.function)
    judged = judge(found, cost=entry.cost)
    for number, (dial, told) in enumerate(zip(dials(found), judged.lies, strict=True)):
        probed = probe_claim(found, number, dial.lie, cost=entry.cost)
        assert (probed["outcome"] == "rejected") == told["rejected"]
        assert (probed["evidence"] or {}).get("measured") == (told["evidence"] or {}).get("measured")
        assert probe_claim(found, number, dial.truth, cost=entry.cost)["outcome"] == "still holds"


def test_the_judge_announces_what_it_is_about_to_run():
    heard = []
    judge(square, tell=heard.append)
    assert heard == [0, 1, 2, 3, 4, 5]
