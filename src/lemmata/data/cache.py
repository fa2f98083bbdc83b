"""Where fetched sets lie. On its own, since a listing asks this and must import nothing heavy."""

from pathlib import Path

from lemmata.files import cache_folder

__all__ = ["cached_path"]


def cached_path(name: str) -> Path:
    """Where a fetched set lies once it is here, as arrays in an npz file.

    >>> cached_path("mnist").name
    'mnist.npz'
    """
    return cache_folder() / "data" / f"{name}.npz"
