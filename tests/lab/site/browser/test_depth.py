"""The depth lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_schemes_are_compared_by_mouse(visit, size, scheme):
    page = visit("/labs/depth", size, scheme)
    said = page.locator("[data-said]")
    expect(said).to_contain_text("Through 30 layers the signal")
    page.get_by_label("Initial weights").select_option("lecun")
    expect(said).to_contain_text("the signal vanishes, and so does the gradient")
    expect(page.locator("[data-signal]")).to_have_text(re.compile("^10⁻"))
    expect(page).to_have_url(re.compile("scheme=lecun"))
    page.get_by_label("Normalisation").select_option("batch")
    expect(said).not_to_contain_text("the signal vanishes")
    page.get_by_role("button", name="Reset").click()
    expect(page).not_to_have_url(re.compile("scheme="))
    expect(said).not_to_contain_text("vanishes")


def test_layers_are_added_by_keyboard(visit, tab):
    page = visit("/labs/depth?activation=identity&scheme=orthogonal")
    said, depth = page.locator("[data-said]"), page.locator("#depth")
    tab(page, depth)
    page.keyboard.press("End")
    expect(page.locator("[data-out=depth]")).to_have_text("50")
    expect(said).to_contain_text("Through 50 layers the signal keeps about its size, and so does the gradient")
    expect(page.locator("[data-signal]")).to_have_text("1")
    page.keyboard.press("Home")
    expect(said).to_contain_text("Through 2 layers")
