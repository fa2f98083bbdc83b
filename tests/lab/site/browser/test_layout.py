"""Nothing moves under a reader: how far a page shifts while it comes, measured by the browser."""

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect
from tests.lab.site.browser.access import ready

# A claim that was judged, and one of which nothing is known when the page comes.
PAGES = ["/", "/atlas", "/claim/perceptron.novikoff", "/claim/perceptron.xor", "/labs/convolution"]
MOST = 0.05
SHIFTS = """() => new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
})"""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_does_not_shift_while_it_comes(visit, path, measured):
    page = visit(path)
    shifts = []
    for _ in range(2):  # with nothing kept, and with fonts that the browser has
        ready(page)
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        shifts.append(page.evaluate(SHIFTS))
        page.reload()
    measured[f"layout shift of {path}"] = ", ".join(f"{shift:.3f}" for shift in shifts)
    assert max(shifts) < MOST
