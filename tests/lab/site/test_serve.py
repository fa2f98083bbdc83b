"""`lemmata serve` as a person meets it: a link, a page, Ctrl-C, and nothing left behind."""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from lemmata.lab.cli import main
from lemmata.lab.cli.serve import _has_screen, _write_doorway

SECONDS = 60  # for anything at all, on a machine that does ten other things


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


IPV6 = has_ipv6()


@pytest.fixture
def serve():
    """Start the command; give back the process, what it printed up to the link, and the port."""
    started = []

    def start(*words, **env):
        command = [sys.executable, "-m", "lemmata", "serve", "--offline", *words]
        command += [] if env else ["--no-browser"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=os.environ | env, **pipes)
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


@pytest.mark.skipif(not IPV6, reason="this machine has no IPv6")
def test_the_lab_takes_both_addresses_of_localhost_or_another_port(serve):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        wanted = taken.getsockname()[1]
        _, printed, port = serve("--port", str(wanted))
        assert port != wanted
        assert printed.startswith(f"port {wanted} is taken")
    with contextlib.closing(http.client.HTTPConnection("::1", port, timeout=SECONDS)) as connection:
        connection.request("GET", "/labs", headers={"Host": f"localhost:{port}"})
        assert connection.getresponse().status == 200


def test_what_is_never_asked_to_the_end_is_ended(serve):
    _, printed, port = serve("--port", "0")
    _, headers, body = ask(port, re.search(r"(/open\?key=\S+)", printed).group(1))
    host = b"Host: 127.0.0.1:%d\r\n" % port
    own = f"Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 9\r\n"
    own += f"Cookie: {dict(headers)['set-cookie'].partition(';')[0]}\r\n"
    own += "X-Lemmata-Token: " + re.search(r'lemmata-token" content="([^"]+)"', body.decode()).group(1) + "\r\n"
    half = [b"", b"G", b"GET / HTTP/1.1\r\n" + host]
    half += [b"POST /claim/hopfield.energy/judge HTTP/1.1\r\n" + host + own.encode() + b"\r\n{"]
    with contextlib.ExitStack() as stack:
        connect = lambda: stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))  # noqa: E731
        again, *others = [connect() for _ in range(1 + len(half))]
        again.sendall(b"GET /static/x HTTP/1.1\r\n" + host + b"\r\n")
        assert b"404" in again.recv(1 << 16)
        again.sendall(b"GET /st")  # a second request on the same connection that stays a beginning
        for connection, beginning in zip(others, half, strict=True):
            connection.sendall(beginning)
        heard = [to_the_end(connection) for connection in [again, *others]]
    assert [b"408" in answer for answer in heard] == [False, False, False, False, True]


def to_the_end(connection):
    heard = b""
    with contextlib.suppress(ConnectionResetError):
        while some := connection.recv(1 << 16):
            heard += some
    return heard


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


BROWSER = """
import json, os, socket, sys, urllib.parse, urllib.request
path = urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[1]).path)
text = open(path, encoding="utf-8").read()
link = text.partition("url=")[2].partition('"')[0]
answer = urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(link)
facts = {{"words": sys.argv, "path": path, "mode": os.stat(path).st_mode & 0o777, "link": link}}
facts |= {{"status": answer.status, "cookie": answer.headers["set-cookie"], "page": answer.read().decode()}}
with socket.create_connection(("127.0.0.1", {port})) as connection:
    connection.sendall(json.dumps(facts).encode())
"""


@pytest.mark.skipif(os.name == "nt", reason="a browser is a shell script here")
def test_no_secret_stands_in_the_command_line_of_the_browser(serve, tmp_path):
    home, browser = tmp_path / "home", tmp_path / "browser"
    home.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as told:
        told.settimeout(SECONDS)
        (tmp_path / "browser.py").write_text(BROWSER.format(port=told.getsockname()[1]))
        browser.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{browser}.py" "$@"\n')  # its place may have spaces
        browser.chmod(0o755)
        process, printed, _ = serve("--port", "0", DISPLAY=":0", BROWSER=f"{browser} %s", HOME=str(home))
        with told.accept()[0] as connection:
            found = json.loads(to_the_end(connection))
    key, cookie = found["link"].partition("key=")[2], found["cookie"].partition("=")[2].partition(";")[0]
    token = re.search(r'lemmata-token" content="([^"]+)"', found["page"]).group(1)
    assert (found["status"], found["mode"], Path(found["path"]).parent) == (200, 0o600, home)
    assert not [secret for secret in (key, cookie, token) if secret in " ".join(found["words"])]
    assert key not in printed  # so that the printed link still works, once
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    assert list(home.glob("*.html")) == []


def test_without_a_screen_no_browser_is_opened(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not _has_screen()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert _has_screen()


def test_a_home_that_cannot_be_written_is_no_hindrance(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    doorway = _write_doorway("http://127.0.0.1:1/open?key=a&b")
    assert doorway.parent == tmp_path
    assert 'url=http://127.0.0.1:1/open?key=a&amp;b"' in doorway.read_text(encoding="utf-8")


def test_missing_extras_are_one_line_with_the_fix(monkeypatch, capsys):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["serve"]) == 2
    line = "lemmata: the lab needs fastapi, uvicorn, jinja2: pip install 'lemmata[lab]'\n"
    assert capsys.readouterr().err == line


def test_the_server_itself_never_imports_torch():
    code = "import sys; from lemmata.lab.site.app import create_app; create_app(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
