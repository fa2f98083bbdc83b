"""What all labs share: answers shown as they come, cancelling, tooltips, reset, pictures that stay in sight."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

BOTH = pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])


def answered(page):
    """Wait until the lab has heard from the server about all that was done so far."""
    expect(page.locator("[data-lab]")).to_have_attribute("aria-busy", "false")


def test_every_answer_is_shown_and_only_questions_that_waited_are_dropped(visit):
    page = visit("/labs/vanishing")
    bound, size = page.locator("[data-bound]"), page.locator("#size")
    expect(bound).to_have_text("0.879")
    held, shown = [], "**/labs/vanishing/show"
    # The two that are meant are held. Later ones, such as the question for the whole figure, go on: to wait for a
    # request that is held for ever would be to wait for ever.
    page.route(shown, lambda route: held.append(route) if len(held) < 2 else route.continue_())
    with page.expect_request(shown):
        size.press("ArrowRight")
    for _ in range(3):  # while the first is on its way
        size.press("ArrowRight")
    assert [route.request.post_data_json["state"] for route in held] == [{"size": "0.55"}]
    with page.expect_request(shown):
        held[0].continue_()
    expect(bound).to_have_text("0.967")  # of the first answer, though a newer question is asked
    assert held[1].request.post_data_json == {"state": {"size": "0.7"}, "brief": "wide"}
    held[1].continue_()
    expect(bound).to_have_text("1.23")
    page.unroute_all(behavior="ignoreErrors")
    answered(page)


def test_what_takes_long_says_so_and_is_cancelled(visit):
    page = visit("/labs/vanishing")
    expect(page.locator("[data-bound]")).to_have_text("0.879")
    page.route("**/labs/vanishing/show", lambda route: None)  # nobody answers
    page.locator("#size").press("ArrowRight")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-busy]")).to_be_hidden()
    expect(page.locator("[data-problem]")).to_be_hidden()
    page.unroute_all(behavior="ignoreErrors")
    answered(page)


def test_what_was_lost_on_the_way_is_told_once_the_server_answers_again(visit):
    page = visit("/labs/vanishing")
    bound, problem = page.locator("[data-bound]"), page.locator("[data-problem]")
    expect(bound).to_have_text("0.879")
    lost, shown = [], "**/labs/vanishing/show"

    def first_is_lost(route):
        lost.append(route.request.post_data_json)
        route.fulfill(json={"error": "a broken line"}) if len(lost) == 1 else route.continue_()

    page.route(shown, first_is_lost)
    page.locator("#size").press("ArrowRight")  # and nothing more is done
    expect(bound).to_have_text("0.967")
    expect(problem).to_be_hidden()
    expect(page).to_have_url(re.compile("size=0.55"))
    assert lost == [{"state": {"size": "0.55"}, "brief": "wide"}, {"state": {"size": "0.55"}, "brief": ""}]
    page.unroute_all(behavior="ignoreErrors")


def test_what_was_cancelled_is_not_asked_again(visit):
    page = visit("/labs/vanishing")
    size, shown = page.locator("#size"), "**/labs/vanishing/show"
    expect(page.locator("[data-bound]")).to_have_text("0.879")

    def whole(request):
        return request.url.endswith("/show") and request.post_data_json["brief"] == ""

    with page.expect_request(whole):
        size.press("ArrowRight")
    page.route(shown, lambda route: None)  # nobody answers
    size.press("ArrowRight")
    with page.expect_request(whole) as again:
        page.get_by_role("button", name="Cancel").click()
    assert again.value.post_data_json["state"] == {"size": "0.55"}  # of which the whole figure may be missing
    page.unroute_all(behavior="ignoreErrors")
    answered(page)


def test_the_numbers_under_the_pointer_are_told(visit):
    page = visit("/labs/vanishing")
    curve = page.locator("[data-figure=flow] svg.wide path[fill=none]").last
    expect(curve).to_be_visible()
    box = curve.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1)
    expect(page.locator(".tip")).to_have_text(re.compile(r"at most .* at 60$"))


@BOTH
def test_a_lab_of_controls_alone_is_moved_and_begun_again(visit, size, scheme):
    page = visit("/labs/activation", size, scheme)
    slope = page.locator("[data-slope]")
    expect(slope).to_have_text("0.197")
    page.locator("#z").press("End")
    expect(page.locator("[data-out=z]")).to_have_text("6")
    expect(slope).to_have_text("0.00247")
    page.get_by_label("Function").select_option("relu")
    expect(slope).to_have_text("1")
    expect(page).to_have_url(re.compile("name=relu"))
    page.get_by_role("button", name="Reset").click()
    expect(slope).to_have_text("0.197")
    expect(page).to_have_url(re.compile("/labs/activation$"))


def test_the_picture_stays_in_sight_on_a_phone_while_its_sliders_move(visit):
    page = visit("/labs/ring", "phone")
    disc, slider = page.locator("svg.disc"), page.locator("#steps")
    expect(disc).to_be_visible()
    slider.scroll_into_view_if_needed()
    expect(disc).to_be_in_viewport(ratio=0.9)
    expect(slider).to_be_in_viewport()
    assert slider.bounding_box()["height"] >= 44


# --- Every lab ---

GRIPS = {"perceptron": "svg.plane [data-index]", "ring": "svg.disc [data-index]", "hopfield": "#noise"}
GRIPS |= {"boundary": "#width", "vanishing": "#size", "activation": "#z"}
SMALL = """() => {
    const wrong = [];
    for (const element of document.querySelectorAll("[data-lab] *")) {
        const box = element.getBoundingClientRect();
        const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!box.width || !words || element.matches("title, desc, option, script, math *, .id")) continue;
        const drawing = element.closest("svg.lemmata-figure");
        const scale = drawing ? drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width : 1;
        const size = scale * parseFloat(getComputedStyle(element).fontSize);
        if (size < 11.99) wrong.push(`${size.toFixed(1)} px: ${element.textContent.slice(0, 40)}`);
    }
    for (const element of document.querySelectorAll("[data-lab] form :is(button, input, select)")) {
        const { width, height } = (element.closest("label") ?? element).getBoundingClientRect();
        if (width && Math.min(width, height) < 24) wrong.push(`${width} by ${height}: ${element.outerHTML}`);
    }
    return wrong;
}"""


@pytest.mark.parametrize("name", GRIPS)
@BOTH
def test_no_text_is_smaller_than_12_pixels_and_no_target_than_24(visit, name, size, scheme):
    page = visit(f"/labs/{name}", size, scheme)
    expect(page.locator("main .waiting")).to_have_count(0)
    expect(page.locator("[data-said]")).not_to_be_empty()
    assert page.evaluate(SMALL) == []


@pytest.mark.parametrize("name", GRIPS)
def test_the_lab_moves_while_the_hand_does(visit, measured, name):
    page = visit(f"/labs/{name}")
    grip = page.locator(GRIPS[name]).first
    expect(page.locator("[data-said]")).not_to_be_empty()
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    share = grip.evaluate("field => field.type === 'range' ? (field.value - field.min) / (field.max - field.min) : 0.5")
    at, middle = box["x"] + 8 + share * (box["width"] - 16), box["y"] + box["height"] / 2
    page.mouse.move(at, middle)
    page.mouse.down()
    began, told = page.evaluate("performance.now()"), []
    for step in range(5000):  # far more than a browser needs that is not frozen
        page.mouse.move(at + 30 * abs(step % 40 - 20) / 20, middle - step % 7)
        told = page.evaluate("performance.getEntriesByName('lab-update').map((update) => update.duration)")
        if len(told) >= 20:
            break
    seconds = (page.evaluate("performance.now()") - began) / 1000
    page.mouse.up()
    answered(page)
    assert len(told) >= 20
    measured[f"updates while dragging, {name}"] = f"{len(told) / seconds:.1f} a second, {sorted(told)[10]:.0f} ms each"
