"""The receptive field lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_layers_are_stacked_and_a_unit_is_clicked(visit, size, scheme):
    page = visit("/labs/receptive_field?stack=c3", size, scheme)
    picture, field, rows = page.locator("svg.field"), page.locator("[data-size]"), page.locator("[data-layers] tr")
    expect(field).to_have_text("3")
    page.get_by_role("button", name="+ pooling").click()
    expect(field).to_have_text("4")
    page.get_by_role("button", name="+ 3 × 3").click()
    expect(field).to_have_text("8")
    expect(rows).to_have_count(3)
    expect(page).to_have_url(re.compile(r"stack=c3\.p2\.c3$"))
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 4.5 / 48, box["y"] + box["height"] * 4.5 / 48)  # the first place
    expect(page.locator("[data-said]")).to_contain_text("Unit in row 1 of 20, column 1 of 20.")
    expect(page).to_have_url(re.compile(r"unit=0,0"))
    page.get_by_role("button", name="Remove layer 2").click()
    expect(field).to_have_text("5")
    page.get_by_label("random, with relu").check()
    expect(page).to_have_url(re.compile("weights=random"))
    page.get_by_role("button", name="Reset").click()
    expect(field).to_have_text("10")
    expect(page).not_to_have_url(re.compile("stack="))


def test_units_are_chosen_by_keyboard(visit, tab):
    page = visit("/labs/receptive_field?stack=c3.c3s2")
    picture, said, frame = page.locator("svg.field"), page.locator("[data-said]"), page.locator("svg.field .frame rect")
    expect(page.locator("[data-size]")).to_have_text("5")
    tab(page, picture)
    before = float(frame.get_attribute("x"))
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Unit in row 11 of 20, column 12 of 20.")
    expect(frame).to_have_attribute("x", f"{before + 2:g}")
    page.keyboard.press("Delete")
    expect(page.locator("[data-size]")).to_have_text("3")
    page.keyboard.press("Delete")
    expect(said).to_contain_text("One layer must stay.")
