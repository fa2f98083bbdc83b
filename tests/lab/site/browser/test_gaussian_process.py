"""The lab of Gaussian processes, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_points_are_placed_moved_and_explained_by_mouse(visit, size, scheme):
    page = visit("/labs/gaussian_process", size, scheme)
    plane, said, dots = page.locator("svg.plane"), page.locator("[data-said]"), page.locator("svg.plane [data-index]")
    expect(dots).to_have_count(5)
    expect(plane.locator(".old-line")).to_have_count(3)
    expect(said).to_contain_text("5 points; the band reaches")
    mean = plane.locator(".line").get_attribute("d")
    box = plane.bounding_box()
    plane.click(position={"x": 0.9 * box["width"], "y": 0.2 * box["height"]})
    expect(dots).to_have_count(6)
    expect(said).to_contain_text("A point at (4.25, 3.13). 6 points")
    expect(plane.locator(".line")).not_to_have_attribute("d", mean)
    expect(page).to_have_url(re.compile("points="))
    page.get_by_role("button", name="Most likely").click()
    expect(said).to_contain_text("The most likely of the landscape.")
    reached = page.locator("[data-likelihood]").inner_text()
    expect(page.locator("[data-best]")).to_contain_text(f"at most {reached}")
    page.get_by_label("removes one").check()
    plane.click(position={"x": 0.9 * box["width"], "y": 0.2 * box["height"]})
    expect(said).to_contain_text("Removed the point at (4.25, 3.13)")
    page.get_by_role("button", name="Clear").click()
    expect(said).to_contain_text("No data: these functions are of the prior.")
    page.get_by_role("button", name="Reset").click()
    expect(dots).to_have_count(5)
    expect(page).not_to_have_url(re.compile("points="))


def test_points_are_placed_and_removed_by_keyboard(visit, tab):
    page = visit("/labs/gaussian_process")
    plane, said, dots = page.locator("svg.plane"), page.locator("[data-said]"), page.locator("svg.plane [data-index]")
    expect(dots).to_have_count(5)
    tab(page, plane)
    for key in ("ArrowRight", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expect(said).to_contain_text("(0.5, 1)")
    page.keyboard.press("Enter")
    expect(dots).to_have_count(6)
    expect(said).to_contain_text("A point at (0.5, 1). 6 points")
    page.keyboard.press("Delete")
    expect(dots).to_have_count(5)
    samples = page.locator("#samples")
    samples.focus()
    samples.press("End")
    expect(plane.locator(".old-line")).to_have_count(5)
    page.get_by_label("Kernel").select_option("linear")
    expect(page).to_have_url(re.compile("kernel=linear"))
