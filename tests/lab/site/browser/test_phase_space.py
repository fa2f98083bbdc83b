"""The phase space lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_scheme_is_chosen_by_mouse(visit, size, scheme):
    page = visit("/labs/phase_space?step=0.5", size, scheme)
    said = page.locator("[data-said]")
    expect(said).to_contain_text("The leapfrog's energy is never more than 1 times the first")
    page.get_by_label("BAOAB", exact=True).check()
    expect(page).to_have_url(re.compile("scheme=baoab"))
    expect(page.locator("[data-variance]")).to_have_text("1")
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("[data-out=step]")).to_have_text("0.3")


def test_the_step_is_moved_beyond_two_by_keyboard(visit, tab):
    page = visit("/labs/phase_space?step=1.95")
    said, step = page.locator("[data-said]"), page.locator("#step")
    expect(said).to_contain_text("never more than 1 times the first")
    tab(page, step)
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator("[data-out=step]")).to_have_text("2.05")
    expect(said).to_contain_text("The leapfrog flies away, too")
    expect(said).to_contain_text("settles nowhere")
