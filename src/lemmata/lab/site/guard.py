"""What every request passes before anything else sees it; a page elsewhere on the web must not reach the lab.

In this order: no upgrade to another protocol; Host in an exact set (or a name that resolves to this machine would do);
for anything but GET and HEAD also our own Origin, Sec-Fetch-Site, cookie and token; a small body, soon. HEAD is GET
without the body. Every answer carries the headers that keep a page from loading or running anything of others.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from lemmata.lab.site.session import Session

__all__ = ["LARGEST_BODY", "TOKEN_HEADER", "Guard"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LARGEST_BODY = 64 * 1024
BODY_SECONDS = 5.0  # for a body of that size from a program on this machine
TOKEN_HEADER = "x-lemmata-token"
SAFE = frozenset({"GET", "HEAD"})
SAME_SITE = frozenset({"same-origin", "none"})
# data: for pictures inside figures (a heat map is one small PNG); everything else comes from this server.
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",  # some pages are the user's own; a file's route may say otherwise
}
NOT_HERE = "the lab answers only at {}"
NO_RIGHT = "open the link that lemmata serve printed: only the browser that did may see or do this"
logger = logging.getLogger(__name__)


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, line: str):
        super().__init__(line)
        self.status = status


class Guard:
    """The middleware around the whole app.

    A view finds in `request.state.live` whether this browser opened the link, and in `request.state.owner` whether it
    proved so, by token or ticket.
    """

    def __init__(self, app: App, session: Session):
        self.app = app
        self.session = session

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        else:
            await self._answer_with(scope, receive, _Answer(send, head=scope["method"] == "HEAD"))

    async def _answer_with(self, scope: Message, receive: Receive, answer: "_Answer") -> None:
        try:
            state = scope.get("state", {}) | self._browser_rights(scope)
            if scope["method"] in SAFE:
                scope = {**scope, "method": "GET", "state": state}
            else:
                scope, receive = {**scope, "state": state}, await _small_body(receive)
            await self.app(scope, receive, answer.send)
        except Refused as refusal:
            await answer.line(refusal.status, str(refusal))
        except Exception as error:
            if answer.cut:  # the body of a HEAD, which nobody wants
                return
            logger.error("%s: %s", type(error).__name__, " ".join(str(error).split()))
            logger.debug("in full:", exc_info=error)
            if answer.begun:
                raise  # too late for a status: the server closes the connection
            await answer.line(500, "a fault of lemmata itself")

    def _browser_rights(self, scope: Message) -> dict[str, bool]:
        """Whether this browser opened the link, and proved it; Refused if it may not even read."""
        headers = _Headers(scope)
        if headers.all("upgrade"):
            raise Refused(400, "no upgrades")
        if headers.one("host") not in self.session.hosts:
            raise Refused(421, NOT_HERE.format(self.session.address))
        live = self.session.knows(headers.all("cookie"))
        owner = live and self.session.allows(headers.all(TOKEN_HEADER))
        if scope["method"] not in SAFE:
            ours = headers.one("origin") == f"http://{headers.one('host')}"
            if not (ours and headers.one("sec-fetch-site") in SAME_SITE and owner):
                raise Refused(403, NO_RIGHT)
        elif live and not owner:
            owner = self.session.honours(scope["path"], _tickets_of_query(scope["query_string"]))
        length = headers.one("content-length") or "0"
        if not (length.isascii() and length.isdigit() and len(length) < 20):
            raise Refused(400, "the length of the body is no number")
        if int(length) > LARGEST_BODY:
            raise Refused(413, f"a request may have {LARGEST_BODY // 1024} KiB")
        return {"live": live, "owner": owner}


class _Headers:
    """The headers of a request; what matters must be there exactly once."""

    def __init__(self, scope: Message):
        self.pairs: list[tuple[bytes, bytes]] = scope["headers"]

    def all(self, name: str) -> list[str]:
        return [value.decode("latin-1") for key, value in self.pairs if key.lower() == name.encode()]

    def one(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if len(values) == 1 else None


def _tickets_of_query(query: bytes) -> list[str]:
    pairs = [pair.partition(b"=") for pair in query.split(b"&")]
    return [value.decode("latin-1") for name, _, value in pairs if name == b"ticket"]


async def _small_body(receive: Receive) -> Receive:
    """Read the whole body, or refuse it; give back a `receive` that tells it again."""
    body, more = b"", True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused(400, "the body broke off")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > LARGEST_BODY:
                    raise Refused(413, f"a request may have {LARGEST_BODY // 1024} KiB")
    except TimeoutError:
        raise Refused(408, f"the body did not come within {BODY_SECONDS:g} s") from None
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Answer:
    """What is sent back: our headers added, and for HEAD the body left out."""

    def __init__(self, send: Send, head: bool):
        self._send = send
        self.head = head
        self.begun = self.cut = False

    async def send(self, message: Message) -> None:
        if self.cut:
            if message.get("more_body"):
                raise OSError("the answer is complete")  # what ASGI prescribes, and the end of an endless stream
            return
        if message["type"] == "http.response.start":
            self.begun = True
            given = list(message.get("headers", []))
            names = {name.lower() for name, _ in given}
            message = {**message, "headers": given + [pair for pair in HEADERS.items() if pair[0] not in names]}
        await self._send(message)
        if self.head and self.begun:
            self.cut = True
            await self._send({"type": "http.response.body", "body": b""})

    async def line(self, status: int, text: str) -> None:
        body = json.dumps({"error": text}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
