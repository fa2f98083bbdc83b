"""The oversmoothing lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_depth_is_dragged_and_nodes_become_alike(visit, size, scheme):
    page = visit("/labs/oversmoothing", size, scheme)
    right, said = page.locator("[data-right]"), page.locator("[data-said]")
    expect(right).to_have_text("33 of 34")
    depth = page.locator("#depth")
    depth.scroll_into_view_if_needed()
    box = depth.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 6 + 4 * (box["width"] - 12) / 64, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, y, steps=12)
    page.mouse.up()
    expect(page).to_have_url(re.compile("depth=64"))
    expect(right).to_have_text("17 of 34")
    expect(said).to_contain_text("all nodes hear more of the officer")
    page.locator("#skip").select_option("initial")
    expect(right).to_have_text("33 of 34")
    expect(said).to_contain_text("no depth tells more")
    page.get_by_role("button", name="Reset").click()
    expect(page).not_to_have_url(re.compile("depth="))


def test_depth_is_changed_by_keyboard(visit, tab):
    page = visit("/labs/oversmoothing?depth=1")
    said = page.locator("[data-said]")
    expect(said).to_contain_text("After 1 layer 3 nodes have heard of neither")
    tab(page, page.locator("#depth"))
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-right]")).to_have_text("32 of 34")
    expect(page).to_have_url(re.compile("depth=2"))
    page.keyboard.press("Home")
    expect(said).to_contain_text("Nobody has heard of anything yet")


def test_play_comes_to_the_end_and_a_share_belongs_to_the_start(visit):
    page = visit("/labs/oversmoothing?graph=debian&depth=0")
    expect(page.locator("[data-right]")).to_have_text("2 of 57")
    page.get_by_role("button", name="Play").click()  # readers who want no motion come there at once
    expect(page.locator("[data-right]")).to_have_text("31 of 57")
    expect(page.locator("#depth")).to_have_value("64")
    expect(page.locator("#alpha")).to_be_disabled()
    page.locator("#skip").select_option("initial")
    expect(page.locator("#alpha")).to_be_enabled()


def test_playing_moves_layer_by_layer_and_can_be_paused(visit):
    page = visit("/labs/oversmoothing?depth=2", reduced_motion="no-preference")
    expect(page.locator("[data-right]")).to_have_text("32 of 34")
    page.get_by_role("button", name="Play").click()
    expect(page).to_have_url(re.compile("depth=([5-9]|[1-6][0-9])"))
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    at = page.locator("#depth").input_value()
    expect(page).to_have_url(re.compile(f"depth={at}$"))
    names = page.get_by_role("img", name=re.compile("each node by what it heard")).locator("title")
    expect(names.first).to_contain_text("instructor: heard more of the instructor")
