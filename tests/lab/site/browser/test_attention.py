"""The attention lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

TRAINED = 170_000  # milliseconds: whoever comes first waits for a small training


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_text_is_typed_and_looked_at(visit, size, scheme):
    page = visit("/labs/attention", size, scheme)
    said, line = page.locator("[data-said]"), page.locator("[data-line] button")
    expect(said).to_contain_text("“,” looks most at", timeout=TRAINED)
    expect(line).to_have_count(20)
    page.locator("#text").fill("the th")
    expect(line).to_have_count(6)
    expect(said).to_contain_text("“h” looks most at")
    line.nth(1).click()
    expect(line.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(said).not_to_contain_text("ahead")
    expect(page).to_have_url(re.compile("text=the.th.*place=2"))
    page.get_by_label("everywhere").check()
    expect(said).to_contain_text("looks ahead")
    page.locator("#head").select_option("2.3")
    expect(page.locator("[data-figure=map]")).to_contain_text("Head 3 of block 2")
    page.get_by_role("button", name="Reset").click()
    expect(line).to_have_count(20)


def test_characters_are_chosen_by_keys(visit, tab):
    page = visit("/labs/attention?text=to+be")
    line = page.locator("[data-line] button")
    expect(line).to_have_count(5, timeout=TRAINED)
    tab(page, line.nth(0))
    page.keyboard.press("Enter")
    expect(line.nth(0)).to_have_attribute("aria-pressed", "true")
    expect(line.nth(0)).to_be_focused()
    expect(page.locator("[data-said]")).to_contain_text("“t” looks most at itself, and at nothing else.")
