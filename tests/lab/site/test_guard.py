"""The guard: what must not be there is refused on every route, by every method, before anything happens."""

import asyncio
import itertools
import random

import pytest
from fastapi import Request
from fastapi.responses import StreamingResponse

from cases import for_each
from lemmata.lab.site.guard import LARGEST_BODY, POLICY

HOST = "127.0.0.1:8417"
MISSING = None
HOSTS = [HOST, "localhost:8417", "evil.example:8417", "127.0.0.1:80", MISSING]
ORIGINS = [f"http://{HOST}", "http://localhost:8417", "http://evil.example", "null", MISSING]
SITES = ["same-origin", "none", "same-site", "cross-site", MISSING]
TOKENS = ["right", "wrong", MISSING]
COOKIES = ["right", "wrong", MISSING]
METHODS = "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT PROPFIND get Post GETX".split()
PRODUCT = list(itertools.product(METHODS, HOSTS, ORIGINS, SITES, TOKENS, COOKIES))
RIGHT = ("POST", HOST, f"http://{HOST}", "same-origin", "right", "right")
ONE_FAULT = [combination for combination in PRODUCT if sum(a != b for a, b in zip(combination, RIGHT, strict=True)) < 2]


def may_pass(method, host, origin, site, token, cookie):
    """What the guard promises, said once more and differently."""
    if host not in (HOST, "localhost:8417"):
        return False
    ours = origin is not None and origin.removeprefix("http://") == host and site in ("same-origin", "none")
    return method in ("GET", "HEAD") or (ours and token == cookie == "right")


def headers_of(session, host, origin, site, token, cookie):
    secret = {"right": (session.token, session.cookie), "wrong": ("a" * 43, "b" * 43), MISSING: (None, None)}
    pairs = {"host": host, "origin": origin, "sec-fetch-site": site, "x-lemmata-token": secret[token][0]}
    given = secret[cookie][1]
    pairs["cookie"] = given and f"theme=dark; {session.cookie_name}={given}"
    return {name: value for name, value in pairs.items() if value is not None}


def matrix(client, routes, address, job, combinations):
    """Send every combination that has no right to every route; give back how many were sent."""
    jobs, session = client.app.state.jobs, client.session
    before = (session.link, session.token, session.cookie, len(jobs.asked), job.state)

    async def send():
        count = 0
        for path, _ in routes:
            target = address(path)
            for method, *rest in combinations(path):
                if not may_pass(method, *rest):
                    answer = await client.send(method, target, headers_of(session, *rest), b"{}")
                    assert answer.status in (403, 421), (method, target, rest)
                    count += 1
        return count

    count = client.runner.run(send())
    assert (session.link, session.token, session.cookie, len(jobs.asked), job.state) == before
    return count


def test_every_route_refuses_every_single_fault_and_a_sample_of_the_rest(client, routes, address, job):
    chance = random.Random(4)
    sample = lambda path: ONE_FAULT + chance.sample(PRODUCT, 500)  # noqa: E731
    assert matrix(client, routes, address, job, sample) > 400 * len(routes)


@pytest.mark.long
def test_every_route_refuses_every_combination_without_right(client, routes, address, job):
    assert matrix(client, routes, address, job, lambda path: PRODUCT) > 10_000 * len(routes)


def test_every_route_lets_its_own_page_through(client, routes, address):
    for path, methods in routes:
        for method in methods:
            rights = client.rights() | {"content-type": "application/json"}
            if path != "/open" and not path.endswith("/events"):
                answer = client.ask(method, address(path), rights, b"{}")
                assert answer.status not in (403, 421) and answer.status < 500, (method, path, answer)  # noqa: PT018


NAMES = [
    "evil.example",
    "127.0.0.1",
    "localhost",
    "127.0.0.1:80",
    "127.0.0.1:8418",
    "127.0.0.1:08417",
    "127.0.0.1.:8417",
    "127.0.0.1:8417.",
    "localhost.:8417",
    "LOCALHOST:8417",
    "Localhost:8417",
    "[::1]:8417",
    "::1",
    "0.0.0.0:8417",
    "127.1:8417",
    "2130706433:8417",
    "0x7f000001:8417",
    "127.0.0.1.nip.example:8417",
    "localhost:8417.evil.example",
    "localhost:8417@evil.example",
    "evil.example/127.0.0.1:8417",
    "127.0.0.1:8417, evil.example",
    " 127.0.0.1:8417",
    "127.0.0.1:8417\t",
    "127.0.0.1:8417\x00",
    "",
    b"\xff\xfe",
]


@for_each(("host", "method"), itertools.product(NAMES, ["GET", "HEAD", "POST"]))
def test_any_other_name_for_this_machine_is_refused_also_for_reading(client, host, method):
    answer = client.ask(method, "/static/x", client.rights() | {"host": host})
    assert answer.status == 421
    assert method == "HEAD" or b"127.0.0.1:8417" in answer.body


