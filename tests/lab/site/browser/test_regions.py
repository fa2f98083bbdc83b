"""The regions lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_lines_are_dragged_added_and_removed_by_mouse(visit, size, scheme):
    page = visit("/labs/regions?points=0.5,0;-0.5,0", size, scheme)
    plane, count = page.locator("svg.plane"), page.locator("[data-count]")
    areas = plane.locator(".ground path")
    expect(areas).to_have_count(3)  # two parallel lines
    plane.scroll_into_view_if_needed()

    def at(x, y):
        box = plane.bounding_box()
        return box["x"] + box["width"] * (x + 1.05) / 2.1, box["y"] + box["height"] * (1.05 - y) / 2.1

    page.mouse.move(*at(-0.5, 0))
    page.mouse.down()
    page.mouse.move(*at(-0.1, 0.5), steps=5)
    page.mouse.up()
    expect(count).to_have_text("4")
    expect(page.locator("[data-said]")).to_contain_text("Moved: line")
    page.mouse.click(*at(0.2, 0.2))
    expect(count).to_have_text("7")
    expect(page.locator("[data-compared]")).to_contain_text("3 lines cut the whole plane into at most 7 regions.")
    expect(page).to_have_url(re.compile("points="))
    page.get_by_label("folding, as many units a layer").check()
    expect(plane.locator("[data-index]")).to_have_count(0)
    page.get_by_role("button", name="Reset").click()
    expect(count).to_have_text("13")
    expect(page).not_to_have_url(re.compile("points="))


def test_lines_are_moved_by_keyboard_and_layers_added(visit, tab):
    page = visit("/labs/regions?points=0.5,0;-0.5,0")
    plane, said, count = page.locator("svg.plane"), page.locator("[data-said]"), page.locator("[data-count]")
    expect(plane.locator("[data-index]")).to_have_count(2)
    tab(page, plane)
    page.keyboard.press("n")
    expect(said).to_contain_text("Line 2 of 2: line 0.5 from the middle, at 180°")
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile(r"-0.5(,|%2C)0.05"))
    page.keyboard.press("+")
    expect(plane.locator("[data-index]")).to_have_count(3)
    page.keyboard.press("Delete")
    expect(plane.locator("[data-index]")).to_have_count(2)
    layers = page.locator("#layers")
    layers.focus()
    layers.press("End")
    expect(page.locator("[data-compared]")).to_contain_text("4 layers of 2 units")
    expect(count).not_to_have_text("3")
