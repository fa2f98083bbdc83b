"""What tests in a real browser share: one lab for all of them, and pages that are watched while they are used."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lemmata.lab.site.assets import MODULES

HERE = Path(__file__).parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing of the browser's own may be taken for ours; and what is not this machine has no address.
QUIET = "--no-sandbox --disable-background-networking --disable-component-update --disable-sync --disable-gpu".split()
QUIET += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
SECONDS = 60  # for anything at all, on a machine that does ten other things
JUDGED = ("hopfield.energy", "hopfield.hebb", "perceptron.novikoff", "perceptron.span")
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 800}}


MEASURED = pytest.StashKey[dict[str, str]]()


def pytest_collection_modifyitems(items):
    """The browser comes last: its driver keeps an event loop running, in which no other test could start its own."""
    items.sort(key=lambda item: HERE in item.path.parents)


@pytest.fixture(scope="session")
def measured(request):
    """Figures that the tests measure, told at the end: name -> text."""
    return request.config.stash.setdefault(MEASURED, {})


def pytest_terminal_summary(terminalreporter, config):
    for name, text in config.stash.get(MEASURED, {}).items():
        terminalreporter.write_line(f"{name}: {text}")


@pytest.fixture(scope="session")
def browser():
    """Chromium, driven by Playwright."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine")
    with driver.sync_playwright() as play:
        driver.expect.set_options(timeout=1000 * SECONDS)
        opened = play.chromium.launch(executable_path=program, args=QUIET)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe():
    """The rules of axe-core, as a script."""
    script = MODULES / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("axe-core is not installed: python -m lemmata.lab.site.assets --dev")
    return script.read_text(encoding="utf-8")


class Lab:
    """A `lemmata serve` of its own, and the cookie of whoever opened its link."""

    def __init__(self, command, cache):
        env = os.environ | {"LEMMATA_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=env, **pipes)
        clock = threading.Timer(SECONDS, self.process.kill)
        clock.start()
        lines = iter(self.process.stdout.readline, "")
        line = next((line for line in lines if "open at" in line), "")
        clock.cancel()
        assert line, self.process.stderr.read()
        self.link = re.search(r"\S+/open\?key=\S+", line).group()
        self.address = self.link.partition("/open")[0]
        self.state = None  # of the browser that opened the link, once it did

    def close(self):
        self.process.terminate()
        self.process.communicate(timeout=SECONDS)


def enter(lab, browser):
    """Open the printed link once; every context after that has its cookie and its token."""
    context = browser.new_context()
    watch = Watch(context)
    page = context.new_page()
    page.goto(lab.link)
    page.wait_for_url(lab.address + "/")
    assert watch.complaints == []
    lab.state = context.storage_state()
    context.close()
    return lab


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory, indices):
    """A cache in which a few claims were judged."""
    cache = tmp_path_factory.mktemp("lab")
    command = [sys.executable, "-m", "lemmata", "check", *JUDGED, "--jobs", "1"]
    done = subprocess.run(command, env=os.environ | {"LEMMATA_CACHE": str(cache)}, capture_output=True, text=True)
    assert f"{len(JUDGED)} claims hold" in done.stdout, done.stdout
    for index in indices:  # what judging so few has forgotten of the rest
        shutil.copy(index, cache)
    return cache


SERVE = [sys.executable, "-m", "lemmata", "serve", "--no-browser", "--offline", "--port", "0"]


@pytest.fixture(scope="session")
def lab(browser, verdicts):
    """The lab that all tests walk through."""
    made = Lab(SERVE, verdicts)
    yield enter(made, browser)
    made.close()


@pytest.fixture
def fresh(browser, verdicts):
    """A lab whose link nobody opened yet."""
    made = Lab(SERVE, verdicts)
    yield made
    made.close()


@pytest.fixture(scope="session")
def crowded(browser, verdicts):
    """A lab with 700 statements."""
    made = Lab([sys.executable, str(HERE / "crowd.py")], verdicts)
    yield enter(made, browser)
    made.close()


class Watch:
    """What a browser did while it was used: requests, messages of the console, errors of the pages."""

    def __init__(self, context):
        self.requests, self.complaints = [], []
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        context.on("console", self.hear)

    def hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.page and message.page.url})")

    def beyond(self, address):
        """Requests to anything but the lab itself."""
        parts = [urlsplit(url) for url in self.requests]
        return [
            part.geturl() for part in parts if part.scheme != "data" and f"{part.scheme}://{part.netloc}" != address
        ]


@pytest.fixture
def visit(browser, lab):
    """Make a page of the lab: visit(path, size="phone", scheme="dark", ...). At the end nothing may have gone wrong."""
    made = []

    def new(path="/", size="desktop", scheme="light", entered=True, of=None, **options):
        place = of or lab
        given = {"viewport": SIZES[size], "color_scheme": scheme, "reduced_motion": "reduce"}
        given |= {"storage_state": place.state} if entered else {}
        context = browser.new_context(base_url=place.address, **(given | options))
        context.set_default_timeout(1000 * SECONDS)
        watch = Watch(context)
        made.append((context, watch, place))
        page = context.new_page()
        page.watch = watch
        page.goto(path)
        return page

    yield new
    for context, watch, place in made:
        context.close()
        assert watch.complaints == []
        assert watch.beyond(place.address) == []


@pytest.fixture
def tab():
    """Press Tab until an element has the focus, as a reader without a mouse does."""

    def walk(page, target, most=150):
        for _ in range(most):
            page.keyboard.press("Tab")
            if target.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"Tab does not come to {target}")

    return walk
