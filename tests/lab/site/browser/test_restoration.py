"""The restoration lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_blur_is_undone_by_mouse(visit, size, scheme):
    page = visit("/labs/restoration", size, scheme)
    said, after = page.locator("[data-said]"), page.locator("[data-after]")
    expect(said).to_contain_text("nearer to the photograph than the blurred one")
    before = after.inner_text()
    page.get_by_label("left out").check()
    expect(page).to_have_url(re.compile("conjugate=no"))
    expect(after).to_have_text(before)  # an even kernel has a real spectrum
    page.get_by_label("its start").check()
    expect(said).to_contain_text("farther from the photograph")
    page.get_by_label("as it should be").check()
    expect(said).to_contain_text("nearer to the photograph")
    page.locator("#photo").select_option("cat")
    expect(page).to_have_url(re.compile("photo=cat"))
    page.get_by_role("button", name="Reset").click()
    expect(after).to_have_text(before)
    expect(page.locator("[data-canvas]")).to_have_count(4)


def test_the_balance_is_moved_by_keyboard(visit, tab):
    page = visit("/labs/restoration?way=15")
    said, power = page.locator("[data-said]"), page.locator("#power")
    expect(said).to_contain_text("decibels")
    tab(page, power)
    page.keyboard.press("Home")
    expect(page.locator("[data-out=power]")).to_have_text(re.compile("^[-−]6"))
    expect(said).to_contain_text("farther from the photograph")
    best = page.get_by_role("button", name="Best balance")
    best.focus()
    page.keyboard.press("Enter")
    expect(said).to_contain_text("nearer to the photograph")
    expect(page).not_to_have_url(re.compile("power=-6"))
