"""The lab of infinite width, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_missing_start_is_seen_by_mouse(visit, size, scheme):
    page = visit("/labs/width?power=9", size, scheme)
    said = page.locator("[data-said]")
    expect(said).to_contain_text("512 units")
    expect(said).to_contain_text("right at the data")
    page.get_by_label("zero, as printed").check()
    expect(page).to_have_url(re.compile("start=no"))
    expect(said).to_contain_text("At the data the prediction is wrong")
    page.get_by_label("the network as drawn").check()
    expect(said).to_contain_text("right at the data")
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("32 units")


def test_the_width_is_moved_by_keyboard(visit, tab):
    page = visit("/labs/width")
    said, power = page.locator("[data-said]"), page.locator("#power")
    expect(said).to_contain_text("32 units")
    tab(page, power)
    page.keyboard.press("Home")
    expect(said).to_have_text(re.compile("^2 units"))
    wider = page.get_by_role("button", name="Twice as wide")
    wider.focus()
    page.keyboard.press("Enter")
    expect(said).to_have_text(re.compile("^4 units"))
    expect(page).to_have_url(re.compile("power=2"))
