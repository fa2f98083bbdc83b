"""The downloader, against a server of our own on this machine that misbehaves in every way we could think of."""

import contextlib
import errno
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import FileIO
from types import SimpleNamespace

import pytest

from lemmata.data import fetch as fetching
from lemmata.data.fetch import FetchError, Remote, fetch

CONTENT = bytes(range(256)) * 1000
HALF = len(CONTENT) // 2


@dataclass
class Server:
    """What the next answers do, and what was asked."""

    url: str = ""
    cuts: list[int] = field(default_factory=list)  # stop each of the next answers after so many bytes
    ranges: bool = True
    lengths: bool = True
    content: bytes = CONTENT
    status: int = 200
    redirect: str = ""
    stall: threading.Event | None = None
    asked: list[str] = field(default_factory=list)

    def remote(self, name: str = "set.bin", size: int = len(CONTENT), content: bytes = CONTENT) -> Remote:
        return Remote(f"{self.url}/{name}", size, hashlib.sha256(content).hexdigest())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        it: Server = self.server.it  # type: ignore[attr-defined]
        wanted = self.headers.get("Range", "")
        it.asked.append(f"{self.path} {wanted}".strip())
        if it.redirect and "/moved" not in self.path:
            return self.answer(302, {"Location": it.redirect})
        if it.status != 200:
            return self.answer(it.status, {})
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and it.ranges else 0
        if start and start >= len(it.content):
            return self.answer(416, {"Content-Range": f"bytes */{len(it.content)}"})
        body = it.content[start:]
        headers = {"Content-Length": str(len(body))} if it.lengths else {}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(it.content) - 1}/{len(it.content)}"
        self.answer(206 if start else 200, headers)
        with contextlib.suppress(ConnectionError):  # the other side may have had enough
            self.wfile.write(body[: it.cuts.pop(0)] if it.cuts else body)
        if it.stall:
            it.stall.wait(30)
        return None

    def answer(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setattr(fetching, "SCHEMES", ("https", "http"))
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.it = Server(f"http://127.0.0.1:{listening.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield listening.it  # type: ignore[attr-defined]
        listening.shutdown()
        thread.join()


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_once_and_tells_its_progress(server, tmp_path):
    told = []
    path = fetch(server.remote(), tmp_path / "new", lambda done, size: told.append((done, size)))
    assert path.read_bytes() == CONTENT
    assert left(path.parent) == ["set.bin"]
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert told == sorted(told)
    assert fetch(server.remote(), path.parent) == path
    assert server.asked == ["/set.bin"]


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    (tmp_path / "set.bin").write_bytes(bytes(len(CONTENT)))
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_cut_connection_is_taken_up_where_it_broke(server, tmp_path):
    server.cuts = [HALF, 1000]
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.asked == ["/set.bin", f"/set.bin bytes={HALF}-", f"/set.bin bytes={HALF + 1000}-"]


def test_after_three_more_attempts_the_part_is_kept_and_the_next_call_goes_on(server, tmp_path):
    server.cuts = [1000] * 4
    with pytest.raises(FetchError, match=r"set.bin from 127.0.0.1: the connection was cut after 4 kB of 256 kB"):
        fetch(server.remote(), tmp_path)
    assert left(tmp_path) == ["set.bin.part"]
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "/set.bin bytes=4000-"


def test_an_attempt_that_brings_nothing_is_the_last(server, tmp_path):
    server.cuts = [1000, 0, 0, 0]
    with pytest.raises(FetchError, match="cut after"):
        fetch(server.remote(), tmp_path)
    assert len(server.asked) == 2


@pytest.mark.parametrize("lengths", [True, False])
def test_a_server_that_knows_no_ranges_starts_again(server, tmp_path, lengths):
    server.ranges, server.lengths = False, lengths
    (tmp_path / "set.bin.part").write_bytes(b"something else")
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [CONTENT[:-1], CONTENT, CONTENT + b"x"], ids=["short", "whole", "long"])
def test_a_part_of_any_length_is_used_or_dropped(server, tmp_path, part):
    (tmp_path / "set.bin.part").write_bytes(part)
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_part_the_server_will_not_extend_is_dropped(server, tmp_path):
    server.content = CONTENT[:HALF]
    (tmp_path / "set.bin.part").write_bytes(bytes(HALF + 5))  # longer than what the server has now: 416
    with pytest.raises(FetchError, match="it has changed there"):
        fetch(server.remote(), tmp_path)
    assert left(tmp_path) == []


def test_a_wrong_digest_deletes_the_part(server, tmp_path):
    with pytest.raises(FetchError, match=r"wrong SHA-256 \(\w{12}... was expected, \w{12}... came\) and was deleted"):
        fetch(server.remote(content=b"other"), tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("change", [CONTENT[:HALF], CONTENT * 2], ids=["shorter", "longer"])
def test_a_file_that_changed_is_refused_before_it_comes(server, tmp_path, change):
    server.content = change
    with pytest.raises(FetchError, match=rf"offers {len(change):,} bytes, not the 256,000 it had"):
        fetch(server.remote(), tmp_path)
    assert left(tmp_path) == []


def test_no_more_than_the_pinned_size_is_ever_written(server, tmp_path):
    server.content, server.lengths = CONTENT * 50, False
    with pytest.raises(FetchError, match="longer than its 256,000 bytes"):
        fetch(server.remote(), tmp_path)
    assert left(tmp_path) == []


def test_a_truncated_file_without_a_length_is_not_taken_for_whole(server, tmp_path):
    server.content, server.lengths = CONTENT[:HALF], False
    with pytest.raises(FetchError):
        fetch(server.remote(), tmp_path)
    assert "set.bin" not in left(tmp_path)


def test_a_redirect_is_followed(server, tmp_path):
    server.redirect = "/moved/elsewhere?x=1"
    assert fetch(server.remote(), tmp_path).name == "set.bin"
    assert server.asked == ["/set.bin", "/moved/elsewhere?x=1"]


@pytest.mark.parametrize("target", ["https://127.0.0.1:9/moved", "file:///etc/passwd", "ftp://127.0.0.1/moved", "x:y"])
def test_a_redirect_to_another_scheme_is_refused(server, tmp_path, monkeypatch, target):
    monkeypatch.setattr(fetching, "SCHEMES", ("http",))
    server.redirect = target
    with pytest.raises(FetchError, match=rf"^{target}, where {server.url}/set.bin redirects, is refused: only http is"):
        fetch(server.remote(), tmp_path)
    assert left(tmp_path) == []


def test_only_https_is_fetched(tmp_path):
    assert fetching.SCHEMES == ("https",)
    with pytest.raises(FetchError, match="only https is fetched"):
        fetch(Remote("http://127.0.0.1:9/set.bin", 1, ""), tmp_path)


@pytest.mark.parametrize("target", ["/set.bin", "/other"])
def test_redirects_in_a_circle_end(server, tmp_path, target):
    server.redirect = target
    with pytest.raises(FetchError, match="more than 5 redirects"):
        fetch(server.remote(), tmp_path)
    assert len(server.asked) == 6


def test_a_stalled_server_is_left_and_what_came_is_kept(server, tmp_path):
    server.stall, server.cuts = threading.Event(), [HALF, 0]
    with pytest.raises(FetchError, match=r"set.bin from 127.0.0.1: (nothing came for|no answer within) 0.1 s"):
        fetch(server.remote(), tmp_path, timeout=0.1)
    server.stall.set()
    server.cuts.clear()
    # On a busy machine nothing at all may have come in that time.
    assert all(CONTENT.startswith(path.read_bytes()) for path in tmp_path.glob("set.bin.part"))
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 403, 500, 503])
def test_a_refusal_is_told_in_the_servers_words(server, tmp_path, status):
    server.status = status
    with pytest.raises(FetchError, match=f"the server answered {status} "):
        fetch(server.remote(), tmp_path)
    assert len(server.asked) == 1
    assert left(tmp_path) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/set.bin", "http://nowhere.invalid/set.bin", "http://[/set.bin"])
