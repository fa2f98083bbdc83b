"""`lemmata serve`: the lab on this machine, at a link that only this terminal shows."""

import asyncio
import contextlib
import errno
import importlib.util
import logging
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lemmata.lab.cli import UserError

NEEDED = ("fastapi", "uvicorn", "jinja2")
HOST = "127.0.0.1"
TRIED = 50  # ports after the wanted one, before any free port will do


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
    with contextlib.closing(_listen(arguments.port)) as listener:
        port = listener.getsockname()[1]
        if arguments.port not in (0, port):
            print(f"port {arguments.port} is taken, so this lab is at {port}", flush=True)
        _serve(listener, port, arguments)
    return 0


def _listen(wanted: int) -> socket.socket:
    """A socket that only this machine reaches."""
    last = min(wanted + TRIED, 65535)
    for port in (*range(wanted, last + 1), 0) if wanted else (0,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # else the last lab's port stays taken for a minute; Windows means another thing by it
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(128)  # now: two sockets may be bound to one port until one of them listens
            return listener
        except OSError as error:
            listener.close()
            if error.errno == errno.EACCES:
                raise UserError(f"port {port} is reserved by the system: choose one above 1023") from None
            if error.errno != errno.EADDRINUSE:
                raise
    raise UserError("no port is free")


def _serve(listener: socket.socket, port: int, arguments: Arguments) -> None:
    import uvicorn

    from lemmata.lab.site.app import Settings, create_app

    _set_up_log()
    app = create_app(Settings(port=port, announce=lambda link: print(f"a new link: {link}", flush=True)))

    class Server(uvicorn.Server):
        fetching: asyncio.subprocess.Process | None = None

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"The lab is open at {app.state.session.link}\nCtrl-C ends it.", flush=True)
            if not arguments.no_browser:
                _browse(app.state.session.link)
            if not arguments.offline:
                self.fetching = await _fetch_assets()

        async def shutdown(self, sockets: Any = None) -> None:
            if self.fetching:
                _kill(self.fetching)
            # Jobs first: a page that follows one keeps its connection open until the job is over.
            await asyncio.gather(app.state.jobs.close(), super().shutdown(sockets))

    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
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
        server.run([listener])


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


def _browse(link: str) -> None:
    """Open the link, unless there is no screen: Python would take a text browser in this very terminal."""
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()


async def _fetch_assets() -> asyncio.subprocess.Process:
    """In a process of its own: the page does not wait for it, and closing the lab ends it with all it started."""
    command = (sys.executable, "-P", "-m", "lemmata.lab.site.assets")
    return await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
