"""The lab of a flow layer by layer, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_square_is_dragged_and_its_layers_set_by_hand(visit, size, scheme):
    page = visit("/labs/flow_layers?flow=hand&layer=2", size, scheme)
    plane, said = page.locator("svg.plane"), page.locator("[data-said]")
    expect(said).to_contain_text("After 2 of 6 layers")
    expect(plane.locator(".warped")).to_have_count(22)
    expect(plane.locator(".carried")).to_have_count(1)
    page.get_by_label("always the same", exact=True).check()
    expect(said).to_contain_text("vertical lines stay where they were")
    expect(page).to_have_url(re.compile("masks=same"))
    plane.scroll_into_view_if_needed()
    box = plane.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    expect(said).to_contain_text(re.compile(r"Moved to \(−1\.\d+, 1\.\d+\)"))
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("After 3 of 6 layers")


def test_layers_are_turned_by_keyboard(visit, tab):
    page = visit("/labs/flow_layers?flow=hand&layer=1")
    plane, said = page.locator("svg.plane"), page.locator("[data-said]")
    expect(said).to_contain_text("After 1 of 6 layers")
    tab(page, plane)
    page.keyboard.press("-")
    expect(said).to_contain_text("This is the noise itself")
    expect(page.locator("[data-det]")).to_have_text("1")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Moved to")
