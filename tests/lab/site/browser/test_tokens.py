"""The tokens lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_text_is_typed_and_falls_into_pieces(visit, size, scheme):
    page = visit("/labs/tokens", size, scheme)
    said, pieces = page.locator("[data-said]"), page.locator("[data-pieces] span")
    expect(said).to_contain_text(re.compile(r"\d+ pieces, .* for a word, from a vocabulary of"))
    page.locator("#text").fill("to be")
    expect(pieces).to_have_text(["to", "be"])
    expect(said).to_contain_text("2 pieces, 1 for a word")
    expect(page).to_have_url(re.compile(r"text=to\+be|text=to%20be"))
    merges = page.locator("#merges")
    merges.focus()
    page.keyboard.press("Home")
    expect(pieces).to_have_text(["t", "##o", "b", "##e"])
    page.locator("#method").select_option("bytes")
    expect(pieces).to_have_text(["t", "o", "Ġ", "b", "e"])
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#text")).to_have_value("What dreames may come, when we haue shuffled off")
