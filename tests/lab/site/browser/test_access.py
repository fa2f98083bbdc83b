"""For everyone: without JavaScript, without a mouse, on a phone, in both colour schemes, and by axe-core's rules."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect
from tests.lab.site.browser.access import CONTRAST, figures, grave, ready, sideways

from lemmata.lab.site.assets import MODULES

CLAIM = "/claim/hopfield.energy"
# One of each kind; `test_every_page_there_is` has the rest.
KINDS = ["/", "/atlas?q=novikoff", "/errata?source=000&q=hopfield", "/source/003", "/claim/perceptron.novikoff"]
KINDS += [
    "/claim/perceptron.xor",
    "/trust",
    "/systems/mlp",
]
KINDS += [f"/labs/{path.name.removesuffix('_lab.py')}" for path in sorted(MODULES.parent.glob("work/**/*_lab.py"))]
MORE = ["/atlas", "/errata", "/source", "/systems", "/systems/perceptron", CLAIM, "/labs"]
LONG = [pytest.param(path, marks=pytest.mark.long) for path in MORE]


def served(page):
    """The answers to the files of a page's figures."""
    places = page.locator("figure.figure figcaption a[download]").evaluate_all("links => links.map((a) => a.href)")
    return [page.context.request.get(place).status for place in places if not place.startswith("data:")]


@pytest.mark.parametrize("path", [*KINDS, *LONG])
def test_a_page_of_each_kind_is_open_to_everyone(visit, axe, path):
    page = visit(path)
    ready(page)
    assert grave(page, axe) == []
    assert figures(page) == []
    assert set(served(page)) <= {200}
    page.emulate_media(color_scheme="dark")
    assert grave(page, axe, CONTRAST) == []
    page.set_viewport_size({"width": 390, "height": 800})
    ready(page)  # what is drawn for the width is drawn anew
    assert sideways(page) == ""


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_there_is(visit, axe, scheme, measured):
    page = visit("/", scheme=scheme)
    waiting, seen, wrong = ["/"], {"/"}, []
    while waiting:
        page.goto(waiting.pop())
        ready(page)
        page.set_viewport_size({"width": 1280, "height": 800})
        wrong += grave(page, axe) + figures(page) + [str(code) for code in served(page) if code != 200]
        page.set_viewport_size({"width": 390, "height": 800})
        ready(page)
        wrong += [sideways(page)] if sideways(page) else []
        found = page.locator("main a[href]:not([download]), nav a[href]").evaluate_all("a => a.map((a) => a.pathname)")
        fresh = {path for path in found if not re.search(r"\.\w{3}$|^data|^/runs/|/checkpoint$", path)} - seen
        seen |= fresh
        waiting += sorted(fresh)
    measured[f"every page ({scheme})"] = f"{len(seen)} pages, {len(page.watch.requests)} requests, {len(wrong)} faults"
    assert wrong == []


def test_everything_can_be_read_without_javascript(visit):
    page = visit("/", java_script_enabled=False)
    for path in [*KINDS, *MORE]:
        page.goto(path)
        assert len(page.locator("main").inner_text()) > 200
        assert page.locator("h1").is_visible()


def test_without_javascript_the_slider_is_a_form(visit):
    page = visit(CLAIM, java_script_enabled=False)
    probe = page.locator("form[data-probe]").first
    probe.get_by_role("slider").press("End")
    probe.get_by_role("button", name="Run the check").click()
    expect(page.locator("[data-probe-verdict]").first).to_contain_text("rejected")
    page.goto("/atlas")
    page.get_by_label("Search", exact=True).fill("novikoff")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".found")).to_contain_text(" of ")


@pytest.mark.parametrize("path", [CLAIM, "/labs/perceptron", "/systems/mlp"])
def test_whoever_walks_by_tab_sees_where_they_are(visit, path):
    page = visit(path)
    ready(page)
    seen = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        name, shown = page.evaluate(
            """() => {
                const at = document.activeElement, style = getComputedStyle(at);
                const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
                return [at.outerHTML.slice(0, 80), at === document.body || ring || style.boxShadow !== "none"];
            }"""
        )
        assert shown, f"no ring around {name}"
        seen.add(name)
    assert len(seen) > 10


def test_the_first_tab_offers_to_skip_to_the_text(visit):
    page = visit("/atlas")
    ready(page)
    page.keyboard.press("Tab")
    expect(page.locator("a.skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_print_shows_the_statement_and_not_the_buttons(visit):
    page = visit(CLAIM)
    page.emulate_media(media="print")
    assert page.locator(".statement").is_visible()
    assert not page.locator("[data-theme-button]").is_visible()
    assert not page.locator("header nav").is_visible()
