"""The sampling lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_signals_are_put_together_by_mouse(visit, size, scheme):
    page = visit("/labs/sampling", size, scheme)
    said = page.locator("[data-said]")
    expect(said).to_contain_text("3.5 samples for each wave: no replica reaches the band")
    page.get_by_label("Gaussians", exact=True).check()
    expect(page).to_have_url(re.compile("by=gaussian"))
    expect(page.locator('[data-figure="replicas"]')).to_contain_text("passed by the Gaussian")
    page.get_by_role("button", name="Reset").click()
    expect(page.locator('[data-figure="replicas"]')).to_contain_text("passed by the sinc")


def test_the_rate_is_moved_through_nyquist_by_keyboard(visit, tab):
    page = visit("/labs/sampling?rate=8.5")
    said, rate = page.locator("[data-said]"), page.locator("#rate")
    expect(said).to_contain_text("no replica reaches the band")
    tab(page, rate)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-out=rate]")).to_have_text("8")
    expect(said).to_contain_text("Only 2 samples for each wave: 4 waves look like 4 waves")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("4 waves look like 2 waves")
    expect(page.locator("[data-alias]")).to_have_text("2")
