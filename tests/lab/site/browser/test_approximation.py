"""The approximation lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_function_is_drawn_and_followed_by_mouse(visit, size, scheme):
    page = visit("/labs/approximation", size, scheme)
    plane, said = page.locator("svg.plane"), page.locator("[data-said]")
    expect(plane.locator("[data-index]")).to_have_count(9)
    expect(plane.locator(".line")).to_have_count(1)
    expect(said).to_contain_text("The network stays within")
    curve = plane.locator(".line").get_attribute("d")
    box = plane.bounding_box()
    plane.click(position={"x": 0.5 * box["width"], "y": 0.2 * box["height"]})
    expect(said).to_contain_text("f(0) = 0.6")
    expect(plane.locator(".line")).not_to_have_attribute("d", curve)
    expect(page).to_have_url(re.compile("heights="))
    page.get_by_label("Activation").select_option("square")
    expect(page.locator("[data-floor]")).to_contain_text("polynomials of degree 2: no width comes nearer than")
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("[data-floor]")).to_contain_text("some width reaches every error")
    expect(page).not_to_have_url(re.compile("heights="))


def test_a_function_is_drawn_by_keyboard(visit, tab):
    page = visit("/labs/approximation")
    plane, said = page.locator("svg.plane"), page.locator("[data-said]")
    expect(plane.locator("[data-index]")).to_have_count(9)
    tab(page, plane)
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Point 6 of 9: f(0.25) = 0.2")
    page.keyboard.press("ArrowUp")
    expect(said).to_contain_text("f(0.25) = 0.3")
    page.keyboard.press("Shift+ArrowDown")
    expect(said).to_contain_text("f(0.25) = 0.29")
    expect(page).to_have_url(re.compile("heights=0.8%2C0.6|heights=0.8,0.6"))
    units = page.locator("#hidden")
    units.focus()
    units.press("End")
    expect(page.locator("[data-out=hidden]")).to_have_text("128")
    expect(said).to_contain_text("The network stays within 0.0")
