"""The lab of two players, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_game_is_begun_elsewhere_and_played_as_printed(visit, size, scheme):
    page = visit("/labs/two_players", size, scheme)
    plane, said, rows = page.locator("svg.plane"), page.locator("[data-said]"), page.locator("[data-rows] tr")
    expect(rows).to_have_count(3)
    expect(plane.locator(".trail")).to_have_count(3)
    expect(said).to_contain_text("Simultaneous play spirals out. Alternating play circles. Extragradient play arrives.")
    page.get_by_label("itself alone, as printed").check()
    expect(rows.nth(2)).to_contain_text("spirals out")
    expect(said).to_contain_text("sees nothing new")
    expect(page).to_have_url(re.compile("look=itself"))
    page.get_by_role("button", name="Reset").click()
    expect(rows.nth(2)).to_contain_text("arrives")
    plane.scroll_into_view_if_needed()
    box = plane.bounding_box()
    assert box is not None
    place = lambda x, y: (box["x"] + (x + 2.1) / 4.2 * box["width"], box["y"] + (2.1 - y) / 4.2 * box["height"])  # noqa: E731
    page.mouse.move(*place(1, 0))
    page.mouse.down()
    page.mouse.move(*place(0.5, 0.5), steps=5)
    page.mouse.up()
    expect(said).to_contain_text(re.compile(r"Moved to \(0\.\d+, 0\.\d+\)\. Simultaneous play"))
    expect(page).to_have_url(re.compile("y=0"))


def test_a_start_is_moved_by_keyboard(visit, tab):
    page = visit("/labs/two_players?strength=0.3")
    plane, said = page.locator("svg.plane"), page.locator("[data-said]")
    expect(said).to_contain_text("Simultaneous play arrives.")
    tab(page, plane)
    page.keyboard.press("ArrowUp")
    expect(said).to_contain_text("Moved to (1, 0.1).")
