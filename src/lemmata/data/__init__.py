"""Data sets that come with the package: real, small, free to share (see `embedded/LICENCES.md`)."""

from lemmata.data.digits import digits

__all__ = ["digits"]
