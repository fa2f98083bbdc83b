"""What docs/labs.md promises of every lab: three files, a short script, controls whose ends its model takes."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lemmata.figure import Figure
from lemmata.lab.site import labs as site_labs
from lemmata.lab.site.labs import labs, read_state
from lemmata.lab.site.pages import render
from lemmata.lab.site.views.labs import lab_context
from lemmata.lab.site.work.lab import lab_module as module

SITE = Path(site_labs.__file__).parent
DOCS = Path(__file__).parents[3] / "docs" / "labs.md"
NAMES = sorted(path.stem.removesuffix("_lab") for path in (SITE / "work").rglob("*_lab.py"))
LONGEST = 150


class Controls(HTMLParser):
    """The controls of a page that are part of a lab's state: name -> attributes, with the options of a choice."""

    def __init__(self, page):
        super().__init__()
        self.found = {}
        self.open = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "option" and self.open:
            self.found[self.open].setdefault("options", []).append(given["value"])
        if tag in ("input", "select"):
            self.open = None
        if "data-usual" in given:
            self.open = given["name"]
            known = self.found.setdefault(self.open, given)
            if given.get("type") == "radio":
                known.setdefault("options", []).append(given["value"])


@pytest.fixture(params=NAMES)
def controls(request):
    """(lab, its controls)"""
    lab = labs()[request.param]
    page = render(f"lab_{lab.name}.html", path="", live=True, **lab_context(lab, {}))
    return module(lab.name), Controls(page).found


def test_what_is_found_is_what_is_there():
    assert sorted(labs()) == NAMES
    assert sorted(path.stem.removeprefix("lab_") for path in (SITE / "static").glob("lab_*.js")) == NAMES
    assert sorted(path.stem.removeprefix("lab_") for path in (SITE / "templates").glob("lab_*.html")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short_and_its_lines_are_readable(name):
    lines = (SITE / "static" / f"lab_{name}.js").read_text().splitlines()
    assert len(lines) < LONGEST
    assert max(map(len, lines)) <= 160


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_shows_how_it_begins(name):
    lab = module(name)
    shown = lab.show(lab.State())
    assert isinstance(shown["python"], str)
    assert all(isinstance(figure, Figure) for figure in shown["figures"].values())
    page = (SITE / "templates" / f"lab_{name}.html").read_text()
    assert all(f'drawn("{figure}"' in page for figure in shown["figures"])
    assert isinstance(lab.still(read_state(lab.State, labs()[name].thumbnail)), Figure)


def test_controls_begin_where_the_model_does(controls):
    lab, found = controls
    assert found
    for name, control in found.items():
        begun = getattr(read_state(lab.State, {name: control["data-usual"]}), name)
        usual = lab.State.model_fields[name].default
        assert begun == usual or usual is None, name  # None: the lab says how it begins
        if "data-step" in control:
            assert float(control["data-low"]) + int(control["value"]) * float(control["data-step"]) == pytest.approx(
                begun
            )


def test_both_ends_of_every_slider_and_every_choice_are_states(controls):
    lab, found = controls
    for name, control in found.items():
        ends = control.get("options", [])
        if "data-step" in control:
            low, step = float(control["data-low"]), float(control["data-step"])
            ends = [f"{round(low + int(control[end]) * step, 6):g}" for end in ("min", "max")]
        elif control.get("type") == "number":
            ends = [control["min"], control["max"]]
        elif control.get("type") == "text":
            ends = ["", "a" * int(control["maxlength"])]
        assert len(set(ends)) > 1, name
        for value in ends:
            read_state(lab.State, {name: value})


def test_the_example_in_the_documentation_is_the_lab_in_the_tree():
    blocks = re.findall(r"`src/lemmata/lab/site/([^`]+)`:\n\n```\w+\n(.*?)```", DOCS.read_text(), re.S)
    names = ["work/activation_lab.py", "templates/lab_activation.html", "static/lab_activation.js"]
    assert [path for path, _ in blocks] == names
    for path, text in blocks:
        assert text == (SITE / path).read_text(), path


def test_the_documentation_names_every_shared_part():
    text = DOCS.read_text()
    assert all(f"`{path.name}`" in text for path in (SITE / "static").glob("labs*.js"))
    macros = re.findall(r"macro (\w+)\(", (SITE / "templates" / "labs_parts.html").read_text())
    assert macros
    assert all(f"`{macro}" in text for macro in macros)
