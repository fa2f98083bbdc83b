"""Marks by measurement and by rule, prices by chapter, and many cases in one test."""

import pytest

from cases import for_each
from installation import HERE
from prices import chapter, lines
from pytest_marks import is_numeric, is_rounding


@pytest.mark.parametrize(
    ("path", "numeric"),
    [
        ("tests/recurrent/test_lru.py", True),
        ("tests/fast/sparse/test_neighbour_sum.py", True),
        ("src/lemmata/recurrent/lru.py", True),
        ("tests/lab/site/test_lab_work.py", True),
        ("tests/lab/site/test_labs.py", False),
        ("tests/recurrent/test_recipes.py", False),
        ("src/lemmata/audit/probes/anatomy.py", False),
        ("conftest.py", False),
    ],
)
def test_an_instruction_set_concerns_what_chapters_compute(path, numeric):
    assert is_numeric(HERE / path) == numeric


def bad_input():
    with pytest.raises(ValueError, match="no"):
        raise ValueError("no")


def arithmetic():
    assert 0.1 + 0.2 > 0.3


class Item:
    path, name, fixturenames = HERE / "tests" / "recurrent" / "test_lru.py", "test", ()

    def __init__(self, function, **more):
        self.function = function
        vars(self).update(more)


def test_bad_input_and_compilers_do_not_depend_on_rounding():
    assert is_rounding(Item(arithmetic))
    assert is_rounding(Item(for_each("x", [1])(arithmetic)))
    assert not is_rounding(Item(bad_input))
    assert not is_rounding(Item(for_each("x", [1])(bad_input)))
    assert not is_rounding(Item(arithmetic, fixturenames=("unchecked",)))
    assert not is_rounding(Item(arithmetic, name="test_whole_compiled"))
    assert not is_rounding(Item(arithmetic, path=HERE / "tests" / "judge" / "test_draw.py"))


def test_prices_are_summed_by_chapter_and_what_is_dear_is_a_line():
    found = {
        "tests/recurrent/test_lru.py::test_a[1]": {"spent": 15.0, "marks": []},
        "src/lemmata/recurrent/lru.py::lemmata.recurrent.lru.LRU": {"spent": 6.0, "marks": []},
        "tests/recurrent/test_lru.py::test_b": {"spent": 3.0, "marks": ["slow"]},
        "tests/lab/site/browser/test_walk.py::test_c": {"spent": 9.0, "marks": ["slow", "browser"]},
        "tests/test_lazy.py::test_d": {"spent": 1.0, "marks": []},
    }
    assert [line.split()[:5] for line in lines(found)[1:]] == [
        ["3", "21.0", "3.0", "0.0", "recurrent"],
        ["1", "0.0", "0.0", "9.0", "lab"],
        ["1", "1.0", "0.0", "0.0", "project"],
        ["5", "22.0", "3.0", "9.0", "together"],
    ]
    assert [line.split()[4] for line in lines(found) if "more than 20 quick" in line] == ["recurrent"]
    assert chapter("tests/test_lazy.py::test_d") == "project"


def test_many_cases_are_one_test_that_names_those_that_fell():
    ran = []

    @for_each(("a", "b"), [(1, 2), (2, 2), (3, 1)])
    def ordered(fixture, a, b):
        ran.append((fixture, a, b))
        assert a < b, "not less"

    with pytest.raises(AssertionError, match=r"^2 of 3 fell:\n  \(2, 2\): AssertionError: not less[^\n]*\n") as fell:
        ordered(fixture="given")
    assert "(3, 1)" in str(fell.value)
    assert [case[1:] for case in ran] == [(1, 2), (2, 2), (3, 1)]


def test_no_case_at_all_is_a_failure():
    with pytest.raises(AssertionError, match="nothing to test"):
        for_each("x", [])(lambda x: None)()
