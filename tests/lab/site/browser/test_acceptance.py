"""The acceptance lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_printed_ratio_is_switched_on_by_mouse(visit, size, scheme):
    page = visit("/labs/acceptance", size, scheme)
    said = page.locator("[data-said]")
    expect(said).to_contain_text("On five states the chain has its target, exactly")
    page.get_by_label("of the move back, as printed").check()
    expect(page).to_have_url(re.compile("ratio=back"))
    expect(said).to_contain_text("off by up to 143/340, exactly")
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("has its target, exactly")


def test_a_lean_is_paid_back_by_keyboard(visit, tab):
    page = visit("/labs/acceptance")
    said, lean = page.locator("[data-said]"), page.locator("#lean")
    tab(page, lean)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("[data-out=lean]")).to_have_text("0.3")
    expect(said).to_contain_text("has its target, exactly")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("ratio=target"))
    expect(said).to_contain_text("off by up to")
