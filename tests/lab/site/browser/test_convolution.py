"""The convolution lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

GREY = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data"


def greys(page, name):
    """The grey of each pixel of a picture."""
    return list(page.get_by_role("img", name=name, exact=True).evaluate(f"canvas => [...({GREY})(canvas)]")[::4])


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_kernel_is_drawn_by_mouse(visit, size, scheme):
    page = visit("/labs/convolution", size, scheme)
    said, kernel = page.locator("[data-said]"), page.get_by_role("application")
    expect(said).to_contain_text("The two are up to")
    before = greys(page, "correlation")
    page.get_by_role("button", name="Empty kernel").click()
    expect(said).to_contain_text("The kernel is the same turned around: so are the pictures.")
    box = kernel.bounding_box()
    side = box["width"] / 5
    kernel.click(position={"x": 0.5 * side, "y": 0.5 * side})
    expect(said).to_contain_text("Row 1, column 1 is 1. The two are up to")
    expect(kernel.locator("text").first).to_have_text("1")
    expect(page).to_have_url(re.compile("cells=1,0,0"))
    moved = greys(page, "correlation"), greys(page, "convolution")
    assert before != moved[0] != moved[1]
    shown = greys(page, "picture")
    assert moved[0][64 * 40 + 40] == shown[64 * 38 + 38]  # correlation looks up and to the left
    assert moved[1][64 * 40 + 40] == shown[64 * 42 + 42]  # convolution down and to the right
    page.get_by_role("button", name="Turn the kernel").click()
    expect(kernel.locator("text").last).to_have_text("1")
    expect(said).to_contain_text("The kernel is turned by half a turn.")
    assert (greys(page, "convolution"), greys(page, "correlation")) == moved
    page.get_by_role("button", name="Reset").click()
    expect(page).not_to_have_url(re.compile("cells="))
    assert greys(page, "correlation") == before


def test_a_kernel_is_drawn_by_keyboard(visit, tab):
    page = visit("/labs/convolution?kernel=laplace&picture=letter")
    said, kernel = page.locator("[data-said]"), page.get_by_role("application")
    expect(said).to_contain_text("so are the pictures. Grey is zero.")
    tab(page, kernel)
    for key in ("ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    expect(said).to_contain_text("Row 2, column 2: 0.")
    for key in ("+", "+", "+", "-"):
        page.keyboard.press(key)
    expect(said).to_contain_text("Row 2, column 2 is 2. The two are up to")
    page.keyboard.press(" ")
    expect(said).to_contain_text("Row 2, column 2 is −1.")
    expect(page).to_have_url(re.compile("cells="))
    stride = page.locator("#stride")
    stride.focus()
    stride.press("End")
    expect(page.locator("[data-size]")).to_have_text("16 × 16")
    expect(page.locator("[data-room]")).to_have_text("⌊(64 + 2·2 − 1·4 − 1) / 4⌋ + 1 = 16")
    expect(page).to_have_url(re.compile("cells=.*"))
    page.locator("#kernel").select_option("blur")
    expect(page).not_to_have_url(re.compile("cells="))


def test_an_address_brings_its_kernel_back(visit):
    cells = ",".join(["0"] * 24 + ["-2"])
    page = visit(f"/labs/convolution?cells={cells}&dilation=2&padding=4")
    expect(page.get_by_role("application").locator("text").last).to_have_text("−2")
    expect(page.locator("[data-size]")).to_have_text("64 × 64")
    expect(page.locator("#dilation")).to_have_value("1")
