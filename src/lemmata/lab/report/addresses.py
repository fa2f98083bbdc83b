"""From the addresses of the lab to files of the report: where a page lies, and what its links become."""

import re
from collections.abc import Container
from html import escape, unescape
from posixpath import dirname, relpath
from urllib.parse import parse_qs, urlsplit

from lemmata.lab.site.files import EDITION

__all__ = ["file_of", "relinked"]

# A script would ask the lab for what only the lab can do; the pages read without.
SCRIPT = re.compile(r"[ \t]*<script\b[^>]*></script>\n?")
LINK = re.compile(r'\b(href|src)="(/[^"]*)"')


def file_of(address: str) -> str:
    """The file of a page or of one of its parts.

    >>> file_of("/"), file_of("/claim/hopfield.energy"), file_of("/claim/hopfield.energy/figure.svg")
    ('index.html', 'claim/hopfield.energy.html', 'claim/hopfield.energy.svg')
    >>> file_of("/atlas?chapter=connectionism"), file_of("/source/003#hopfield.energy")
    ('atlas.html#connectionism', 'source/003.html#hopfield.energy')
    """
    parts = urlsplit(address)
    path, place = re.sub(rf"^/assets/{EDITION}/", "/assets/", parts.path).strip("/"), parts.fragment
    if path == "atlas" and not place:  # a chapter is a place on the one page; other filters have nothing to stand for
        place = parse_qs(parts.query).get("chapter", [""])[0]
    kept = path.startswith(("static/", "assets/")) or path.endswith(".csv")
    name = re.sub(r"^(claim/.+)/figure\.(svg|csv)$", r"\1.\2", path)
    if name == path and not kept:
        name = f"{path or 'index'}.html"
    return f"{name}#{place}" if place else name


def relinked(page: str, address: str, known: Container[str]) -> str:
    """A page whose links lead from its own file to the others; `known` are the files that there are.

    >>> relinked('<a href="/atlas">Atlas</a><script src="/static/site.js"></script>', "/source/003", {"atlas.html"})
    '<a href="../atlas.html">Atlas</a>'
    """
    folder = dirname(file_of(address)) or "."

    def lead(found: re.Match[str]) -> str:
        name, hash, place = file_of(unescape(found[2])).partition("#")
        if name not in known:
            raise ValueError(f"the page {address} leads to {found[2]}, which the report does not have")
        return f'{found[1]}="{escape(relpath(name, folder) + hash + place)}"'

    return LINK.sub(lead, SCRIPT.sub("", page))
