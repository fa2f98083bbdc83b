"""The filters lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

COUNT = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, k) => k % 4 === 3 && value).length;
}"""


def ink(page, feature):
    """How much is painted on the canvas of a map."""
    return page.locator(f'[data-feature="{feature}"]').evaluate(COUNT)


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_digit_is_drawn_and_covered_by_mouse(visit, size, scheme):
    page = visit("/labs/filters", size, scheme)
    said, board = page.locator("[data-said]"), page.locator("svg.pixels")
    expect(said).to_contain_text("The drawing is taken for a 3")
    expect(page.locator("[data-feature]")).to_have_count(44)
    assert max(ink(page, f"conv1-{k}") for k in range(6)) > 50
    page.get_by_role("button", name="Blank picture").click()
    expect(said).to_contain_text("Nothing is drawn.")
    expect(board.locator(".ink")).to_have_count(0)
    box = board.bounding_box()
    for place in (0.2, 0.4, 0.6, 0.8):
        board.click(position={"x": 0.5 * box["width"], "y": place * box["height"]})
    expect(board.locator(".ink")).to_have_count(16)  # a pen of two by two cells
    expect(said).to_contain_text("Drawn. The drawing is taken for a")
    expect(page).to_have_url(re.compile("picture=[0-9a-f]{64}"))
    page.locator("#digit").select_option("5")
    expect(said).to_contain_text("The drawing is taken for a 5")
    page.get_by_role("button", name="Cover what matters most").click()
    expect(said).to_contain_text("Covered where it hurts most.")
    expect(board.locator(".turned").first).to_be_visible()
    expect(page).to_have_url(re.compile("size=4"))
    page.get_by_role("button", name="Reset").click()
    expect(said).to_contain_text("The drawing is taken for a 3")
    expect(board.locator(".turned")).to_have_count(0)


def test_maps_and_the_cover_are_moved_by_keyboard(visit, tab):
    page = visit("/labs/filters")
    said, looked = page.locator("[data-said]"), page.locator("[data-looked]")
    expect(said).to_contain_text("The drawing is taken for a 3")
    expect(looked).to_contain_text("Map 1 of the first convolution, 28 × 28")
    expect(page.locator("[data-weights] canvas")).to_have_count(1)
    page.locator('input[name="map"][value="pool1-5"]').focus()
    page.keyboard.press("ArrowRight")
    expect(looked).to_contain_text("Map 1 of the second convolution, 10 × 10")
    expect(page.locator("[data-weights] canvas")).to_have_count(6)
    cover = page.locator("#size")
    cover.focus()
    cover.press("End")
    expect(said).to_contain_text("With the cover")
    board = page.locator("svg.pixels")
    tab(page, board)
    before = board.locator(".ink").count()
    for key in ("ArrowUp",) * 7:
        page.keyboard.press(key)
    expect(said).to_contain_text("Row 2, column 9")
    page.keyboard.press("Space")
    expect(said).to_contain_text("Drawn.")
    expect(page).to_have_url(re.compile("picture="))
    assert board.locator(".ink").count() != before


def test_what_is_covered_is_not_lost(visit):
    page = visit("/labs/filters?digit=8&size=6&row=2&column=5")
    board, said = page.locator("svg.pixels"), page.locator("[data-said]")
    expect(said).to_contain_text("With the cover")
    hidden = board.locator(".turned").count()
    assert hidden > 0
    box = board.bounding_box()
    board.click(position={"x": 0.06 * box["width"], "y": 0.94 * box["height"]})
    expect(said).to_contain_text("Drawn.")
    expect(board.locator(".turned")).to_have_count(hidden)
    cover = page.locator("#size")
    cover.focus()
    cover.press("Home")
    expect(board.locator(".turned")).to_have_count(0)
