"""What tests of the page share: a client that speaks ASGI to the app itself, jobs that never run, kinds of work."""

import asyncio
import json
import re
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

from lemmata.files import cache_folder, write_whole
from lemmata.lab.site.app import Settings, create_app, routers
from lemmata.lab.site.job import JobFailed
from lemmata.lab.site.jobs import Jobs

PORT = 8417
HOST = f"127.0.0.1:{PORT}"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)


class Client:
    """Requests as uvicorn hands them to the app, as sent by the browser that opened the link.

    `get` is an address that was opened, which shows the cookie alone; `part` and `post` are what scripts ask.
    """

    def __init__(self, app):
        self.app = app
        self.session = app.state.session
        self.runner = asyncio.Runner()

    def rights(self, host=HOST):
        """The headers of a button pressed on our own page."""
        own = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        return own | {"cookie": self.cookie, "x-lemmata-token": self.session.token}

    @property
    def cookie(self):
        return f"{self.session.cookie_name}={self.session.cookie}"

    def get(self, target, **headers):
        return self.ask("GET", target, {"host": HOST, "cookie": self.cookie, "accept": "text/html"} | headers)

    def part(self, target, **headers):
        return self.get(target, **{"x-lemmata-token": self.session.token} | headers)

    def post(self, target, data=None, **headers):
        body = b"" if data is None else json.dumps(data).encode()
        return self.ask("POST", target, self.rights() | {"content-type": "application/json"} | headers, body)

    def ask(self, method, target, headers, body=b""):
        return self.runner.run(self.send(method, target, headers, body))

    async def send(self, method, target, headers, body=b"", stay=True, left=None):
        """One request; headers as a dict, or as pairs where a name comes twice; str or bytes.

        A stream of events is read to its end, or with `stay=False` left at once; from the event `left` on nobody waits
        for any answer.
        """
        raw, _, query = target.partition("?")
        pairs = headers.items() if isinstance(headers, dict) else headers
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 50000),
            "root_path": "",
            "path": unquote(raw),
            "raw_path": raw.encode("ascii", "replace"),
            "query_string": query.encode("latin-1", "replace"),
            "headers": [(_bytes(name), _bytes(value)) for name, value in pairs],
            "state": {},
        }
        given, sent, over = [{"type": "http.request", "body": body, "more_body": False}], [], asyncio.Event()

        async def receive():
            if given:
                return given.pop()
            await (left or over).wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            stream = not stay and (b"text/event-stream" in dict(message.get("headers", ())).get(b"content-type", b""))
            if stream or (message["type"] == "http.response.body" and not message.get("more_body")):
                over.set()

        await self.app(scope, receive, send)
        start, *rest = sent
        got = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
        return Answer(start["status"], got, b"".join(part.get("body", b"") for part in rest))


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


class IdleJobs(Jobs):
    """Jobs that are noted and never run."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def start(self, kind, parameters, seconds=None):
        job = super().start(kind, parameters, seconds)
        self.asked.append(job)
        return job

    async def call(self, kind, parameters, seconds=10.0):
        raise JobFailed("nothing runs here")


EXAMPLES = {"/claim/{id}": "perceptron.novikoff", "/systems/{id}": "perceptron", "/source/{code}": "000"}
EXAMPLES |= {"/labs/{name}": "perceptron", "/runs/{run}": "perceptron-moons-1"}


@pytest.fixture
def routes(client):
    """Every route of the app: (path with its parameters, methods)."""
    return [(route.path, sorted(route.methods)) for router in routers() for route in router.routes]


@pytest.fixture
def job(client):
    """A job that waits in line, which nobody without the right may touch."""

    async def start():
        return client.app.state.jobs.start("judge", {"id": EXAMPLES["/claim/{id}"], "seed": 0})

    return client.runner.run(start())


@pytest.fixture
def run():
    """A run that could go on, as far as its folder tells."""
    folder = cache_folder() / "runs" / EXAMPLES["/runs/{run}"]
    record = {"format": 1, "system": "perceptron", "data": "moons", "metric": "accuracy", "config": {}, "options": {}}
    write_whole(folder / "run.json", json.dumps(record | {"command": "lemmata train perceptron"}).encode())
    write_whole(folder / "checkpoints" / "step-00000001.json", b"{}")
    return folder


@pytest.fixture
def address(job, run):
    """A path with its parameters filled in, by things that exist where we know any."""

    def filled(path):
        for prefix, example in EXAMPLES.items():
            if path.startswith(prefix):
                path = path.replace(prefix, prefix[: prefix.index("{")] + example)
        return re.sub(r"\{[^}]*\}", lambda found: job.id if found.group() == "{job}" else "1", path)

    return filled


@pytest.fixture
def client():
    """The whole app behind its guard, with jobs that never run."""
    made = Client(create_app(Settings(port=PORT, jobs=IdleJobs)))
    yield made
    made.runner.close()


@pytest.fixture
def kinds():
    """The folder with kinds of work for tests."""
    return Path(__file__).parent / "kinds"


@pytest.fixture
def gone():
    """Whether a process ends soon; one that is dead and not yet buried counts as gone."""

    def ends(pid, seconds=10.0):
        never, end = threading.Event(), time.monotonic() + seconds
        while alive(pid) and time.monotonic() < end:
            never.wait(0.02)
        return not alive(pid)

    return ends


def alive(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")
