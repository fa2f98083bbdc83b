"""The graph filter lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_response_is_drawn_by_mouse(visit, size, scheme):
    page = visit("/labs/graph_filter", size, scheme)
    response, kept = page.get_by_role("application"), page.locator("[data-kept]")
    expect(kept).not_to_have_text("–")
    before = kept.inner_text()
    box = response.bounding_box()
    left, right = (box["x"] + box["width"] * share for share in (0.04, 0.96))
    top = box["y"] + box["height"] * 0.08  # where everything passes
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(right, top, steps=12)
    page.mouse.up()
    expect(page).to_have_url(re.compile("gains=10,10,10,10,10,10,10,10,10"))
    expect(kept).to_have_text("100 %")
    assert before != "100 %"
    page.get_by_role("button", name="Reset").click()
    expect(page).not_to_have_url(re.compile("gains="))
    expect(kept).to_have_text(before)


def test_a_response_is_drawn_by_keyboard(visit, tab):
    page = visit("/labs/graph_filter?response=all")
    said, response = page.locator("[data-said]"), page.get_by_role("application")
    expect(page.locator("[data-kept]")).to_have_text("100 %")
    tab(page, response)
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(said).to_contain_text("At frequency 0.5 the factor is 1.")
    page.keyboard.press("ArrowDown")
    expect(said).to_contain_text("At frequency 0.5 the factor is 0.9.")
    expect(page).to_have_url(re.compile("gains=10,10,9,10"))
    page.locator("#response").select_option("high")
    expect(page).not_to_have_url(re.compile("gains="))


def test_an_impulse_is_put_on_a_node(visit):
    page = visit("/labs/graph_filter?graph=ring&by=polynomial&degree=2")
    nodes = page.get_by_role("img", name=re.compile("The signal before"))
    expect(nodes).to_be_visible()
    nodes.locator("circle:not(.ground)").nth(7).click()
    expect(page).to_have_url(re.compile("signal=impulse.*node=7|node=7.*signal=impulse"))
    expect(page.locator("[data-said]")).to_contain_text("An impulse at node 7. The polynomial reaches 5 nodes.")
    degree = page.locator("#degree")
    degree.focus()
    degree.press("ArrowRight")
    expect(page.locator("[data-said]")).to_contain_text("The polynomial reaches 7 nodes.")


def test_an_address_brings_its_response_back(visit):
    page = visit("/labs/graph_filter?gains=0,0,0,0,0,0,0,0,10&graph=grid")
    expect(page.get_by_role("application").locator("circle title").last).to_have_text("At frequency 2 the factor is 1.")
    expect(page.locator("#graph")).to_have_value("grid")
