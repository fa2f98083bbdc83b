"""The backpropagation lab, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_both_sweeps_are_stepped_through_by_mouse(visit, size, scheme):
    page = visit("/labs/backpropagation", size, scheme)
    chain, said = page.locator("svg.chain"), page.locator("[data-said]")
    forward = page.get_by_role("button", name="Next step")
    expect(chain.locator(".value")).to_have_count(2)  # the inputs
    for count in (5, 8, 10, 12, 13):
        forward.click()
        expect(chain.locator(".value")).to_have_count(count)
    expect(chain.locator(".delta")).to_have_count(0)
    for count in (1, 3, 5, 8, 11, 13):
        forward.click()
        expect(chain.locator(".delta")).to_have_count(count)
    expect(said).to_contain_text("All gradients are known")
    expect(page.locator("[data-off]")).to_contain_text("Autograd’s gradients")
    expect(chain.locator(".edge.known")).to_have_count(20)
    page.get_by_role("button", name="To the start").click()
    expect(chain.locator(".value")).to_have_count(2)
    page.get_by_role("button", name="Play").click()  # at once, for a reader who wants no motion
    expect(chain.locator(".delta")).to_have_count(13)
    expect(page).to_have_url(re.compile("at=11"))


def test_a_weight_is_chosen_and_the_network_learns(visit):
    page = visit("/labs/backpropagation?at=11")
    chain, chosen, loss = page.locator("svg.chain"), page.locator("[data-chosen]"), page.locator("[data-loss]")
    expect(chosen).to_contain_text("W₁,11 = ")
    # In the middle of its edge, where no other is.
    edge = chain.locator('[data-weight="18"] .grip')
    middle = "e.getPointAtLength(e.getTotalLength() / 2).matrixTransform(e.getScreenCTM())"
    place = edge.evaluate(f"e => {{ const p = {middle}; return [p.x, p.y]; }}")
    page.mouse.click(*place)
    expect(chosen).to_contain_text(re.compile("W₃,1[12] = .*: gradient δ\\(y\\) × a₂,[12] = "))
    expect(page).to_have_url(re.compile("weight="))
    before = loss.text_content()
    descents = page.locator("#descents")
    descents.focus()
    descents.press("End")
    expect(loss).not_to_have_text(before)
    expect(loss).to_have_text("0")
    expect(page).to_have_url(re.compile("descents=40"))
    page.get_by_role("button", name="Reset").click()
    expect(loss).to_have_text(before)
    expect(chosen).to_contain_text("W₁,11 = ")


def test_keys_step_and_choose(visit, tab):
    page = visit("/labs/backpropagation?at=6")
    chain, said = page.locator("svg.chain"), page.locator("[data-said]")
    expect(chain.locator(".delta")).to_have_count(1)
    tab(page, chain)
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("the gradient of W₃")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("Forwards: y = ")
    page.keyboard.press("ArrowUp")
    expect(said).to_contain_text("b₃,1 = ")
    expect(said).to_contain_text("its gradient comes in step 7")
    page.keyboard.press("ArrowDown")
    expect(said).to_contain_text("W₁,11")
    page.keyboard.press(" ")
    expect(chain.locator(".delta")).to_have_count(13)
    page.get_by_label("Activation").select_option("relu")
    expect(page).to_have_url(re.compile("activation=relu"))
