"""Who may press buttons: the person at the terminal that started the lab, and nobody else.

Every start makes three fresh secrets. The printed link carries a key that works once; opening it gives the browser a
cookie that scripts cannot read; pages shown to that cookie carry the token that every button sends along.
"""

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
        self._key: str | None = secrets.token_urlsafe(32)
        self._used: list[str] = []

    @property
    def link(self) -> str:
        """The link for the person at the terminal; after its use, just the address."""
        return f"{self.address}/open?key={self._key}" if self._key else self.address

    def admits(self, key: str) -> bool:
        """Whether this is the key of the printed link, which thereby loses its power.

        Whoever opens a used link again may have changed browsers: the terminal, which only they see, shows a new one.
        """
        if self._key and _same(key, self._key):
            self._used.append(self._key)
            self._key = None
            return True
        if self._key is None and any(_same(key, used) for used in self._used):
            self._key = secrets.token_urlsafe(32)
            self.announce(self.link)
        return False

    def knows(self, cookie_headers: Sequence[str]) -> bool:
        """Whether the browser showed our cookie. Another program of this machine may have set one of the same name."""
        pairs = [pair.strip().partition("=") for header in cookie_headers for pair in header.split(";")]
        return any(_same(value, self.cookie) for name, _, value in pairs if name == self.cookie_name)

    def allows(self, tokens: Sequence[str]) -> bool:
        """Whether the request carries the token, once."""
        return len(tokens) == 1 and _same(tokens[0], self.token)


def _same(given: str, secret: str) -> bool:
    """Equal or not, in a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
