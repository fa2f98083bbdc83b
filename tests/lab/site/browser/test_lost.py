"""A server that is gone, and a link that was passed on: what a page says to who cannot do anything."""

import re

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect
from tests.lab.site.browser.conftest import enter


def test_a_training_whose_server_is_killed_says_so(browser, fresh):
    lab = enter(fresh, browser)
    context = browser.new_context(base_url=lab.address, storage_state=lab.state)
    page = context.new_page()
    page.goto("/systems/mlp?data=moons&epochs=5000")
    page.locator("[data-train-start]").click()
    state = page.locator("[data-run-state]")
    expect(state).to_have_text("training")
    lab.process.kill()
    expect(state).to_contain_text("Connection lost")
    expect(page.locator("[data-run-stop]")).to_be_disabled()
    context.close()


def test_a_shared_link_without_the_key_shows_the_shared_version(visit):
    page = visit("/claim/hopfield.energy?lie=0&at=40", entered=False)
    stage = page.locator("[data-stage]")
    expect(stage.locator("[data-probe-verdict]")).to_have_text(re.compile("rejected"))
    expect(stage.locator("[data-probe-whose]")).to_have_text("This version")
    expect(stage.locator("[data-dial=quadratic]").first).to_have_text("0.5")
    expect(stage.locator("form[data-probe]:visible input[type=range]")).to_be_disabled()
    expect(stage.locator("form[data-probe]:visible output")).to_have_text("0.5")


def test_a_shared_lab_without_the_key_shows_the_shared_state(visit):
    page = visit("/labs/depth?gain=1.5", entered=False)
    expect(page.locator(".note").first).to_contain_text("the state of its address")
    expect(page.locator("[data-out=gain]")).to_have_text("1.5")
    expect(page.locator("[data-said]")).to_contain_text(re.compile("explode|grow", re.I))
