"""The lab of diffusion, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_printed_sampler_misses_the_variance(visit, size, scheme):
    page = visit("/labs/diffusion", size, scheme)
    said, variance = page.locator("[data-said]"), page.locator("[data-variance]")
    expect(said).to_contain_text("The right sampler: variance")
    expect(page.locator("[data-wanted]")).to_have_text("0.25")
    page.get_by_label("Sampler", exact=True).select_option("spread")
    expect(said).to_contain_text("as printed")
    expect(variance).to_have_text(re.compile(r"^[5-9]\.\d+$"))
    expect(page).to_have_url(re.compile("sampler=spread"))
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("The right sampler")


def test_noise_and_data_are_chosen_by_keyboard(visit, tab):
    page = visit("/labs/diffusion")
    slider = page.get_by_label(re.compile("Fresh noise"))
    tab(page, slider)
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile("eta=0"))
    page.get_by_label("two bumps").check()
    expect(page.locator("[data-said]")).to_contain_text("of 400 particles")
    expect(page.locator("[data-figure=paths] svg").first).to_be_visible()
