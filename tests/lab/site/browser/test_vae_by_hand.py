"""The lab of a VAE by hand, by mouse and by keyboard."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_q_is_moved_and_the_evidence_stands_still(visit, size, scheme):
    page = visit("/labs/vae_by_hand", size, scheme)
    evidence, gap, said = (page.locator(f"[data-{name}]") for name in ("evidence", "gap", "said"))
    expect(gap).to_have_text("5.12")
    expect(evidence).to_have_text("−1.9")
    page.get_by_role("button", name="The best q").click()
    expect(said).to_contain_text("nothing is missed")
    expect(evidence).to_have_text("−1.9")
    expect(page).to_have_url(re.compile("mean=1"))
    page.get_by_role("button", name="q = prior").click()
    expect(said).to_contain_text("less a divergence of 0 from the prior")
    page.get_by_label("x = z² − 1 + noise").check()
    expect(said).to_contain_text(re.compile("the best normal q misses 0.7"))
    expect(page.locator("[data-figure] svg:visible")).to_have_count(3)


def test_q_is_moved_by_keyboard(visit, tab):
    page = visit("/labs/vae_by_hand?mean=1.1&spread=0.5")
    expect(page.locator("[data-said]")).to_contain_text("nothing is missed")
    slider = page.get_by_role("slider", name="Spread of q")
    tab(page, slider)
    page.keyboard.press("Home")
    expect(page.locator("[data-said]")).to_contain_text("nats are missed")
    expect(page).to_have_url(re.compile("spread=0.1"))
