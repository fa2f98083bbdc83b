"""The positions lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_pairs_are_taken_apart_by_mouse_and_shifted_by_keys(visit, size, scheme):
    page = visit("/labs/positions", size, scheme)
    said, product = page.locator("[data-said]"), page.locator("[data-product]")
    expect(said).to_contain_text("A rotation brings every pair to its place after the shift.")
    shift = page.locator("#shift")
    shift.focus()
    shift.press("End")
    expect(page).to_have_url(re.compile("shift=20"))
    page.get_by_label("have one each").check()
    expect(said).to_contain_text("Rotations miss the shifted encoding by")
    expect(page).to_have_url(re.compile("columns=unpaired"))
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("A rotation brings every pair")
    page.locator("#position").focus()
    before = product.text_content() or ""
    page.locator("#position").press("End")
    expect(page).to_have_url(re.compile("position=39"))
    expect(product).to_have_text(before)  # it knows the distance alone
