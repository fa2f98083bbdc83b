"""What a route may ask of a browser, as dependencies: see `lemmata.lab.site.session` for what cookie and token are."""

from fastapi import HTTPException, Request

from lemmata.lab.site.guard import NO_RIGHT

__all__ = ["needs_cookie", "needs_token", "ticketed"]


async def needs_cookie(request: Request) -> None:
    """For a GET that makes a child process work: not for whoever links to it."""
    if not request.state.live:
        raise HTTPException(403, NO_RIGHT)


async def needs_token(request: Request) -> None:
    """For what is the user's own: the token in a header, or a ticket in the link."""
    if not request.state.owner:
        raise HTTPException(403, NO_RIGHT)


def ticketed(request: Request, path: str) -> str:
    """An address of this lab with the ticket for it, where the browser asks by itself and sends no token."""
    return f"{path}?ticket={request.app.state.session.ticket(path)}"
