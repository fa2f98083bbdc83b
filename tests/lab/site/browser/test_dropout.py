"""The dropout lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_units_are_dropped_by_mouse(visit, size, scheme):
    page = visit("/labs/dropout", size, scheme)
    said, boxes = page.locator("[data-said]"), page.locator("[data-unit]")
    expect(said).to_contain_text(
        "The network with 4 of 4 units counts 6.25 % of 16 networks. The scaled network is exactly their mean."
    )
    expect(boxes).to_have_count(4)
    boxes.nth(1).uncheck()
    expect(said).to_contain_text("Unit 2 is dropped. The network with 3 of 4 units counts 6.25 %")
    expect(page).to_have_url(re.compile("kept=1011"))
    page.locator("#output").select_option("probability")
    expect(said).to_contain_text("away from their mean")
    expect(page.locator("[data-gap]")).not_to_have_text("0")
    page.get_by_role("button", name="Draw a network").click()
    expect(said).to_contain_text("A network was drawn.")
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("The network with 4 of 4 units")
    expect(boxes.nth(1)).to_be_checked()
    expect(page).not_to_have_url(re.compile("kept="))


def test_units_are_dropped_by_keyboard(visit, tab):
    page = visit("/labs/dropout")
    said, boxes = page.locator("[data-said]"), page.locator("[data-unit]")
    expect(said).to_contain_text("of 16 networks")
    tab(page, boxes.nth(0))
    page.keyboard.press("Space")
    expect(said).to_contain_text("Unit 1 is dropped.")
    keep = page.locator("#keep")
    keep.focus()
    keep.press("End")
    expect(page.locator("[data-probability]")).to_have_text("0")  # a unit that is always kept is never dropped
    units = page.locator("#units")
    units.focus()
    units.press("ArrowLeft")
    expect(said).to_contain_text("of 8 networks")
    expect(boxes.nth(3)).to_be_disabled()


def test_an_address_brings_its_network_back(visit):
    page = visit("/labs/dropout?kept=0101&units=3&keep=0.8")
    expect(page.locator("[data-said]")).to_contain_text("The network with 1 of 3 units counts 3.2 % of 8 networks.")
    expect(page.locator("[data-unit]").nth(0)).not_to_be_checked()
    expect(page.locator("[data-unit]").nth(1)).to_be_checked()