def test_without_a_connection_one_line_says_so_and_nothing_is_left(server, tmp_path, url):
    with pytest.raises((FetchError, ValueError), match=r"no connection \(|Invalid") as error:
        fetch(Remote(url, 1, ""), tmp_path)
    assert "\n" not in str(error.value)
    assert left(tmp_path) == []


def test_too_little_room_is_told_before_anything_comes(server, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(FetchError, match=r"too full for set.bin: 256 kB are needed in .*, 1 kB are free"):
        fetch(server.remote(), tmp_path)
    assert server.asked == []


def test_a_disk_that_fills_keeps_the_part(server, tmp_path, monkeypatch):
    class Full(FileIO):
        def write(self, block):
            if self.tell() + len(block) > HALF:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(block)

    monkeypatch.setattr(fetching, "FileIO", Full)
    with pytest.raises(FetchError, match=r"could not be written: the disk is full; .* of 256 kB are kept as .*\.part"):
        fetch(server.remote(), tmp_path)
    monkeypatch.undo()
    kept = (tmp_path / "set.bin.part").read_bytes()
    assert kept
    assert CONTENT.startswith(kept)


def test_short_writes_lose_nothing(server, tmp_path, monkeypatch):
    class Short(FileIO):
        def write(self, block):
            return super().write(block[:999])

    monkeypatch.setattr(fetching, "FileIO", Short)
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_ctrl_c_keeps_the_part(server, tmp_path):
    def interrupt(done, size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.remote(), tmp_path, interrupt)
    kept = (tmp_path / "set.bin.part").read_bytes()
    assert CONTENT.startswith(kept)
    assert fetch(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_second_fetch_at_the_same_time_disturbs_nothing(server, tmp_path):
    inner = []

    def again(done, size):
        if not inner:
            inner.append(None)
            inner.append(fetch(server.remote(), tmp_path).read_bytes())

    assert fetch(server.remote(), tmp_path, again).read_bytes() == CONTENT
    assert inner[1] == CONTENT
    assert left(tmp_path) == ["set.bin"]
