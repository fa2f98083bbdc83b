"""Arrays of numpy in the user's files, read without ever running what they hold."""

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lemmata.data.limits import TooLarge, check_memory, open_regular

__all__ = ["read_arrays"]

PLAIN = b"\x93NUMPY"  # how an .npy file begins
# What damaged, foreign and huge files make the standard library and numpy raise.
UNREADABLE = (ValueError, EOFError, OSError, MemoryError, OverflowError, zlib.error, zipfile.BadZipFile, KeyError)
UNREADABLE += (SyntaxError, RuntimeError, NotImplementedError, tokenize.TokenError, struct.error)


def read_arrays(path: Path, names: Sequence[str] = ("x", "y"), max_memory: int | None = None) -> dict[str, np.ndarray]:
    """The arrays of these names in an .npz file, of which the first must be there; an .npy file is that one alone.

    Pickled objects are refused, and so are arrays that by their headers take more than `max_memory` bytes (by default
    half of the free memory).
    """
    try:
        with open_regular(path) as file:
            if file.read(len(PLAIN)) == PLAIN:
                file.seek(0)
                check_memory(f"{path}: the array", _declared_bytes(file), max_memory)
                file.seek(0)
                return {names[0]: np.lib.format.read_array(file, allow_pickle=False)}
            file.seek(0)
            arrays, others = _unpack_archive(path, file, names, max_memory)
    except TooLarge:
        raise
    except UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
        ) from None
    if names[0] not in arrays:
        raise ValueError(f"{path} has no array {names[0]}, only {', '.join(others)[:200] or 'nothing'}")
    return arrays


def _unpack_archive(
    path: Path, file: BinaryIO, names: Sequence[str], max_memory: int | None
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of a zip archive, once their headers together are within the limit; and the names of all."""
    with zipfile.ZipFile(file) as archive:
        held = archive.namelist()
        kept = {name: f"{name}.npy" if f"{name}.npy" in held else name for name in names}
        kept = {name: member for name, member in kept.items() if member in held}
        needed = 0
        for name, member in kept.items():
            with archive.open(member) as content:
                if content.read(len(PLAIN)) != PLAIN:
                    raise TooLarge(f"{path}: {name} in it is no array")
            with archive.open(member) as content:
                needed += _declared_bytes(content)
        check_memory(f"{path}: {' and '.join(kept)} in it", needed, max_memory)
        arrays = {}
        for name, member in kept.items():
            with archive.open(member) as content:
                arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
    return arrays, [name.removesuffix(".npy") for name in held]


def _declared_bytes(file: Any) -> int:
    """Bytes of the array by its header, which is small."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"it is of version {version} of numpy's format, not 1 or 2")
    shape, _, dtype = readers[version](file)
    return math.prod(shape) * max(dtype.itemsize, 1)  # in Python's integers, which do not overflow
