"""Dials in statements: symbols that stand for an argument of the check, and a reader's words for arguments."""

import pytest

from lemmata.catalog import load
from lemmata.catalog.dials import number_in

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
    assert found.statements["neuron.counts"].arguments[0].words == "functions counted"
    assert [problem.partition(" neuron.counts ")[2] for problem in found.problems] == [
        "has words for 'nmber', which is no argument of its check"
    ]


SIGNED = """
from lemmata.judge import claim, exactly, lie

@claim("neuron.counts")
@lie("added", sign=1.0)
@lie("twice", factor=2)
@lie("one more", rest=1)
@lie("the mean", reduce=torch.mean)
def ten_of_sixteen(draw, sign=-1.0, factor=1, rest=0, reduce=torch.min):
    ...
"""


@pytest.fixture
def signed(house, monkeypatch):
    monkeypatch.setitem(globals(), "CLAIM", SIGNED)
    return house


WORDS = ", arguments: {reduce: {words: how they are joined, values: {torch.min: $\\min$, torch.mean: mean}}}"


def test_dials_show_signs_nothing_and_switches(signed):
    found = signed(r"$a\dial{sign}{-}\dial{factor}{}b\dial{rest}{}$, $\dial{reduce}{\min}$", WORDS)
    assert not found.problems
    [reduce] = found.statements["neuron.counts"].arguments
    assert reduce.label("torch.mean") == "mean"
    assert found.statements["neuron.counts"].statement == r"$a-b$, $\min$"


@pytest.mark.parametrize(
    ("dial", "problem"),
    [
        (r"\dial{sign}{+}", "shows + on the dial 'sign', but the check has -1.0"),
        (r"\dial{sign}{}", "shows nothing on the dial 'sign', but the check has -1.0"),
        (r"\dial{reduce}{\max}", r"shows \max on the dial 'reduce', but the check has torch.min"),
    ],
)
def test_a_sign_or_label_must_be_the_true_one(signed, dial, problem):
    [told] = signed(f"${dial}$", WORDS).problems
    assert told.endswith(f"neuron.counts {problem}")


def test_a_label_must_belong_to_a_value_that_the_check_has(signed):
    [told] = signed("Ten.", ", arguments: {reduce: {words: w, values: {torch.max: m}}}").problems
    assert told.endswith("has a label for reduce = torch.max, which the check never has")


def test_words_that_are_no_text_are_named(house):
    [told, *_] = house("Ten.", ", arguments: {number: {words: w, values: {1: one}}}").problems
    assert told.endswith("the values of the argument number must be text, got 1: quote it")


@pytest.mark.parametrize("text", ["", "x", "2x", "1/0", "1..2", r"\frac12x", "--1", "1-2", "1 + 2"])
def test_what_is_no_number_is_none(text):
    assert number_in(text) is None


@pytest.mark.parametrize("shown", [r"$x^{\dial{number}{1}}$", r"$x^{\dial{number}{}}$"])
def test_an_exponent_one_is_written_once_it_is_moved(house, shown):
    (statement,) = house(shown).statements.values()
    assert (statement.dialled, statement.statement) == (r"$x^{\dial{number}{}}$", "$x$")
