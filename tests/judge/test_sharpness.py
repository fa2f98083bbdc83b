"""How sharp a check is: what fooled the judge at the lie's own value shows in between."""

import math

import pytest

from lemmata.judge import at_most, claim, close, exactly, is_blunt, lie, notices


def test_a_wide_tolerance_is_blunt():
    @claim("mine.pi")
    @lie("nothing", pi=-1.0)
    def pi(draw, pi=math.pi):
        return close(pi, math.pi, within=4.0)

    [found] = notices(pi)
    assert found["from"] == pytest.approx(math.pi - 4.0, abs=0.5)
    assert found["other"] == pytest.approx(math.pi + 4.0, abs=0.5)
    assert is_blunt(found)


def test_a_check_that_knows_its_lie_is_blunt():
    @claim("mine.branch")
    @lie("twice", factor=2.0)
    def branch(draw, factor=1.0):
        return close(0.0 if factor != 2.0 else 1.0, 0.0, within=1e-9)

    [found] = notices(branch)
    assert found["from"] == pytest.approx(2.0, rel=0.1)
    assert found["other"] is None
    assert is_blunt(found)


def test_both_sides_of_an_equality_are_found():
    @claim("mine.half")
    @lie("a whole", factor=1.0)
    @lie("none", factor=0.0)
    def half(draw, factor=0.5):
        return close(factor, 0.5, within=0.01)

    whole, none = notices(half)
    assert 0.51 <= whole["from"] < 0.53
    assert 0.47 < whole["other"] <= 0.49
    assert (none["from"], none["other"]) == (whole["other"], whole["from"])
    assert not is_blunt(whole)
    assert whole["away"] == pytest.approx(abs(whole["from"] - 0.5))


def test_the_slack_side_of_a_bound_needs_a_reason():
    def check(draw, bound=2.0):
        return at_most([1.0, 2.0], bound)

    without = claim("mine.bound")(lie("less", bound=1.0)(check))
    del check.__lies__
    stated = claim("mine.bound")(lie("less", bound=1.0, loose="a larger bound is true too")(check))
    assert is_blunt(notices(without)[0])
    assert not is_blunt(notices(stated)[0])
    assert notices(stated)[0]["away"] == pytest.approx(1e-6)


def test_one_step_is_the_finest_of_a_whole_number():
    @claim("mine.count")
    @lie("ten", n=10)
    @lie("a word", n="ten")
    @lie("refused", n=-1, raises=ValueError)
    def count(draw, n=3):
        return exactly(n, 3)

    ten, word, refused = notices(count)
    assert (ten["from"], ten["other"], ten["away"], is_blunt(ten)) == (4, 2, 0.0, False)
    assert word is refused is None


def test_what_the_code_refuses_is_noticed_and_nan_is_not():
    @claim("mine.root")
    @lie("twice", x=2.0)
    def root(draw, x=1.0):
        if x < 0.5:
            raise ValueError("x must be >= 0.5")
        return close(float("nan") if 1.0 < x < 1.5 else x, 1.0, within=0.25)

    [found] = notices(root)
    assert found["from"] == pytest.approx(1.5, rel=0.1)
    assert found["other"] == pytest.approx(0.75, rel=0.1)
