"""What a route may ask of a browser, as dependencies: see `lemmata.lab.site.session` for what cookie and token are."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import HTTPException, Request

from lemmata.lab.site.guard import NO_RIGHT

__all__ = ["for_a_reader", "needs_cookie", "needs_token", "ticketed"]

Found = TypeVar("Found")


async def needs_cookie(request: Request) -> None:
    """For a GET that makes a child process work: not for whoever links to it."""
    if not request.state.live:
        raise HTTPException(403, NO_RIGHT)


async def for_a_reader(request: Request, work: Callable[[], Awaitable[Found]]) -> Found | None:
    """Work that a page needs to show its state; None where it may not be done for this browser.

    Whoever opened the printed link may have it done at any time. For others, whom a shared link brought, one is done at
    a time, and only for an address that was opened: a page elsewhere cannot keep the lab busy with pictures and frames.
    """
    if request.state.live:
        return await work()
    state, headers = request.app.state, request.headers
    opened = headers.get("sec-fetch-dest") == "document" and headers.get("sec-fetch-mode") == "navigate"
    if not opened or getattr(state, "reading", False):
        return None
    state.reading = True
    try:
        return await work()
    finally:
        state.reading = False


async def needs_token(request: Request) -> None:
    """For what is the user's own: the token in a header, or a ticket in the link."""
    if not request.state.owner:
        raise HTTPException(403, NO_RIGHT)


def ticketed(request: Request, path: str) -> str:
    """An address of this lab with the ticket for it, where the browser asks by itself and sends no token."""
    return f"{path}?ticket={request.app.state.session.ticket(path)}"
