"""The stage of a claim: dials in the formula by mouse and keyboard, every answer drawn, and a slow check stopped."""

import re
from itertools import pairwise

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

ID = "hopfield.energy"
BOTH = pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])


@pytest.fixture
def stage(visit):
    """The page of the Hopfield energy once its first picture is drawn, and its stage."""

    def opened(size="desktop", scheme="light", path=f"/claim/{ID}"):
        page = visit(path, size, scheme)
        found = page.locator("[data-stage]")
        expect(found).to_have_attribute("aria-busy", "false")
        return page, found

    return opened


def dial(stage, name):
    return stage.locator(f"[data-dial={name}]").first


@BOTH
def test_the_number_in_the_formula_follows_the_slider(stage, size, scheme):
    _, found = stage(size, scheme)
    number, slider = dial(found, "quadratic"), found.locator("form[data-probe]:visible input[type=range]")
    stated = number.text_content()
    slider.press("End")
    expect(number).to_have_text("0.5")
    expect(found.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
    slider.press("Home")
    assert number.text_content() == stated
    colours = [
        part.evaluate("part => getComputedStyle(part).color") for part in (number, found.locator("output:visible"))
    ]
    assert colours[0] == colours[1]
    other = dial(found, "linear")
    assert other.evaluate("part => getComputedStyle(part).color") != colours[0]


def test_a_dial_in_the_formula_is_dragged(stage):
    page, found = stage()
    number, picture = dial(found, "quadratic"), found.locator("[data-probe-figure]")
    before, box = picture.inner_html(), number.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y, steps=6)
    expect(number).to_have_text("0")
    page.mouse.up()
    expect(found.locator("form[data-probe]:visible output")).to_have_text("0")
    expect(found.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
    expect(found).to_have_attribute("aria-busy", "false")
    assert picture.inner_html() != before
    expect(page).to_have_url(re.compile("lie=0&at=20"))


def test_a_click_on_a_dial_brings_its_slider(stage):
    page, found = stage()
    dial(found, "linear").click()
    slider = found.locator("form[data-probe]:visible input[type=range]")
    expect(slider).to_be_focused()
    expect(found.locator("form[data-probe]:visible")).to_have_attribute("data-argument", "linear")
    expect(found.locator(".wrongs [aria-current]")).to_have_count(1)
    page.keyboard.press("End")
    expect(dial(found, "linear")).to_have_text("−")


def test_without_a_mouse_a_dial_is_turned_and_says_its_value(stage, tab):
    page, found = stage()
    number = dial(found, "quadratic")
    tab(page, number)
    expect(number).to_have_attribute("role", "slider")
    expect(number).to_have_attribute("aria-label", "factor of the sum over pairs")
    for key, position, text in (
        ("ArrowRight", "1", "−0.475"),
        ("End", "40", "0.5"),
        ("ArrowLeft", "39", "0.475"),
        ("Home", "0", "−0.5"),
    ):
        page.keyboard.press(key)
        expect(number).to_have_attribute("aria-valuenow", position)
        expect(number).to_have_attribute("aria-valuetext", text)
    expect(found.locator("[data-probe-verdict]")).to_have_text(re.compile("matches"))
    expect(number).to_be_focused()


def test_gesture_and_consequence_stand_beside_each_other_or_in_order(stage):
    for size, beside in (("desktop", True), ("phone", False)):
        page, found = stage(size)
        parts = [
            found.locator(part) for part in (".said", "form[data-probe]:visible", ".probe-verdict", ".probe-figure svg")
        ]
        boxes = [part.first.bounding_box() for part in parts]
        assert all(above["y"] < below["y"] + below["height"] for above, below in pairwise(boxes))
        assert (boxes[3]["x"] > boxes[1]["x"] + boxes[1]["width"]) == beside
        if beside:
            assert max(box["y"] + box["height"] for box in boxes) <= 800
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        small = "letters => letters.map(letter => parseFloat(getComputedStyle(letter).fontSize)"
        small += " * letter.getScreenCTM().a)"
        assert min(found.locator(".probe-figure svg text").evaluate_all(small)) > 11.5


def test_every_answer_is_drawn_and_of_the_questions_meanwhile_only_the_last_is_asked(stage):
    page, found = stage()
    slider = found.locator("form[data-probe]:visible input[type=range]")
    held, asked = [], []
    page.route("**/probe", lambda route: held.append(route))
    page.on("request", lambda request: asked.append(request.post_data_json["at"]) if "/probe" in request.url else None)
    with page.expect_request("**/probe"):
        slider.press("End")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft"):
        slider.press(key)
    with page.expect_request("**/probe"):
        held.pop(0).continue_()
    # The first answer, while the second question is out. Its words go when that takes long; what it was stays.
    expect(found).to_have_attribute("data-outcome", "rejected")
    held.pop(0).continue_()
    expect(found).to_have_attribute("aria-busy", "false")
    assert asked == [40, 37]


# What a reader could take for the verdict on the formula as it stands, after every frame in which something moved.
SAMPLED = """() => {
    const root = document.querySelector("[data-stage]");
    window.samples = [];
    const look = () => {
        const part = (name) => root.querySelector(`[data-probe-${name}]`);
        const shown = (name) => !part(name) || getComputedStyle(part(name)).opacity === "1";
        const at = root.querySelector("form[data-probe]:not([hidden]) input[type=range]").value;
        const word = part("verdict").textContent.trim();
        const heard = part("said")?.getAttribute("aria-hidden") !== "true";
        const verdict = word !== "" && shown("verdict") && shown("said");
        const whose = part("whose")?.textContent ?? "";
        window.samples.push({ at, word, heard, verdict, figure: shown("figure"), whose });
    };
    root.addEventListener("input", look);
    document.addEventListener("click", look);
    root.addEventListener("pointermove", look);
}"""


def test_no_verdict_and_no_figure_stand_undimmed_beside_a_formula_they_are_not_of(stage):
    page, found = stage()
    held = []
    page.route("**/probe", lambda route: held.append(route))  # every answer is late
    page.evaluate(SAMPLED)
    slider = found.locator("form[data-probe]:visible input[type=range]")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 12, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 12, y, steps=8)
    page.mouse.up()
    samples = [each for each in page.evaluate("window.samples") if each["at"] != "0"]
    assert len(samples) > 3
    assert [each for each in samples if each["verdict"] or each["figure"] or each["heard"]] == []
    assert all(re.match("This version: (being|not) checked", each["whose"]) for each in samples)
    page.unroute("**/probe")  # answers a position on the way; the last one is asked next
    expect(found.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
    expect(found.locator("[data-stale]")).to_have_count(0)
    expect(found.locator("[data-probe-whose]")).to_have_text("This version")
    page.route("**/probe", lambda route: held.append(route))
    # The end is known now. Another lie begins at the truth, which this verdict is not of.
    page.evaluate("window.samples.length = 0")
    found.locator(".wrongs a:not([aria-current])").first.click()
    chosen = page.evaluate("window.samples").pop()
    assert (chosen["at"], chosen["word"].endswith("rejected")) == ("0", True)
    assert [chosen[part] for part in ("verdict", "figure", "heard")] == [False] * 3
    page.unroute("**/probe")


def test_a_check_that_takes_long_says_so_and_can_be_stopped(stage):
    page, found = stage()
    held = []
    page.route("**/probe", lambda route: held.append(route))
    with page.expect_request("**/probe"):
        found.locator("form[data-probe]:visible input[type=range]").press("End")
    expect(found.locator("[data-probe-wait]")).to_be_visible()
    expect(found.locator("[data-probe-whose]")).to_have_text("This version: being checked")
    expect(found.locator("[data-probe-said][data-stale]")).to_have_count(1)  # it belongs to another value
    with page.expect_event("requestfailed"):
        found.get_by_role("button", name="Cancel").click()
    expect(found.locator("[data-probe-evidence]")).to_have_text("stopped")
    expect(found.locator("[data-probe-figure][data-stale]")).to_have_count(1)
    expect(found.locator("[data-probe-wait]")).to_be_hidden()
    page.unroute("**/probe")
    found.locator("form[data-probe]:visible input[type=range]").press("ArrowLeft")
    expect(found.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))


def test_how_much_the_page_adds_to_a_check_is_measured(stage, measured):
    page, found = stage()
    answers = []
    page.on("response", lambda answer: answers.append(answer) if "/probe" in answer.url else None)
    slider = found.locator("form[data-probe]:visible input[type=range]")
    for _ in range(10):
        with page.expect_response("**/probe"):
            slider.press("ArrowRight")
    expect(found).to_have_attribute("aria-busy", "false")
    times = [answer.request.timing["responseEnd"] - 1000 * answer.json()["seconds"] for answer in answers]
    measured["a slider's overhead (median)"] = f"{sorted(times)[len(times) // 2]:.0f} ms"
    assert len(times) == 10
