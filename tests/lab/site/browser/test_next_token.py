"""The next-token lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

TRAINED = 170_000  # milliseconds: whoever comes first waits for a small training


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_text_is_continued_by_mouse(visit, size, scheme):
    page = visit("/labs/next_token", size, scheme)
    said, text = page.locator("[data-said]"), page.locator("#text")
    expect(said).to_contain_text("70 characters can come", timeout=TRAINED)
    expect(page.locator("[data-more]")).not_to_have_text("–")
    page.get_by_role("button", name="Take the likeliest").click()
    expect(text).to_have_value(re.compile(r"^To be, or not to b.$"))
    expect(page).to_have_url(re.compile("text=To"))
    page.get_by_role("button", name="Go on").click()
    expect(text).to_have_value(re.compile(r"^.{40}$"))
    page.get_by_role("button", name="Delete one").click()
    expect(text).to_have_value(re.compile(r"^.{39}$"))
    page.get_by_role("button", name="Reset").click()
    expect(text).to_have_value("To be, or not to b")
    expect(page).not_to_have_url(re.compile("text="))


def test_a_text_is_typed_and_the_temperature_moved_by_keyboard(visit, tab):
    page = visit("/labs/next_token")
    said, text = page.locator("[data-said]"), page.locator("#text")
    expect(said).to_contain_text("can come", timeout=TRAINED)
    tab(page, text)
    page.keyboard.press("Control+a")
    page.keyboard.type("Enter ")
    expect(page).to_have_url(re.compile(r"text=Enter\+"))
    page.keyboard.type("@")
    expect(page.locator("[data-problem]")).to_contain_text("the plays have no '@'")
    page.keyboard.press("Backspace")
    expect(page.locator("[data-problem]")).to_be_hidden()
    page.watch.complaints[:] = [told for told in page.watch.complaints if "422" not in told]  # seen, and meant
    page.locator("#temperature").focus()
    page.keyboard.press("Home")
    expect(said).to_contain_text("Nothing is open; 1 character can come")
    expect(page).to_have_url(re.compile("temperature=0"))
