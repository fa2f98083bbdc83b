"""The race lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_start_is_dragged_racers_chosen_and_the_limit_crossed(visit, size, scheme):
    page = visit("/labs/race", size, scheme)
    plane, lanes, said = page.locator("svg.plane"), page.locator("[data-lanes] li"), page.locator("[data-said]")
    expect(lanes).to_have_count(4)
    expect(said).to_contain_text("2/L is 0.1")
    expect(plane.locator(".trail")).to_have_count(4)
    plane.scroll_into_view_if_needed()

    def at(x, y):
        box = plane.bounding_box()
        return box["x"] + box["width"] * (x + 1.05) / 2.1, box["y"] + box["height"] * (1.05 - y) / 2.1

    page.mouse.click(*at(0.5, 0.5))
    expect(said).to_contain_text("From here they start.")
    expect(page).to_have_url(re.compile(r"x=2\.\d+&y=2\.\d+"))
    page.get_by_label("Adam", exact=True).uncheck()
    expect(lanes).to_have_count(3)
    expect(page).to_have_url(re.compile("racers=descent,heavy,nesterov"))
    share = page.locator("#share")
    share.focus()
    share.press("End")
    expect(said).to_contain_text("flew off")
    expect(plane.locator(".burst").first).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    expect(lanes).to_have_count(4)
    expect(page).not_to_have_url(re.compile("racers="))
    page.locator("#place").select_option("network")
    expect(plane.locator(".begin")).to_have_count(0)
    expect(page).to_have_url(re.compile("place=network"))


def test_the_race_is_run_by_keyboard(visit, tab):
    page = visit("/labs/race?racers=descent")
    plane, step, lane = page.locator("svg.plane"), page.locator("[data-now]"), page.locator("[data-lanes] li")
    expect(lane).to_contain_text("1. at")
    page.get_by_role("button", name="To the start").press("Enter")
    expect(step).to_have_text("0")
    expect(lane).to_contain_text("100 %")
    page.get_by_role("button", name="One step").press("Enter")
    expect(step).to_have_text("1")
    expect(page).to_have_url(re.compile("at=1"))
    tab(page, plane)
    page.keyboard.press(" ")
    expect(step).to_have_text("80", timeout=15_000)
    expect(lane).to_contain_text("1. at")
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile("x=-4&y=1.87"))
    page.get_by_label("descent", exact=True).focus()
    page.keyboard.press(" ")
    expect(lane).to_have_count(1)  # one must run
