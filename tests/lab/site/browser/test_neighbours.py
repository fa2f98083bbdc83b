"""Other users of the machine: what a server on another port gets from the browser, and what that is worth to them."""

import contextlib
import http.client
import http.server
import json
import re
import threading

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

from lemmata.lab.cli.serve import _write_doorway

ID = "hopfield.energy"


class Neighbour(http.server.ThreadingHTTPServer):
    """A server of somebody else on another port of this machine, which keeps all that it hears."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Listener)
        self.heard = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


class Listener(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.heard.append((self.path, dict(self.headers)))
        page = b"<!doctype html><title>neighbour</title><p>hello</p>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *words):
        pass


@pytest.fixture
def neighbour():
    with Neighbour() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(lab, method, path, **headers):
    host = lab.address.removeprefix("http://")
    with contextlib.closing(http.client.HTTPConnection(host, timeout=60)) as connection:
        given = {"content-type": "application/json"} | headers
        connection.request(method, path, b"{}" if method == "POST" else None, given)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_a_server_on_another_port_gets_nothing_that_is_worth_anything(browser, lab, neighbour):
    context = browser.new_context(storage_state=lab.state)
    page = context.new_page()
    page.goto(f"{lab.address}/claim/{ID}")
    token = page.evaluate("localStorage.getItem('lemmata-token')")
    assert len(token) == 43
    page.goto(neighbour.address)
    page.evaluate("fetch('/more', { signal: AbortSignal.timeout(20000) }).then((answer) => answer.text())")
    assert page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie") == "{}{}"
    reached = page.evaluate(
        f"fetch('{lab.address}/systems/mlp/runs').then((answer) => answer.text()).catch(() => 'no')"
    )
    assert reached == "no"
    context.close()
    stolen = next(headers["Cookie"] for _, headers in neighbour.heard if "Cookie" in headers)  # so browsers are
    assert "lemmata-" in stolen
    assert token not in json.dumps(neighbour.heard)
    own = {"Cookie": stolen, "Origin": lab.address, "Sec-Fetch-Site": "same-origin"}
    for path in ("/systems/mlp/runs", "/runs/mlp-moons-1/panel", "/runs/mlp-moons-1/checkpoint"):
        assert ask(lab, "GET", path, **own)[0] == 403
    for path in (f"/claim/{ID}/judge", f"/claim/{ID}/probe", "/systems/mlp/train", "/runs/mlp-moons-1/resume"):
        assert ask(lab, "POST", path, **own)[0] == 403
    for path in ("/", f"/claim/{ID}", "/systems/mlp", "/open", "/open?key=x", "/runs/mlp-moons-1", "/labs/boundary"):
        status, text = ask(lab, "GET", path, **own)
        assert (status, token in text) == (200, False)


def test_the_file_that_the_lab_lets_the_browser_open_leads_to_a_page_with_buttons(
    browser, fresh, monkeypatch, tmp_path
):
    monkeypatch.setenv("HOME", str(tmp_path))
    context = browser.new_context()
    page = context.new_page()
    page.goto(_write_doorway(fresh.link).as_uri())
    page.wait_for_url(fresh.address + "/")
    expect(page.get_by_role("slider")).to_be_enabled()
    page.goto(f"{fresh.address}/claim/{ID}")
    page.get_by_role("button", name="Run the check again").click()
    expect(page.locator("[data-judge-status]")).to_have_text("just now: holds")
    again = context.new_page()  # another tab has the same rights
    again.goto(f"{fresh.address}/systems/mlp")
    expect(again.get_by_role("button", name="Train")).to_be_enabled()
    context.close()


def test_without_javascript_the_link_opens_pages_with_sliders(browser, fresh):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(fresh.link)
    page.wait_for_url(fresh.address + "/")
    expect(page.get_by_role("button", name="Run the check")).to_be_visible()
    context.close()


def test_the_plain_address_reads_and_says_how_to_open_the_link(browser, lab):
    context = browser.new_context()
    page = context.new_page()
    page.goto(lab.address)
    expect(page.get_by_text("open the link that lemmata serve printed")).to_be_visible()
    page.goto(f"{lab.address}/runs/mlp-moons-1")
    expect(page.locator("h1")).to_have_text("Not for this browser")
    expect(page.locator("main")).to_contain_text(re.compile("Open the link that lemmata serve printed"))
    context.close()


def test_a_browser_that_lost_its_token_is_told_to_open_the_link(browser, lab):
    context = browser.new_context(storage_state={"cookies": lab.state["cookies"], "origins": []})
    page = context.new_page()
    page.goto(f"{lab.address}/runs/mlp-moons-1")
    expect(page.locator("[data-run-panel]")).to_contain_text("open the link that lemmata serve printed")
    context.close()
