"""The race lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_step_crosses_two_over_l_by_keyboard(visit, size, scheme):
    page = visit("/labs/race?rate_one=-1.01", size, scheme)
    rows, said = page.locator("[data-racers] tr"), page.locator("[data-said]")
    expect(rows).to_have_count(3)
    expect(said).to_contain_text("is below 2/L, 0.1.")
    expect(page.locator('[data-figure="arena"] svg').first).to_be_attached()
    slider = page.locator("#rate_one")
    slider.focus()
    slider.press("ArrowRight")
    expect(said).to_contain_text("is exactly 2/L, 0.1.")
    slider.press("ArrowRight")
    expect(said).to_contain_text("is beyond 2/L, 0.1.")
    page.locator("#steps").press("End")
    expect(rows.first).to_contain_text("diverged")
    expect(page).to_have_url(re.compile("rate_one=-0.99"))
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("is below 2/L")
    expect(page).not_to_have_url(re.compile("rate_one="))


def test_racers_and_places_are_chosen(visit):
    page = visit("/labs/race")
    rows, said = page.locator("[data-racers] tr"), page.locator("[data-said]")
    page.get_by_label("Second").select_option("none")
    expect(rows).to_have_count(2)
    page.get_by_label("First").select_option("nesterov")
    expect(rows.first).to_contain_text("Nesterov")
    page.get_by_label("Where", exact=True).select_option("network")
    expect(page.locator("#across")).to_be_disabled()
    expect(page.locator("#seed")).to_be_enabled()
    expect(page.locator('[data-figure="arena"]')).to_contain_text("What Nesterov learnt in 60 steps")
    page.get_by_label("First").select_option("sgd")
    expect(said).to_contain_text("2/L of the place where it ends")
