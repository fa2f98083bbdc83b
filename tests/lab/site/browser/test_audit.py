"""The audit of a run, asked for by key and by mouse, read in light and dark, on a desk and on a phone."""

import os
import subprocess
import sys

import pytest
from playwright.sync_api import expect

RUN = "mlp-moons-1"


@pytest.fixture(scope="module")
def trained(verdicts):
    """A small run where the page keeps its own."""
    folder = verdicts / "runs" / RUN
    words = ["--data", "moons", "--widths", "8", "--epochs", "2", "--device", "cpu", "--quiet", "--out", str(folder)]
    env = os.environ | {"LEMMATA_CACHE": str(verdicts), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "lemmata", "train", "mlp", *words], env=env, check=True, capture_output=True)
    return folder


def test_a_run_is_audited_by_keyboard_and_read_everywhere(visit, tab, trained):
    page = visit(f"/runs/{RUN}")
    page.get_by_role("link", name="Audit it").click()
    start = page.get_by_role("button", name="Audit this run")
    expect(start).to_be_visible()
    tab(page, start)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_text("It is done.")).to_be_visible()
    heading = page.get_by_role("heading", name="As theory wants it")
    expect(heading).to_be_visible()
    expect(page.locator(".audit-facts")).to_contain_text("MLP")
    claim = page.locator(".claim-name a").first
    if claim.count():
        assert page.request.get(claim.get_attribute("href")).status == 200
    for size, scheme in (("desktop", "dark"), ("phone", "light")):
        again = visit(f"/runs/{RUN}/audit", size, scheme)
        expect(again.get_by_role("heading", name="As theory wants it")).to_be_visible()
        assert again.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_audit_can_be_stopped(visit, trained):
    page = visit(f"/runs/{RUN}/audit")
    page.get_by_role("button", name="Audit").first.click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-audit-said]")).to_have_text("stopped")
    expect(page.locator("[data-audit-start]")).to_be_visible()


def test_a_run_that_is_not_there_is_said(visit):
    page = visit("/runs/mlp-moons-77/audit")
    expect(page.get_by_text("there is no such run")).to_be_visible()
    page.watch.complaints[:] = [line for line in page.watch.complaints if "404" not in line]
