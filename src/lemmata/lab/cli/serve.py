"""`lemmata serve`: the lab on this machine, at a link that only this terminal shows."""

import asyncio
import contextlib
import errno
import html
import importlib.util
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lemmata.lab.words import UserError

NEEDED = ("fastapi", "uvicorn", "jinja2")
HOST = "127.0.0.1"
TRIED = 50  # ports after the wanted one, before any free port will do
DOORWAY_SECONDS = 60.0  # for a browser to start and to read the file that leads to the lab
DOORWAY = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>lemmata</title>
<meta http-equiv="refresh" content="0; url={0}"><p><a href="{0}">Open the lab</a></p></html>
"""


@dataclass(frozen=True)
class Arguments:
    """Open the lab: a page on this machine with every formula, verdict, picture and slider. Ctrl-C ends it."""

    port: int = 8417
    """The port to listen on; the next free one if it is taken, any free one if 0."""
    no_browser: bool = False
    """Only print the link."""
    offline: bool = False
    """Fetch no fonts and scripts, which a checkout lacks at first; the page works without them."""


def run(arguments: Arguments) -> int:
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise UserError(f"the lab needs {', '.join(missing)}: pip install 'lemmata[lab]'")
    if not 0 <= arguments.port <= 65535:
        raise UserError(f"--port must lie between 0 and 65535, got {arguments.port}")
    with contextlib.ExitStack() as stack:
        listeners = [
            stack.enter_context(contextlib.closing(listener)) for listener in _listen_on_loopback(arguments.port)
        ]
        port = listeners[0].getsockname()[1]
        if arguments.port not in (0, port):
            print(f"port {arguments.port} is taken, so this lab is at {port}", flush=True)
        _serve_pages(listeners, port, arguments)
    return 0


def _listen_on_loopback(wanted: int) -> list[socket.socket]:
    """Sockets that only this machine reaches, at one port.

    Browsers look for localhost at ::1, too: whoever listened there would be taken for the lab.
    """
    last = min(wanted + TRIED, 65535)
    for port in (*range(wanted, last + 1), *[0] * TRIED) if wanted else [0] * TRIED:
        if not (listener := _bind_socket(socket.AF_INET, HOST, port)):
            continue
        port = listener.getsockname()[1]
        try:
            other = _bind_socket(socket.AF_INET6, "::1", port)
        except OSError:  # this machine has no IPv6
            return [listener]
        if other:
            return [listener, other]
        listener.close()
    raise UserError("no port is free")


def _bind_socket(family: socket.AddressFamily, host: str, port: int) -> socket.socket | None:
    """A socket that listens there; None if the port is taken."""
    # Named TCP, asyncio lets small answers go at once; else each waits 40 ms for the reader to confirm its headers.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # else the last lab's port stays taken for a minute; Windows means another thing by it
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)  # now: two sockets may be bound to one port until one of them listens
        return listener
    except OSError as error:
        listener.close()
        if error.errno == errno.EACCES:
            raise UserError(f"port {port} is reserved by the system: choose one above 1023") from None
        if error.errno != errno.EADDRINUSE:
            raise
        return None


def _serve_pages(listeners: list[socket.socket], port: int, arguments: Arguments) -> None:
    import uvicorn

    from lemmata.lab.site.app import Settings, create_app
    from lemmata.lab.site.connection import Connection

    _set_up_log()
    app = create_app(Settings(port=port, announce=lambda link: print(f"a new link: {link}", flush=True)))

    class Server(uvicorn.Server):
        fetching: asyncio.subprocess.Process | None = None
        doorway: Path | None = None

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"The lab is open at {app.state.session.link}\nCtrl-C ends it.", flush=True)
            if not arguments.no_browser and _has_screen():
                self.open_doorway()
            if not arguments.offline:
                self.fetching = await _fetch_assets()

        def open_doorway(self) -> None:
            with contextlib.suppress(OSError):  # no room for a file: the link is printed above
                self.doorway = _write_doorway(app.state.session.another_link())
                asyncio.get_running_loop().call_later(DOORWAY_SECONDS, self.close_doorway)
                _open_browser(self.doorway)

        def close_doorway(self) -> None:
            if self.doorway:
                self.doorway.unlink(missing_ok=True)

        async def shutdown(self, sockets: Any = None) -> None:
            self.close_doorway()
            if self.fetching:
                _kill_process(self.fetching)
            # Jobs first: a page that follows one keeps its connection open until the job is over.
            await asyncio.gather(app.state.jobs.close(), super().shutdown(sockets))

    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nobody stands between the browser and us
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = Server(config)
    with _hang_up(server):
        server.run(listeners)


@contextlib.contextmanager
def _hang_up(server: Any) -> Iterator[None]:
    """A closed terminal window ends the lab like Ctrl-C does."""
    if not hasattr(signal, "SIGHUP") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGHUP)
    if before != signal.SIG_IGN:  # nohup lemmata serve
        signal.signal(signal.SIGHUP, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _set_up_log() -> None:
    """Warnings of ours as one line on stderr; --debug shows everything."""
    if "--debug" in sys.argv:
        logging.basicConfig(level=logging.DEBUG)
    else:
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def _has_screen() -> bool:
    """Without one Python would take a text browser in this very terminal."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


def _write_doorway(link: str) -> Path:
    """A file that only this user can read, and that leads a browser to the link.

    Every user of a machine sees the command lines of all: a browser that is started with the link itself would show
    the key. The file lies in the home folder, under a plain name, since browsers that came as a snap see nothing else.
    """
    home = os.path.expanduser("~")
    place = home if os.access(home, os.W_OK) else None  # else the folder for temporary files
    handle, name = tempfile.mkstemp(prefix="lemmata-", suffix=".html", dir=place)  # for this user alone: 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(DOORWAY.format(html.escape(link)))
    return Path(name)


def _open_browser(doorway: Path) -> None:
    threading.Thread(target=webbrowser.open, args=(doorway.as_uri(),), daemon=True).start()


async def _fetch_assets() -> asyncio.subprocess.Process:
    """In a process of its own: the page does not wait for it, and closing the lab ends it with all it started."""
    command = (sys.executable, "-P", "-m", "lemmata.lab.site.assets")
    return await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True)


def _kill_process(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
