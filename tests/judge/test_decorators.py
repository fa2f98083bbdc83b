"""Declaring claims and lies: every wrong declaration is refused where it stands."""

import pytest
import torch

from lemmata.judge import Claim, claim, exactly, lie


def check(draw, factor=2, shape=(3, 2), table=None):
    """Twice two."""
    return exactly(factor * 2, 4)


def declare(*decorators, function=check):
    def fresh(draw, factor=2, shape=(3, 2), table=None):
        return function(draw, factor, shape, table)

    for decorate in reversed(decorators):
        fresh = decorate(fresh)
    return fresh


def test_a_claim_keeps_its_lies_in_the_order_they_stand():
    made = declare(claim("a.b"), lie("first", factor=3), lie("second", printed="003/1", raises=ValueError, shape=(1,)))
    assert isinstance(made, Claim)
    assert [each.text for each in made.lies] == ["first", "second"]
    assert (made.lies[1].printed, made.lies[1].raises, made.lies[1].argument) == ("003/1", ValueError, "shape")
    assert repr(made) == "<claim a.b: 2 lies>"


def test_a_claim_still_is_its_function():
    made = claim("a.b", cost="long")(check)
    assert made.__doc__ == "Twice two."
    assert made.__name__ == "check"
    assert made.cost == "long"
    assert made(None).holds
    assert not made(None, factor=3).holds


def test_two_claims_do_not_share_lies():
    one = declare(claim("a.one"), lie("wrong", factor=3))
    other = declare(claim("a.other"))
    assert (len(one.lies), len(other.lies)) == (1, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"factor": 3, "shape": ()}, "exactly one argument, got factor, shape"),
        ({}, "exactly one argument, got none"),
        ({"raises": ValueError}, "exactly one argument, got none"),
    ],
)
def test_a_lie_changes_exactly_one_argument(changed, message):
    with pytest.raises(TypeError, match=message):
        lie("wrong", **changed)


@pytest.mark.parametrize("raises", [ValueError("an instance"), "ValueError", KeyboardInterrupt, int])
def test_a_lie_promises_a_class_of_exceptions(raises):
    with pytest.raises(TypeError, match="raises must be a class of exceptions"):
        lie("wrong", raises=raises, factor=3)


@pytest.mark.parametrize("unknown", ["factr", "draw"])
def test_a_lie_about_an_argument_the_check_does_not_take_is_refused(unknown):
    with pytest.raises(TypeError, match=f"a.b: lie 'wrong' changes '{unknown}', which the check does not take"):
        declare(claim("a.b"), lie("wrong", **{unknown: 3}))


@pytest.mark.parametrize("same", [{"factor": 2}, {"shape": (3, 2)}, {"table": None}])
def test_a_lie_equal_to_the_truth_is_refused(same):
    with pytest.raises(TypeError, match="its true value"):
        declare(claim("a.b"), lie("no lie at all", **same))


def test_values_of_another_type_are_left_to_the_check():
    declare(claim("a.b"), lie("a float", factor=2.0), lie("a tensor", table=torch.ones(2)))


def test_claim_stands_above_its_lies_and_once():
    with pytest.raises(TypeError, match="must stand below @claim"):
        declare(lie("wrong", factor=3), claim("a.b"))
    with pytest.raises(TypeError, match="@claim stands once"):
        declare(claim("a.b"), claim("a.c"))


def test_the_first_parameter_is_draw_and_the_others_have_defaults():
    with pytest.raises(TypeError, match=r"a\.b: the first parameter must be draw, without a default"):
        claim("a.b")(lambda: None)
    with pytest.raises(TypeError, match=r"a\.b: the first parameter must be draw, without a default"):
        claim("a.b")(lambda factor=2: None)
    with pytest.raises(TypeError, match=r"a\.b: parameter factor needs its true value as default"):
        claim("a.b")(lambda draw, factor: None)


def test_an_unknown_cost_is_refused():
    with pytest.raises(ValueError, match=r"a\.b: cost must be one of instant, quick, long, got 'fast'"):
        claim("a.b", cost="fast")(check)
