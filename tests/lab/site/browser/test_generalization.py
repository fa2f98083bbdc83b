"""The labs of the chapter generalization, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_points_are_shattered_by_mouse(visit, size, scheme):
    page = visit("/labs/shattering", size, scheme)
    said, words = page.locator("[data-said]"), page.locator("[data-compared]")
    expect(words).to_have_text("shattered")
    buttons = page.locator("[data-labellings] button")
    expect(buttons).to_have_count(8)
    buttons.nth(5).click()
    expect(said).to_have_text("A line says yes no yes.")
    expect(page).to_have_url(re.compile("shown=5"))
    box = page.locator(".plane").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])  # a fourth one, among the others
    expect(words).to_have_text("no 4 points have more than 14")
    expect(buttons).to_have_count(16)
    expect(page.locator("[data-labellings] .missing")).to_have_count(2)
    page.get_by_label("boxes", exact=True).check()
    expect(said).to_contain_text("box says")
    page.get_by_role("button", name="Reset").click()
    expect(words).to_have_text("shattered")


def test_a_point_is_dragged_onto_a_line(visit):
    page = visit("/labs/shattering?points=-0.5,0;0.5,0;0,0.5&shown=6", "desktop", "light")
    expect(page.locator("[data-count]")).to_have_text("8")
    box = page.locator(".plane").bounding_box()
    assert box is not None
    place = lambda x, y: (box["x"] + (x + 1.05) / 2.1 * box["width"], box["y"] + (1.05 - y) / 2.1 * box["height"])  # noqa: E731
    page.mouse.move(*place(0, 0.5))
    page.mouse.down()
    page.mouse.move(*place(0, 0.2), steps=4)
    page.mouse.move(*place(0, 0), steps=4)
    page.mouse.up()
    expect(page.locator("[data-count]")).to_have_text("6")
    expect(page.locator("[data-said]")).to_have_text("Moved: point 3 at 0, 0. No line says yes yes no.")


def test_points_are_shattered_by_keyboard(visit, tab):
    page = visit("/labs/shattering")
    said, plane = page.locator("[data-said]"), page.locator(".plane")
    tab(page, plane)
    page.keyboard.press("n")
    expect(said).to_contain_text("Chosen: point 2")
    page.keyboard.press("ArrowUp")
    expect(said).to_contain_text("Moved: point 2 at 0.5, −0.15")
    page.keyboard.press("+")
    expect(page.locator("[data-every]")).to_have_text("16")
    page.keyboard.press("Delete")
    expect(page.locator("[data-every]")).to_have_text("8")
    last = page.locator("[data-labellings] button").last
    tab(page, last)
    page.keyboard.press("Enter")
    expect(said).to_have_text("A line says yes yes yes.")
    expect(page.locator("[data-labellings] button").last).to_be_focused()


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_risk_descends_twice_by_mouse(visit, size, scheme):
    page = visit("/labs/double_descent?p=20", size, scheme)
    said = page.locator("[data-said]")
    expect(said).to_contain_text("At the interpolation threshold. The fit goes through every example")
    expect(page.locator("[data-expected]")).to_have_text("∞")
    page.get_by_label("Ridge of the fits").select_option("best")
    expect(said).to_contain_text("The ridge keeps the fit from going through every example")
    expect(page.locator('[data-figure="risk"]')).to_contain_text("fits, best ridge")
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("20 parameters beyond the threshold")


def test_the_threshold_is_crossed_by_keyboard(visit, tab):
    page = visit("/labs/double_descent?p=22&noise=1")
    said, slider = page.locator("[data-said]"), page.locator("#p")
    expect(said).to_contain_text("2 parameters beyond the threshold")
    tab(page, slider)
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("At the interpolation threshold")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("2 parameters below the threshold. The fit misses examples")
    expect(page.locator("[data-expected]")).not_to_have_text("∞")
