"""The audit of a run, asked for by key and by mouse, read in light and dark, on a desk and on a phone."""

import json
import os
import subprocess
import sys

import pytest
from playwright.sync_api import expect
from tests.lab.site.browser.access import CONTRAST, figures, grave, ready, sideways

from lemmata.audit.report import AuditReport
from lemmata.lab.site.audit_page import audit_page

RUN = "mlp-moons-1"


@pytest.fixture(scope="module")
def trained(verdicts):
    """A small run where the page keeps its own."""
    folder = verdicts / "runs" / RUN
    words = ["--data", "moons", "--widths", "8", "--epochs", "2", "--device", "cpu", "--quiet", "--out", str(folder)]
    env = os.environ | {"LEMMATA_CACHE": str(verdicts), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "lemmata", "train", "mlp", *words], env=env, check=True, capture_output=True)
    return folder


def open_to_everyone(page, axe, size):
    """With every figure's data unfolded: nothing grave by axe-core, in light and in dark, and nothing sticks out."""
    ready(page)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert grave(page, axe) == []
    assert figures(page) == []
    page.emulate_media(color_scheme="dark")
    assert grave(page, axe, CONTRAST) == []
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)
    ready(page)
    assert sideways(page) == ""
    assert grave(page, axe) == []


def test_a_run_is_audited_by_keyboard_and_read_everywhere(visit, tab, trained, axe, browser):
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
    again = visit(f"/runs/{RUN}/audit")
    expect(again.get_by_role("heading", name="As theory wants it")).to_be_visible()
    phone = {"width": 390, "height": 800}
    open_to_everyone(again, axe, phone)
    # The same findings as the file that `lemmata audit --out` writes.
    found = AuditReport.from_json(json.loads((trained / "audit.json").read_text(encoding="utf-8")))
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    file = context.new_page()
    file.set_content(audit_page(found))
    open_to_everyone(file, axe, phone)
    file.emulate_media(media="print")
    assert file.get_by_role("heading", name="As theory wants it").is_visible()
    context.close()


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
