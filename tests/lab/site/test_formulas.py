"""Formulas on the page: set from the table, readable without it, and a misprint's changed parts marked."""

import json
import re
from xml.etree import ElementTree

import pytest

from lemmata import catalog as catalogs
from lemmata.catalog.dials import without_dials
from lemmata.lab.site import assets, formulas, typeset
from lemmata.lab.site.misprint_changes import compared

LATEX = '<annotation encoding="application/x-tex">R^2</annotation>'
SQUARE = f"<math><semantics><msup><mi>R</mi><mn>2</mn></msup>{LATEX}</semantics></math>"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A function that makes a table of formulas of one's own; before it is called there is none."""
    monkeypatch.setattr(formulas, "ASSETS", tmp_path)

    def write(inline, block=None):
        (tmp_path / "formulas.json").write_text(json.dumps({"inline": inline, "block": block or {}}))

    return write


def leaves(*signs):
    return "<math><semantics><mrow>" + "".join(f"<mi>{sign}</mi>" for sign in signs) + "</mrow></semantics></math>"


def test_without_a_table_a_formula_is_text_that_the_browser_can_improve(table):
    shown = formulas.prose(r"at most $R^2/\gamma^2$ updates")
    assert shown == r'at most <span class="tex" data-tex="R^2/\gamma^2">R²/γ²</span> updates'


def test_a_formula_of_the_table_is_set_and_keeps_its_latex(table):
    table({"R^2": SQUARE})
    assert formulas.prose("at most $R^2$ updates") == f"at most {SQUARE} updates"


def test_a_new_table_replaces_what_was_set_with_the_old_one(table):
    before = formulas.prose("$R^2$")
    table({"R^2": SQUARE})
    assert before != formulas.prose("$R^2$") == SQUARE


def test_a_damaged_table_counts_as_none(table, tmp_path):
    (tmp_path / "formulas.json").write_text("{")
    assert "data-tex" in formulas.prose("$R^2$")


@pytest.mark.parametrize(
    "evil", ["<script>alert(1)</script>", "$<img src=x onerror=alert(1)>$", '$"><b>$', "a & b < c"]
)
def test_text_and_formulas_are_escaped(table, evil):
    shown = str(formulas.prose(evil)) + str(formulas.stated(evil)) + "".join(compared(evil, "x"))
    assert not re.search(r"<(?!/?(span|del|ins)\b)", shown)
    assert '"><b' not in shown


def test_a_long_formula_of_a_statement_has_a_line_of_its_own_with_its_comma(table):
    wide = leaves(*"abcdefgh", "=", *"ijklmnopq")
    table({"x": leaves("x"), "y": wide}, {"x": leaves("x"), "y": wide})
    shown = formulas.stated("With $x$ and $y$, all is well.")
    assert '<span class="display">' in shown
    assert shown.endswith('<span class="stop">,</span></span> all is well.')
    assert "display" not in formulas.prose("With $x$ and $y$, all is well.")


# --- Misprints ---


def test_only_what_differs_is_marked_inside_a_formula(table):
    table({"n": leaves("C", "=", "2", "n"), "s": leaves("C", "=", "2", "s")})
    printed, correct = compared("$n$", "$s$")
    assert '<mi class="del">n</mi>' in printed
    assert '<mi class="ins">s</mi>' in correct
    assert printed.count("class=") == correct.count("class=") == 1


def test_what_is_missing_leaves_a_mark_at_its_place(table):
    fraction = "<mfrac><mn>1</mn><mn>2</mn></mfrac>"
    rows = [
        f"<math><semantics><mrow><mi>H</mi><mo>=</mo>{m}{fraction}<mi>w</mi></mrow></semantics></math>"
        for m in ("", "<mo>−</mo>")
    ]
    table(dict(zip(["plus", "minus"], rows, strict=True)))
    printed, correct = compared("$plus$", "$minus$")
    assert '<mfrac class="gap">' in printed
    assert '<mo class="ins">−</mo>' in correct


def test_words_are_marked_too_and_neighbours_share_one_mark(table):
    printed, correct = compared("it converges in less than one step", "it converges in at most one step")
    assert "<del>less than</del>" in printed
    assert "<ins>at most</ins>" in correct


def test_scripts_outside_formulas_are_set_in_a_misprint_and_its_correction(table):
    assert compared("the bias sigma_b^2", "all widths m_l") == (
        "the bias sigma<sub>b</sub><sup>2</sup>",
        "all widths m<sub>l</sub>",
    )


