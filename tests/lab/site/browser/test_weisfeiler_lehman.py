"""The Weisfeiler-Lehman lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_rounds_are_dragged_until_the_colours_part(visit, size, scheme):
    page = visit("/labs/weisfeiler_lehman?pair=hexanes&rounds=0", size, scheme)
    verdict, said, rounds = page.locator("[data-verdict]"), page.locator("[data-said]"), page.locator("#rounds")
    expect(verdict).to_have_text("not told apart yet")
    rounds.scroll_into_view_if_needed()
    box = rounds.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) / 3, y, steps=6)
    page.mouse.up()
    expect(page).to_have_url(re.compile("rounds=2"))
    expect(verdict).to_have_text("told apart")
    expect(said).to_contain_text("A comes 2 times on the left and 1 on the right")
    expect(page.locator("[data-kinds] tr")).to_have_count(8)
    expect(page.locator("[data-networks] tr").nth(0)).to_contain_text("yes")
    expect(page.locator("[data-networks] tr").nth(1)).to_contain_text("no")


def test_what_cannot_be_told_is_told_with_a_mark(visit, tab):
    page = visit("/labs/weisfeiler_lehman")
    verdict, said = page.locator("[data-verdict]"), page.locator("[data-said]")
    expect(verdict).to_have_text("not told apart")
    expect(said).to_contain_text("That proves nothing. In truth they differ: one is in one piece")
    tab(page, page.locator("#rounds"))
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("rounds=2"))
    expect(verdict).to_have_text("not told apart")
    page.get_by_label("one marked").check()
    expect(verdict).to_have_text("told apart")
    expect(said).to_contain_text("mark onto mark")
    page.get_by_role("button", name="Reset").click()
    expect(verdict).to_have_text("not told apart")
    expect(page).not_to_have_url(re.compile("start="))


def test_a_node_says_what_it_heard(visit, tab):
    page = visit("/labs/weisfeiler_lehman?pair=decalin&rounds=2")
    said, graphs = page.locator("[data-said]"), page.get_by_role("application")
    expect(graphs).to_have_count(2)
    graphs.nth(1).locator("circle").nth(0).click()
    expect(said).to_have_text("Node 1 on the right is B: it was B and its neighbours were A A B.")
    expect(graphs.nth(0).locator(".alike")).to_have_count(2)
    expect(graphs.nth(1).locator(".near")).to_have_count(3)
    tab(page, graphs.nth(0))
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text("Node 1 on the left is B: it was B and its neighbours were A A B.")
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text("Node 2 on the left is A: it was A and its neighbours were A B.")
    page.keyboard.press("Escape")
    expect(said).to_contain_text("After 2 rounds nothing splits any more")
    page.locator("#pair").select_option("star")
    expect(said).to_contain_text("A comes 0 times on the left and 3 on the right")


def test_both_graphs_are_told_to_who_does_not_see_them(visit):
    page = visit("/labs/weisfeiler_lehman?pair=star&rounds=1")
    label = "On the right, a star, its nodes coloured C A A A. Arrow keys go from node to node."
    expect(page.get_by_role("application").nth(1)).to_have_attribute("aria-label", label)
