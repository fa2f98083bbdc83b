"""The dial of a lie: whole positions, whose ends are the truth and the lie themselves."""

import importlib
import inspect
import math

import pytest

from lemmata import catalog
from lemmata.judge import dial_of, dials
from lemmata.lab.site.dials import guess


def values(dial):
    return [dial.value(position) for position in range(dial.last + 1)]


@pytest.mark.parametrize(
    ("truth", "lie", "kind", "last"),
    [
        (0.5, 1.0, "real", 40),
        (2, 1.5, "real", 40),
        (-2, 3, "whole", 5),
        (3, 1, "whole", 2),
        (10, 5000, "whole", 40),
        (True, False, "switch", 1),
        (0.0, math.nan, "switch", 1),
        (1.0, math.inf, "switch", 1),
        (min, max, "switch", 1),
    ],
)
def test_numbers_turn_and_everything_else_switches(truth, lie, kind, last):
    dial = dial_of("x", truth, lie)
    assert (dial.kind, dial.last) == (kind, last)


@pytest.mark.parametrize("truth", [0.1, -0.5, 2 * math.pi * math.e, 1e-7, 12345.678, 3])
@pytest.mark.parametrize("lie", [1 / 3, 0.0, -1.1, 1e6, 0.1 + 1e-9, 7])
def test_every_position_has_a_value_of_its_own_on_the_way_from_truth_to_lie(truth, lie):
    found = values(dial_of("x", truth, lie))
    assert (found[0], found[-1]) == (truth, lie)
    assert found == sorted(set(found), reverse=lie < truth)


def test_values_have_no_more_digits_than_tell_them_apart():
    assert [str(value) for value in values(dial_of("x", 0.1, 0.3))[1:4]] == ["0.105", "0.11", "0.115"]


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_that_is_not_there_is_refused(position):
    with pytest.raises(ValueError, match=f"n has positions from 0 to 2, got {position}"):
        dial_of("n", 3, 1).value(position)


def test_both_ends_of_every_dial_of_the_course_are_exact_and_as_its_source_tells():
    for entry in catalog.load().claims.values():
        claim = getattr(importlib.import_module(entry.module), entry.function)
        for dial, lie, written in zip(dials(claim), claim.lies, entry.lies, strict=True):
            assert guess(written) in (None, dial), f"{entry.id}: {written.text}"
            if dial.kind != "switch":
                truth, found = inspect.signature(claim.function).parameters[lie.argument].default, values(dial)
                assert (found[0], found[-1]) == (truth, lie.value), f"{entry.id}: {lie.text}"
                assert len(set(found)) == len(found), f"{entry.id}: {lie.text}"
