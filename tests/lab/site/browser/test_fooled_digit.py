"""The digit lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_digit_is_changed_by_mouse_and_defences_are_seen_through(visit, size, scheme):
    page = visit("/labs/fooled_digit", size, scheme)
    said, digit = page.locator("[data-said]"), page.get_by_role("application")
    expect(said).to_contain_text("This 3 is read rightly: projected gradients make it")
    expect(page.locator("[data-flags]")).to_have_text("No sign of sham robustness.")
    box = digit.bounding_box()
    digit.click(position={"x": box["width"] * 0.7 / 8.4, "y": box["height"] * 0.7 / 8.4})
    expect(said).to_contain_text("Row 1, column 1 is turned over. This 3 is read")
    expect(page).to_have_url(re.compile("pixels=8000000000000000"))
    page.get_by_role("button", name="Undo pixels").click()
    expect(page).not_to_have_url(re.compile("pixels="))
    page.get_by_label("rounding to sixteenths").check()
    expect(page.locator("[data-flags]")).to_contain_text("zero gradients")
    expect(page.locator("[data-flags]")).to_contain_text("black box beats white box")
    expect(said).to_contain_text("projected gradients fail")
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("[data-flags]")).to_have_text("No sign of sham robustness.")


def test_a_digit_is_changed_by_keyboard(visit, tab):
    page = visit("/labs/fooled_digit?digit=7&eps=0")
    said, digit = page.locator("[data-said]"), page.get_by_role("application")
    expect(said).to_have_text("This 7 is read rightly, and both attacks fail.")
    tab(page, digit)
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Row 4, column 5:")
    page.keyboard.press(" ")
    expect(said).to_contain_text("Row 4, column 5 is turned over.")
    expect(page).to_have_url(re.compile("pixels=0000000800000000"))
    turn = page.locator("#turn")
    turn.focus()
    turn.press("End")
    expect(page.locator("[data-out=turn]")).to_have_text("60")
    expect(page).to_have_url(re.compile("turn=60"))
    page.locator("#digit").select_option("1")
    expect(page).not_to_have_url(re.compile("pixels="))
