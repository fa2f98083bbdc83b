"""`lemmata serve` as a person meets it: a link, a page, Ctrl-C, and nothing left behind."""

import contextlib
import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from queue import SimpleQueue

import pytest

from lemmata.lab.cli import main
from lemmata.lab.cli.serve import _browse

SECONDS = 60  # for anything at all, on a machine that does ten other things


@pytest.fixture
def serve():
    """Start the command; give back the process, what it printed up to the link, and the port."""
    started = []

    def start(*words):
        command = [sys.executable, "-m", "lemmata", "serve", "--no-browser", "--offline", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        clock = threading.Timer(SECONDS, process.kill)
        clock.start()
        printed = []
        while not printed or "open at" not in printed[-1]:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            printed.append(line)
        clock.cancel()
        return process, "".join(printed), int(re.search(r":(\d+)/open", printed[-1]).group(1))

    yield start
    for process in started:
        process.kill()
        process.communicate()


def children(pid):
    """The children of the lab: one comes a moment after its link, the next when that one is ready."""
    never, found = threading.Event(), []
    for _ in range(SECONDS * 10):
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        found = [int(line.split()[0]) for line in listing.splitlines() if int(line.split()[1]) == pid]
        if found:
            break
        never.wait(0.1)
    assert found
    return found


def ask(port, path, **headers):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()


def raw(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(request)
        return int(connection.makefile("rb").readline().split()[1])


def test_the_link_opens_the_lab_and_ctrl_c_ends_it_with_its_children(serve, gone):
    process, printed, port = serve("--port", "0")
    path = re.search(r"(/open\?key=\S+)", printed).group(1)
    status, headers, _ = ask(port, path)
    assert status == 200
    cookie = dict(headers)["set-cookie"].partition(";")[0]
    assert ask(port, path)[0] == 403
    assert ask(port, path, Cookie=cookie)[0] == 200
    assert ask(port, "/", Host=f"localhost:{port}")[0] == 200
    below = children(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "a new link: http://127.0.0.1" in out
    assert err == "lemmata: stopped; what was finished is kept\n"
    assert all(map(gone, below))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_child_outlives_the_lab_however_it_ends(serve, gone, how):
    process, _, _ = serve("--port", "0")
    below = children(process.pid)
    process.send_signal(how)
    process.communicate(timeout=SECONDS)
    assert all(map(gone, below))


def test_what_the_parser_lets_through_the_guard_still_refuses(serve):
    _, _, port = serve("--port", "0")
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    assert raw(port, b"GET /static/x HTTP/1.1\r\n" + host + b"\r\n") == 404
    for request in (
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /static/../../app.py HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /static/%2e%2e/app.py HTTP/1.1\r\n" + host + b"\r\n",
        b"BREW / HTTP/1.1\r\n" + host + b"\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n",
        b"\0\1\2\3\r\n\r\n",
    ):
        assert 400 <= raw(port, request) < 500, request
    chance = random.Random(6)
    for _ in range(100):
        damaged = bytearray(b"GET /static/x HTTP/1.1\r\n" + host)
        for _ in range(chance.randrange(1, 9)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        assert 400 <= raw(port, bytes(damaged) + b"\r\n\r\n\r\n") < 500, damaged


def test_a_taken_port_gives_the_next_and_says_so(serve):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        _, printed, port = serve("--port", str(wanted))
        assert port != wanted
        assert printed.splitlines()[0] == f"port {wanted} is taken, so this lab is at {port}"


def test_the_lab_listens_on_this_machine_alone(serve):
    _, _, port = serve("--port", "0")
    own = {address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        if not address.startswith("127."):
            with socket.socket() as other:
                other.settimeout(5)
                assert other.connect_ex((address, port)) != 0


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_is_none_is_one_line(port, capsys):
    assert main(["serve", "--port", port]) == 2
    assert "--port" in capsys.readouterr().err


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch):
    opened = SimpleQueue()
    monkeypatch.setattr(webbrowser, "open", opened.put)
    monkeypatch.setenv("DISPLAY", ":0")
    _browse("http://127.0.0.1:1/open")
    assert opened.get(timeout=SECONDS) == "http://127.0.0.1:1/open"
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    before = threading.active_count()
    _browse("nowhere")
    assert threading.active_count() <= before


def test_missing_extras_are_one_line_with_the_fix(monkeypatch, capsys):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["serve"]) == 2
    line = "lemmata: the lab needs fastapi, uvicorn, jinja2: pip install 'lemmata[lab]'\n"
    assert capsys.readouterr().err == line


def test_the_server_itself_never_imports_torch():
    code = "import sys; from lemmata.lab.site.app import create_app; create_app(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
