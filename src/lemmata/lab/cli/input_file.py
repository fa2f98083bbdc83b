"""Examples from a file of the user's: arrays of numpy or rows of numbers, checked against the training examples."""

import csv
import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch

from lemmata.data.examples import Examples

KINDS = (".npy", ".npz", ".csv")
# What damaged, foreign and huge files make the standard library and numpy raise.
UNREADABLE = (ValueError, EOFError, OSError, MemoryError, OverflowError, csv.Error, zlib.error, zipfile.BadZipFile)
UNREADABLE += (KeyError, SyntaxError, RuntimeError, NotImplementedError, tokenize.TokenError, struct.error)


def read_examples(path: Path, like: Examples) -> Examples:
    """The examples of a file in the shape of `like`, with targets if the file has them."""
    if path.suffix not in KINDS:
        raise ValueError(f"--input must end in {', '.join(KINDS)}, got {path}")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        x, y = _from_csv(path) if path.suffix == ".csv" else _from_numpy(path)
    except UNREADABLE as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split()) or type(error).__name__}") from None
    columns = {"x": _fit_shape(x, like)}
    if y is not None:
        if y.shape != (len(columns["x"]),) or y.dtype.kind not in "iu":
            raise ValueError(f"y in {path} must be an integer for each of the {len(columns['x'])} examples")
        columns["y"] = torch.from_numpy(y.astype(np.int64))
    return Examples(**columns)


def _from_numpy(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    found = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
    if isinstance(found, np.ndarray):
        return found, None
    with found:
        if "x" not in found:
            raise ValueError(f"it has no array x, only {', '.join(found) or 'nothing'}")
        x, y = found["x"], found.get("y")
    for name, array in (("x", x), ("y", y)):
        if not isinstance(array, np.ndarray | None):
            raise ValueError(f"{name} in it is no array")
    return x, y


def _from_csv(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of numbers; the first row may name the columns, and one named y is the target."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise ValueError("it is empty")
    names = rows.pop(0) if not all(map(_is_number, rows[0])) else []
    if len({len(row) for row in [*rows, *([names] if names else [])]}) != 1:
        raise ValueError("its rows have different lengths")
    bad = next(((i, cell) for i, row in enumerate(rows) for cell in row if not _is_number(cell)), None)
    if bad:
        raise ValueError(f"row {bad[0] + 1 + bool(names)} holds {bad[1]!r}, which is no number")
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(names or rows[0]))
    if "y" not in names:
        return table, None
    place = names.index("y")
    y = table[:, place]
    whole = (np.abs(y) < 2**53) & (y == np.round(y))
    return np.delete(table, place, axis=1), y.astype(np.int64) if whole.all() else y


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _fit_shape(x: np.ndarray, like: Examples) -> torch.Tensor:
    """x as (examples, ...) in the shape of one of `like`; a single example, or flattened ones, are taken too."""
    shape = tuple(like.x.shape[1:])
    if x.dtype.kind not in "fiub":
        raise ValueError(f"x must hold numbers, got {x.dtype}")
    if x.shape == shape:
        x = x[None]
    if x.ndim < 1 or len(x) == 0 or x[0].size != like.x[0].numel() or x.shape[1:] not in (shape, (like.x[0].numel(),)):
        wanted = " x ".join(map(str, shape))
        raise ValueError(f"x must hold examples of {wanted} numbers, got an array of shape {x.shape}")
    with np.errstate(over="ignore"):  # what is too large for float32 is named below
        values = torch.from_numpy(x.astype(np.float32)).reshape(-1, *shape)
    if not values.isfinite().all():
        raise ValueError(f"x must be finite, found {int((~values.isfinite()).sum())} values that are not")
    most = float(values.max())
    if len(shape) > 1 and float(like.x.min()) >= 0 and float(like.x.max()) <= 1 < most:
        raise ValueError(
            f"pictures must lie in [0, 1] like those of the training, got {most:g}: divide by the largest grey"
        )
    return values
