"""Who may do what. Everybody on this machine may read the course; one browser may work, and see what is the user's own.

Other users of this machine can connect to the lab and listen on every other port. A cookie is no secret from them:
browsers send it to every port of a host. So ours only says that a page is to have buttons, and lets a GET make a child
process compute. To press a button, and to see anything of the user's own (runs, weights, logs, pictures), a browser
shows the token. It lies in the browser's storage, which every browser keeps apart for each port, and travels in a
header; where a browser sends no header (a download, a stream of events) the link carries a ticket for that one address.

A name of its own such as x1f3.localhost would keep cookies apart, too, but Safari does not find such names.

Every start makes fresh secrets. The printed link, and the file that `lemmata serve` lets the browser open, carry keys
that work once: whoever shows one gets cookie and token.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence

__all__ = ["HOSTS", "Session"]

HOSTS = ("127.0.0.1", "localhost")


class Session:
    """The secrets of one start of the lab.

    >>> session = Session(8417)
    >>> key = session.link.partition("key=")[2]
    >>> session.admits(key), session.admits(key)
    (True, False)
    """

    def __init__(self, port: int, announce: Callable[[str], None] = lambda link: None):
        self.hosts = frozenset(f"{host}:{port}" for host in HOSTS) | (frozenset(HOSTS) if port == 80 else frozenset())
        self.address = f"http://{HOSTS[0]}:{port}"
        self.announce = announce
        self.cookie_name = f"lemmata-{port}"  # cookies are shared between ports: two labs must not swap theirs
        self.cookie, self.token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._keys: list[str] = []  # not used yet
        self._used: list[str] = []
        self._printed = self._current_key()

    @property
    def link(self) -> str:
        """The link for the person at the terminal; after its use, just the address."""
        return self._open_link(self._printed) if self._printed in self._keys else self.address

    def another_link(self) -> str:
        """A link with a key of its own, for the browser that the lab opens by itself."""
        return self._open_link(self._current_key())

    def admits(self, key: str) -> bool:
        """Whether this is a key that was not used yet, which thereby loses its power."""
        for known in self._keys:
            if _same_secret(key, known):
                self._keys.remove(known)
                self._used.append(known)
                return True
        return False

    def renew(self, key: str) -> None:
        """Whoever opens a used link may have changed browsers: the terminal, which only they see, shows a new one."""
        if self._printed not in self._keys and any(_same_secret(key, used) for used in self._used):
            self._printed = self._current_key()
            self.announce(self.link)

    def knows(self, cookie_headers: Sequence[str]) -> bool:
        """Whether the browser showed our cookie. Another program of this machine may have set one of the same name."""
        pairs = [pair.strip().partition("=") for header in cookie_headers for pair in header.split(";")]
        return any(_same_secret(value, self.cookie) for name, _, value in pairs if name == self.cookie_name)

    def allows(self, tokens: Sequence[str]) -> bool:
        """Whether the request carries the token, once."""
        return len(tokens) == 1 and _same_secret(tokens[0], self.token)

    def ticket(self, path: str) -> str:
        """What lets a link to this address, and to no other, do without the token."""
        return hmac.new(self.token.encode(), path.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def honours(self, path: str, tickets: Sequence[str]) -> bool:
        """Whether the request carries the ticket of its address, once."""
        return len(tickets) == 1 and _same_secret(tickets[0], self.ticket(path))

    def _current_key(self) -> str:
        self._keys.append(secrets.token_urlsafe(32))
        return self._keys[-1]

    def _open_link(self, key: str) -> str:
        return f"{self.address}/open?key={key}"


def _same_secret(given: str, secret: str) -> bool:
    """Equal or not, in a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