@pytest.mark.parametrize("hosts", [[], [HOST, HOST], [HOST, "evil.example"], ["evil.example", HOST]])
def test_there_is_exactly_one_host(client, hosts):
    assert client.ask("GET", "/static/x", [("host", host) for host in hosts]).status == 421
    assert client.ask("GET", "/static/x", [("Host", HOST)]).status == 404


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("origin", ["https://127.0.0.1:8417"]),
        ("origin", ["http://127.0.0.1:8417.evil.example"]),
        ("origin", ["http://127.0.0.1:8417/"]),
        ("origin", ["HTTP://127.0.0.1:8417"]),
        ("origin", ["http://127.0.0.1"]),
        ("origin", ["http://localhost:8417"]),
        ("origin", [f"http://{HOST}", "http://evil.example"]),
        ("origin", ["file://"]),
        ("sec-fetch-site", ["Same-Origin"]),
        ("sec-fetch-site", ["same-origin", "cross-site"]),
        ("sec-fetch-site", ["same-site"]),
        ("sec-fetch-site", [""]),
        ("x-lemmata-token", [""]),
        ("x-lemmata-token", ["RIGHT", "RIGHT"]),
        ("x-lemmata-token", ["RIGHTx"]),
        ("x-lemmata-token", ["RIGHT\xe9"]),
        ("x-lemmata-token", ["undefined"]),
        ("cookie", ["lemmata-8417=RIGHT"]),
        ("cookie", ["lemmata=COOKIE"]),
        ("cookie", ["lemmata-8418=COOKIE"]),
        ("cookie", ["x-lemmata-8417=COOKIE"]),
    ],
)
def test_what_is_nearly_right_is_wrong(client, header, values):
    rest = [pair for pair in client.rights().items() if pair[0] != header]
    secrets = {"RIGHT": client.session.token, "COOKIE": client.session.cookie}
    for word, secret in secrets.items():
        values = [value.replace(word, secret) for value in values]
    answer = client.ask("POST", "/static/x", rest + [(header, value) for value in values])
    assert (answer.status, b"lemmata serve printed" in answer.body) == (403, True)


def test_the_right_headers_pass_and_a_foreign_cookie_of_the_same_name_does_no_harm(client):
    assert client.ask("POST", "/static/x", client.rights()).status == 405
    assert client.ask("POST", "/static/x", client.rights("localhost:8417")).status == 405
    tossed = {"cookie": f"{client.session.cookie_name}=junk; {client.cookie}"}
    assert client.ask("POST", "/static/x", client.rights() | tossed).status == 405


def test_upgrades_and_websockets_are_refused(client):
    assert client.ask("GET", "/static/x", client.rights() | {"upgrade": "websocket"}).status == 400
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", HOST.encode())]}
    client.runner.run(client.app(scope, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_head_is_get_without_the_body(client, routes, address):
    for path in sorted({path for path, methods in routes if "GET" in methods} - {"/open", "/jobs/{job}/events"}):
        read = client.ask("GET", address(path), client.rights())
        head = client.ask("HEAD", address(path), client.rights())
        assert (head.status, head.body) == (read.status, b"")
        assert head.header("content-type") == read.header("content-type")


def test_head_of_an_endless_stream_ends(client):
    async def forever():
        while True:
            yield b"x"

    client.app.add_api_route("/forever", lambda: StreamingResponse(forever()))
    assert client.runner.run(asyncio.wait_for(client.send("HEAD", "/forever", {"host": HOST}), 20)).status == 200


def test_a_body_has_64_kib_whatever_its_length_claims(client):
    async def size(request: Request):
        return len(await request.body())

    client.app.add_api_route("/size", size, methods=["POST"])
    assert client.ask("POST", "/size", client.rights(), b"x" * LARGEST_BODY).json() == LARGEST_BODY
    assert client.ask("POST", "/size", client.rights(), b"x" * (LARGEST_BODY + 1)).status == 413
    for length in (LARGEST_BODY + 1, 10**18, "9" * 5000, "-1", "1e3", "x", ""):
        answer = client.ask("POST", "/size", client.rights() | {"content-length": str(length)})
        assert answer.status in (400, 413) or length == ""
    assert client.ask("GET", "/size", {"host": HOST, "content-length": str(10**9)}).status == 413


def test_a_body_that_breaks_off_is_not_acted_upon(client):
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in client.rights().items()]
    scope = {"type": "http", "method": "POST", "path": "/static/x", "headers": pairs, "query_string": b""}
    client.runner.run(client.app(scope, receive, send))
    assert sent[0]["status"] == 400


def test_every_answer_carries_the_headers_that_keep_others_out(client):
    def broken():
        raise RuntimeError("secret words")

    client.app.add_api_route("/broken", broken)
    asked = [
        client.get("/broken"),
        client.get("/no/such/page", accept="*/*"),
        client.get("/static/none.css"),
        client.ask("POST", "/", {"host": HOST}),
        client.ask("GET", "/", {"host": "evil.example"}),
        client.post("/static/x"),
    ]
    assert [answer.status for answer in asked] == [500, 404, 404, 403, 421, 405]
    for answer in asked:
        assert answer.header("content-security-policy") == POLICY
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("referrer-policy") == "no-referrer"
        assert answer.header("cache-control") == "no-store"
        assert answer.header("access-control-allow-origin") is None
    assert asked[0].json() == {"error": "a fault of lemmata itself"}
    for rule in ("default-src 'self'", "frame-ancestors 'none'", "object-src 'none'"):
        assert rule in POLICY
    assert "unsafe" not in POLICY
