"""Arrays of numpy in the user's files, read without ever running what they hold."""

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

__all__ = ["read_arrays"]

# What damaged, foreign and huge files make the standard library and numpy raise.
UNREADABLE = (ValueError, EOFError, OSError, MemoryError, OverflowError, zlib.error, zipfile.BadZipFile, KeyError)
UNREADABLE += (SyntaxError, RuntimeError, NotImplementedError, tokenize.TokenError, struct.error)


def read_arrays(path: Path, names: Sequence[str] = ("x", "y")) -> dict[str, np.ndarray]:
    """The arrays of these names in an .npz file, of which the first must be there; an .npy file is that one alone.

    Pickled objects are refused.
    """
    try:
        found = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {names[0]: found}
        with found:
            arrays = {name: found[name] for name in names if name in found}
            others = list(found)
    except UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
        ) from None
    if names[0] not in arrays:
        raise ValueError(f"{path} has no array {names[0]}, only {', '.join(others) or 'nothing'}")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # a file in the archive that is none of numpy's comes as bytes
            raise ValueError(f"{path}: {name} in it is no array")
    return arrays
