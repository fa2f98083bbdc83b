"""A dial in a reader's words: what its slider says, and what the formula shows at each position."""

import pytest

from lemmata.catalog import LieEntry
from lemmata.catalog.statements import Argument, Statement
from lemmata.judge import dial_of
from lemmata.lab.site.dials import MINUS, guess, reader_view


def view(formula, truth, value, text="twice as many", **told):
    """The view of a lie that changes `x`, whose statement says `formula`."""
    arguments = (Argument("x", **told),) if told else ()
    lie = LieEntry(text, argument="x", truth=truth, value=value)
    statement = Statement("a.b", "identity", "A", "", "instant", dialled=f"${formula}$", arguments=arguments)
    return reader_view(guess(lie) or dial_of("x", min, max), lie, statement)


def test_a_slider_has_the_words_of_the_statement_and_a_text_for_each_position():
    found = view(r"R^{\dial{x}{2}}", "2", "-1", words="exponent of the radius")
    assert found["words"] == "exponent of the radius"
    assert found["texts"] == ["2", "1", "0", "−1"]
    assert found["values"] == [2, 1, 0, -1]
    assert found["formula"] == {"number": ["", "<mn>1</mn>", "<mn>0</mn>", f"{MINUS}<mn>1</mn>"]}


def test_without_words_an_argument_is_called_by_its_name_and_a_switch_by_the_lie():
    found = view("R", "torch.min", "torch.max")
    assert (found["words"], found["texts"], found["formula"]) == ("x", ["as stated", "twice as many"], {})


def test_a_sign_shows_itself_at_one_and_a_number_with_its_sign_between():
    found = view(r"a\dial{x}{-}b", "-1", "1")
    assert found["formula"]["sign"] == ["", "<mo>+</mo><mn>0</mn>", "<mo>+</mo>"]
    assert view(r"a\dial{x}{+}b", "1.0", "-1.0")["formula"]["sign"][30] == "<mo>−</mo><mn>0.5</mn>"


@pytest.mark.parametrize(
    ("truth", "value", "last"),
    [("1.0", "2.0", "<mn>2</mn>"), ("0", "1", "<mo>+</mo><mn>1</mn>"), ("0", "-3", "<mo>−</mo><mn>3</mn>")],
)
def test_what_is_not_printed_appears_as_a_factor_or_as_a_summand(truth, value, last):
    assert view(r"\dial{x}{}R", truth, value)["formula"]["nothing"][-1] == last


def test_a_switch_shows_the_label_of_its_value():
    labels = (("torch.min", r"$\min$"), ("torch.max", "the <largest>"))
    found = view(r"\dial{x}{\min}_i", "torch.min", "torch.max", words="how margins are joined", values=labels)
    assert found["texts"] == [r"$\min$", "the <largest>"]
    assert found["formula"] == {"label": ["", "<mtext>the &lt;largest&gt;</mtext>"]}


def test_one_argument_may_stand_in_a_formula_in_several_styles():
    found = view(r"\dial{x}{}a^{\dial{x}{1}}", "1", "2")
    assert found["formula"] == {"nothing": ["", "<mn>2</mn>"], "number": ["", "<mn>2</mn>"]}
