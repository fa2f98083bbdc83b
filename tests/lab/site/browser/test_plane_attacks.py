"""The lab of attacks in the plane, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_point_is_dragged_and_the_projection_switched(visit, size, scheme):
    page = visit("/labs/plane_attacks", size, scheme)
    plane, said, rows = page.locator("svg.plane"), page.locator("[data-said]"), page.locator("[data-rows] tr")
    expect(rows).to_have_count(3)
    expect(said).to_contain_text("inside the ball. Missed by FGSM.")
    expect(plane.locator(".trail")).to_have_count(3)
    page.get_by_label("none", exact=True).check()
    expect(rows.nth(1)).to_contain_text("lower, outside the ball")
    expect(said).to_contain_text("its example does not count")
    expect(page).to_have_url(re.compile("projection=none"))
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("Missed by FGSM.")
    plane.scroll_into_view_if_needed()
    box = plane.bounding_box()
    assert box is not None
    place = lambda x, y: (box["x"] + (x + 2.1) / 4.2 * box["width"], box["y"] + (2.1 - y) / 4.2 * box["height"])  # noqa: E731
    page.mouse.move(*place(-0.68, 0.75))
    page.mouse.down()
    page.mouse.move(*place(0.34, 0.55), steps=5)
    page.mouse.up()
    expect(said).to_contain_text(re.compile(r"Moved to \(0\.3\d, 0\.5\d\)\. The nearest other answer"))
    page.mouse.click(*place(1.5, -1.5))
    expect(said).to_contain_text(re.compile(r"Moved to \(1\.\d+, −1\.\d+\)"))
    expect(page).to_have_url(re.compile("x=1"))


def test_a_point_is_moved_by_keyboard_in_every_norm(visit, tab):
    page = visit("/labs/plane_attacks?x=0.3&y=0.2")
    plane, said = page.locator("svg.plane"), page.locator("[data-said]")
    expect(plane.locator("rect.allowed")).to_have_count(1)
    tab(page, plane)
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Moved to (0.35, 0.2).")
    page.get_by_label("2", exact=True).check()
    expect(plane.locator("circle.exact")).to_have_count(1)
    page.get_by_label("1", exact=True).check()
    expect(plane.locator("path.exact")).to_have_count(1)
    expect(page.locator("[data-rows] tr")).to_have_count(2)  # DeepFool has no step in this norm