def test_texts_that_have_little_in_common_are_not_marked(table):
    assert compared("one thing", "quite another matter") == ("one thing", "quite another matter")


# --- Setting ---


def test_every_formula_of_the_course_is_collected_once_and_is_no_empty_string():
    found = typeset.formulas_of(catalogs.load())
    assert len(found) == len(set(found)) > 200
    assert all(latex and latex == latex.strip() for latex in found)
    assert r"\lfloor R^2/\gamma^2\rfloor" in found


def test_no_dollar_of_a_statement_is_left_over(table):
    for statement in catalogs.load().statements.values():
        assert "$" not in re.sub(r'data-tex="[^"]*"', "", formulas.prose(statement.statement))


def test_inline_styles_become_classes():
    rules = {}
    shown = typeset.tidy('<math style="display:block math;"><mi style="math-depth:0;" class="a">x</mi></math>', rules)
    ((name, declared),) = rules.items()
    assert declared == "math-depth:0;"
    assert shown == f'<math><mi class="a {name}">x</mi></math>'


def test_a_formula_may_break_after_a_relation_but_not_after_a_sign():
    row = "<mi>a</mi><mo>=</mo><mo form='prefix'>−</mo><mi>b</mi><mo>+</mo><mi>c</mi>"
    math = ElementTree.fromstring(typeset.tidy(f"<math><semantics><mrow>{row}</mrow></semantics></math>", {}))
    assert ["".join(part.itertext()) for part in math.find("semantics/mrow")] == ["a=", "−b+", "c"]
    assert math.get("class") == "lines"


def test_scripts_are_tight_and_primes_have_full_size():
    script = "<msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup>"
    assert '<mo lspace="0" rspace="0">+</mo>' in typeset.tidy(f"<math>{script}</math>", {})
    prime = '<msup><mi>x</mi><mo class="tml-prime">′</mo></msup>'
    assert (
        typeset.tidy(f"<math>{prime}</math>", {})
        == '<math><mrow><mi>x</mi><mo lspace="0" rspace="0">′</mo></mrow></math>'
    )


def test_a_dial_that_the_table_lacks_is_plain_text_that_the_browser_can_improve(table):
    shown = formulas.prose(r"at most $R^{\dial{power}{2}}$")
    assert shown == (
        r'at most <span class="tex" data-tex="R^{2}" data-dialled="R^{\class{dial power number}{2}}">R²</span>'
    )


@pytest.mark.parametrize(
    ("dial", "row"),
    [
        (
            r"R^{\dial{power}{2}}",
            '<mrow class="dial" data-dial="power" data-as="number"><mn class="tml-med-pad">2</mn>',
        ),
        (r"x\dial{power}{-}y", '<mi>x</mi><mrow class="dial" data-dial="power" data-as="sign"><mo form="infix">−</mo>'),
        (r"x=\dial{power}{-}y", '<mrow class="dial" data-dial="power" data-as="sign"><mo form="prefix"'),
        (r"\dial{power}{}x", '<mrow class="dial" data-dial="power" data-as="nothing"><mrow /></mrow>'),
        (r"\dial{power}{\lfloor}x\rfloor", '<mrow class="dial" data-dial="power" data-as="label"><mo'),
    ],
)
@pytest.mark.skipif(not (assets.MODULES / "temml").is_dir(), reason="the assets were not built here")
def test_a_dial_is_a_row_of_its_own_and_is_not_copied(dial, row):
    node, _ = assets.node_and_npm()
    table, _ = typeset.typeset([dial], node, assets.MODULES / "temml" / "dist" / "temml.cjs")
    assert table["failed"] == {}
    assert row in table["inline"][dial]
    assert ElementTree.fromstring(table["block"][dial]).find("semantics/annotation").text == without_dials(dial)


@pytest.mark.skipif(not (assets.MODULES / "temml").is_dir(), reason="the assets were not built here")
def test_temml_sets_every_formula_of_the_course():
    node, _ = assets.node_and_npm()
    wanted = typeset.formulas_of(catalogs.load())
    table, css = typeset.typeset([*wanted, r"\nonsense{x"], node, assets.MODULES / "temml" / "dist" / "temml.cjs")
    assert list(table["failed"]) == [r"\nonsense{x"]
    assert set(table["inline"]) == set(table["block"]) == set(wanted)
    assert not any(" style=" in markup for style in ("inline", "block") for markup in table[style].values())
    for latex in wanted:
        annotation = ElementTree.fromstring(table["inline"][latex]).find("semantics/annotation")
        assert annotation.text == without_dials(latex)
    assert css.count("{") == css.count("}")
