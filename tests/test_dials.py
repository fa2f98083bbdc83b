"""Dials in statements: symbols that stand for an argument of the check, and a reader's words for arguments."""

import pytest

from lemmata.catalog import load

CLAIM = """
from lemmata.judge import claim, exactly, lie

@claim("neuron.counts")
@lie("eleven", number=11)
def ten_of_sixteen(draw, number=10):
    ...
"""


@pytest.fixture
def house(tmp_path):
    """A package with one claim, whose statement and further keys are given."""

    def make(statement, more=""):
        folder = tmp_path / "house" / "connectionism"
        (folder / "claims").mkdir(parents=True)
        (folder / "claims" / "subject.py").write_text(CLAIM)
        entry = f"- {{id: neuron.counts, kind: identity, title: N, cost: instant, statement: '{statement}'{more}}}\n"
        (folder / "statements.yaml").write_text(entry)
        return load(tmp_path / "house")

    yield make
    load.cache_clear()


def test_a_dial_stands_for_an_argument_at_its_true_value(house):
    found = house(r"$\dial{number}{10}$ of sixteen.")
    statement = found.statements["neuron.counts"]
    assert statement.statement == "$10$ of sixteen."
    assert statement.dialled == r"$\dial{number}{10}$ of sixteen."
    assert not found.problems


@pytest.mark.parametrize(
    ("dial", "problem"),
    [
        (r"\dial{numbr}{10}", "has a dial 'numbr', which is no argument of its check"),
        (r"\dial{number}{11}", "shows 11 on the dial 'number', but the check has 10"),
        (r"\dial{number}{n}", "shows n on the dial 'number', but the check has 10"),
    ],
)
def test_a_dial_that_shows_something_else_is_a_fault(house, dial, problem):
    [told] = house(f"${dial}$").problems
    assert told.endswith(f"statements.yaml:1: neuron.counts {problem}")


def test_arguments_may_have_a_readers_words(house):
    found = house("Ten.", ", arguments: {number: functions counted, nmber: a slip}")
    assert dict(found.statements["neuron.counts"].arguments)["number"] == "functions counted"
    assert [problem.partition(" neuron.counts ")[2] for problem in found.problems] == [
        "has words for 'nmber', which is no argument of its check"
    ]
