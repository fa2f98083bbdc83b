"""What makes a page open to everyone, asked of a page in a real browser."""

from playwright.sync_api import expect

GRAVE = ("serious", "critical")
CONTRAST = ["color-contrast", "link-in-text-block"]  # what another colour scheme can change


# Fonts and a frame; a page that draws no frame must not hold the test for ever, since evaluate knows no limit.
SETTLED = """() => Promise.race([
  document.fonts.ready.then(() => new Promise((shown) => requestAnimationFrame(() => shown()))),
  new Promise((waited) => setTimeout(waited, 5000)),
])"""


def ready(page):
    """Wait for what a page fetches after it is shown: a form, a lab's first picture."""
    expect(page.locator("main .waiting")).to_have_count(0)
    page.evaluate(SETTLED)


def grave(page, axe, rules=None):
    """What axe-core calls serious or critical, as readable lines."""
    page.evaluate(axe)  # through the debugger, which the page's policy does not bind
    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    found = page.evaluate("options => axe.run(document, { resultTypes: ['violations'], ...options })", options)
    return [
        f"{page.url} {each['id']}: {node['target']} {node.get('failureSummary', '')}"
        for each in found["violations"]
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


def sideways(page):
    """By how many pixels a page is wider than the window, and what sticks out."""
    return page.evaluate(
        """() => {
            const root = document.documentElement;
            return root.scrollWidth > root.clientWidth ? `${location.pathname}: ${root.scrollWidth} px` : "";
        }"""
    )


def figures(page):
    """What each figure of a page lacks."""
    return page.evaluate(
        """() => [...document.querySelectorAll("figure.figure")].flatMap((figure) => {
            const lacks = [];
            for (const svg of figure.querySelectorAll("svg")) {
                if (!svg.querySelector("title")?.textContent.trim()) lacks.push("title");
                if (!svg.querySelector("desc")?.textContent.trim()) lacks.push("description");
                if (svg.getAttribute("role") !== "img") lacks.push("role");
            }
            if (!figure.querySelector("svg")) lacks.push("drawing");
            if (figure.querySelectorAll("figcaption table tbody tr").length < 1) lacks.push("data table");
            const links = [...figure.querySelectorAll("figcaption a[download]")].map((a) => a.textContent.trim());
            if (links.join(" ") !== "CSV SVG") lacks.push(`CSV and SVG, has ${links}`);
            return lacks.map((what) => `${location.pathname}: ${what}`);
        })"""
    )
