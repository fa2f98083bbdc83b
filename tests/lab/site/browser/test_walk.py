"""The pages that are read, and the slider that breaks a theorem: by mouse and by keyboard, on desktop and phone."""

import csv
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

ID = "hopfield.energy"
BOTH = pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])


def drag(page, slider, share):
    """Take the thumb of a slider from its lower end to a share of its way, and let go."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    at = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, at)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + share * (box["width"] - 16), at, steps=5)
    page.mouse.up()


@BOTH
def test_the_first_page_shows_a_theorem_breaking(visit, size, scheme, measured):
    page = visit("/", size, scheme)
    probe = page.locator("[data-stage]")
    verdict, picture = probe.locator("[data-probe-verdict]"), probe.locator("[data-probe-figure]")
    expect(verdict).to_have_text(re.compile("matches"))
    before = picture.inner_html()
    page.evaluate(
        """() => {
            addEventListener("change", () => (window.released = performance.now()), { once: true });
            const verdict = document.querySelector("[data-probe-verdict]");
            new MutationObserver(() => (window.answered = performance.now())).observe(verdict, { childList: true });
        }"""
    )
    drag(page, probe.locator("input[type=range]"), 1.0)
    expect(verdict).to_have_text(re.compile("rejected"))
    expect(probe.locator("[data-probe-output]")).to_have_text("0.5")
    expect(probe).to_have_attribute("aria-busy", "false")
    measured[f"slider to verdict ({size})"] = f"{page.evaluate('answered - released'):.0f} ms"
    assert picture.inner_html() != before


def test_without_a_mouse_the_slider_breaks_the_theorem_and_mends_it(visit, tab):
    page = visit("/")
    slider = page.locator("[data-stage] input[type=range]")
    verdict = page.locator("[data-probe-verdict]")
    tab(page, slider)
    page.keyboard.press("End")
    expect(verdict).to_have_text(re.compile("rejected"))
    page.keyboard.press("Home")
    expect(verdict).to_have_text(re.compile("matches"))


@BOTH
def test_the_doors_of_the_first_page_lead_somewhere(visit, size, scheme):
    page = visit("/", size, scheme)
    for name in ("Atlas", "Errata", "Sources", "Systems", "Labs"):
        page.get_by_role("navigation", name="Parts of the lab").get_by_role("link", name=name).click()
        expect(page.locator("h1")).to_have_text(name)
        expect(page.locator("header [aria-current=page]")).to_have_text(name)
        page.wait_for_load_state()  # what a page still fetches must not fail because the next one is opened
    page.get_by_role("link", name="lemmata").first.click()
    expect(page.locator("h1")).to_have_text("Deep learning, checked.")


def test_keys_lead_everywhere(visit):
    page = visit("/")
    for keys, title in (("ga", "Atlas"), ("ge", "Errata"), ("gs", "Systems"), ("gl", "Labs")):
        page.keyboard.press(keys[0])
        page.keyboard.press(keys[1])
        expect(page.locator("h1")).to_have_text(title)
        page.wait_for_load_state()  # keys work once the script is there
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.locator("[data-find]")).to_be_focused()
    page.keyboard.type("novikoff")
    page.keyboard.press("Enter")
    expect(page.locator("#results .entries li", has_text="perceptron.novikoff").first).to_be_visible()


def test_the_colours_change_and_are_remembered(visit):
    page = visit("/atlas", scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    button = page.locator("[data-theme-button]")
    button.click()
    expect(button).to_have_text("Colours: light")
    page.keyboard.press("t")
    expect(button).to_have_text("Colours: dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.goto("/errata")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


@BOTH
def test_search_and_filters_narrow_the_atlas(visit, size, scheme):
    page = visit("/atlas", size, scheme)
    every = page.locator("#results .entries li")
    number = every.count()
    page.get_by_label("Search", exact=True).fill("novikoff")
    expect(page.locator(".found")).to_contain_text(" of ")
    assert 0 < every.count() < number
    expect(page).to_have_url(re.compile("q=novikoff"))
    page.get_by_role("link", name="Show all").click()
    expect(page).not_to_have_url(re.compile("q="))
    page.wait_for_load_state("load")
    page.get_by_label("Verdict").select_option("holds")
    expect(page).to_have_url(re.compile("verdict=holds"))
    expect(page.locator(".found")).to_contain_text(" of ")
    for mark in page.locator("#results .entries .verdict").all_inner_texts():
        assert mark.strip() == "holds"
    page.get_by_label("Search", exact=True).fill("no such thing at all")
    expect(page.locator(".nothing")).to_be_visible()


def test_errata_are_filtered_and_taken_away_as_a_table(visit):
    page = visit("/errata")
    every = page.locator("article.erratum").count()
    page.get_by_label("Settled").select_option("notation")
    expect(page.locator(".found")).to_contain_text(" of ")
    left = page.locator("article.erratum").count()
    assert 0 < left < every
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").click()
    with Path(got.value.path()).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["settled"] for row in rows] == ["notation"] * left


def test_the_brackets_turn_the_pages_of_the_course(visit):
    page = visit(f"/claim/{ID}")
    title = page.locator("h1").inner_text()
    page.keyboard.press("]")
    expect(page.locator("h1")).not_to_have_text(title)
    page.wait_for_load_state()  # keys work once the script is there
    page.keyboard.press("[")
    expect(page.locator("h1")).to_have_text(title)
    page.locator("aside.margin a").first.click()
    expect(page).to_have_url(re.compile("/source/"))


@BOTH
def test_a_claim_is_judged_again_while_one_watches(visit, size, scheme):
    page = visit(f"/claim/{ID}", size, scheme)
    page.get_by_role("button", name="Run the check again").click()
    expect(page.locator("[data-judge-status]")).to_have_text("just now: holds")
    expect(page.get_by_role("button", name="Run the check again")).to_be_focused()
    expect(page.locator(".seal")).to_contain_text("implementation matches")


def test_a_claim_that_was_never_run_gets_its_verdict_by_keyboard(visit, tab):
    page = visit("/claim/perceptron.homogeneous")
    expect(page.locator(".seal")).to_contain_text("not judged")
    tab(page, page.get_by_role("button", name="Run the check"))
    page.keyboard.press("Enter")
    expect(page.locator(".seal")).to_contain_text("holds")
    page.get_by_text("How each wrong version fails").click()
    expect(page.locator(".lie .verdict").first).to_have_text("rejected")


def test_judging_can_be_stopped(visit):
    page = visit("/claim/hopfield.phase_transition")
    page.get_by_role("button", name="Run the check").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-judge-status]")).to_have_text(re.compile("stopped|just now"))
    expect(page.get_by_role("button", name=re.compile("Run the check"))).to_be_enabled()


def test_judging_can_be_stopped_before_the_server_has_answered(visit):
    page = visit("/claim/hopfield.phase_transition")
    held = []
    page.route("**/judge", lambda route: held.append(route))
    with page.expect_request("**/judge"):
        page.get_by_role("button", name=re.compile("Run the check")).click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-judge-status]")).to_have_text("stopping")
    held[0].continue_()
    expect(page.locator("[data-judge-status]")).to_have_text("stopped; the verdict is as it was")
    expect(page.get_by_role("button", name=re.compile("Run the check"))).to_be_enabled()


@BOTH
def test_every_lie_of_a_claim_can_be_told_one_at_a_time(visit, size, scheme):
    page = visit(f"/claim/{ID}", size, scheme)
    stage = page.locator("[data-stage]")
    for link in stage.locator("[data-choose]").all():
        link.click()
        expect(link).to_have_attribute("aria-current", "true")
        probe = stage.locator("form[data-probe]:visible")
        expect(probe).to_have_count(1)
        expect(stage.locator("[data-probe-verdict]")).to_have_text(re.compile("matches"))
        probe.locator("input[type=range]").press("End")
        expect(stage.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
        expect(probe.locator("[data-probe-output]")).to_have_text(json.loads(probe.get_attribute("data-texts"))[-1])
    expect(page).to_have_url(re.compile("lie=3&at=40"))
    again = visit(page.url.partition("127.0.0.1")[2].partition("/")[2].join(["/", ""]))
    expect(again.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
    expect(again.locator("form[data-probe]:visible [data-probe-output]")).to_have_text("−1")


@pytest.mark.parametrize(
    ("id", "lie", "truth", "wrong"),
    [
        ("hopfield.energy", 0, "−0.5", "0.5"),  # real numbers
        ("hopfield.energy", 1, "8", "3"),  # integers
    ],
)
def test_the_ends_of_a_slider_are_the_truth_and_the_lie(visit, id, lie, truth, wrong):
    page = visit(f"/claim/{id}?lie={lie}")
    slider, output = (page.locator(f"form[data-probe]:visible {part}") for part in ("input[type=range]", "output"))
    asked = []
    page.on("request", lambda request: asked.append(request.post_data_json) if "/probe" in request.url else None)
    for key, text, verdict in (("End", wrong, "rejected"), ("Home", truth, "matches|holds")):
        slider.press(key)
        expect(output).to_have_text(text)
        expect(page.locator("[data-probe-verdict]")).to_have_text(re.compile(verdict))
        drag(page, slider, 1.0 if key == "End" else 0.0)
        expect(output).to_have_text(text)
    assert {"lie": lie, "at": int(slider.get_attribute("max")), "seed": 0, "narrow": False} in asked


def test_a_switch_has_words_and_no_code(visit):
    page = visit("/claim/perceptron.novikoff?lie=1")
    probe = page.locator("form[data-probe]:visible")
    assert probe.get_attribute("data-kind") == "switch"
    assert "math." not in probe.inner_text()
    probe.get_by_role("radio").nth(1).check()
    expect(page.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
    probe.get_by_role("radio").nth(0).check()
    expect(page.locator("[data-probe-verdict]")).to_have_text(re.compile("holds"))


def test_the_check_can_be_read_where_it_is_used(visit):
    page = visit(f"/claim/{ID}")
    page.locator("details.source summary").click()
    expect(page.locator("details.source pre code")).to_contain_text("@claim")
    assert "lemmata check" in page.locator("[data-command]").first.inner_text()


def test_what_does_not_exist_is_said_in_a_line(visit, lab):
    page = visit("/atlas")
    answer = page.context.request.get(f"{lab.address}/claim/nothing", headers={"accept": "text/html"})
    assert answer.status == 404
    assert "there is no statement of this name" in answer.text().lower()


def test_whoever_did_not_open_the_link_reads_and_changes_nothing(visit):
    page = visit(f"/claim/{ID}", entered=False)
    expect(page.get_by_text("open the link that lemmata serve printed")).to_be_visible()
    assert page.get_by_role("slider").count() == page.locator("input[type=range]").count() == 0
    assert page.get_by_role("button", name="Run the check again").count() == 0
