"""Members of archives by exact name, each up to an expected size: nothing is extracted, nothing else is believed."""

import bz2
import contextlib
import gzip
import io
import lzma
import math
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["ArchiveError"]  # the rest is for the loaders of this folder

Limit = Callable[[str], int | None]

LONGEST = 1 << 31  # how far a packed tar is followed in search of its members: four times the largest we know
BLOCK = 1 << 16
# What the readers of Python say to damage, one more surprising than the next: a zip may ask for a seek to before its
# start (OSError), a name may be no text (ValueError), a password may be needed (RuntimeError).
DAMAGE = (
    *(OSError, ValueError, LookupError, ArithmeticError, EOFError, RuntimeError),
    *(struct.error, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
)
PACKED = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open, b"BZh": bz2.open}
IDX_KINDS = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class ArchiveError(ValueError):
    """An archive that is damaged, too large or not what it should be; its message is one line."""


def members(path: Path, limit: Limit) -> Iterator[tuple[str, bytes]]:
    """The wanted members of a folder, a zip (also a wheel), a tar (also an npm tarball) or a .deb, as they come.

    `limit` tells how many bytes a member of exactly this name may have, or None for what is not wanted; the `get` of a
    dictionary will do. A name is only compared, never used as a path. A file whose own name is wanted is given whole.
    """
    if path.is_dir():
        for child in sorted(path.iterdir()):
            if child.is_file() and limit(child.name) is not None:
                yield from members(child, limit)
        return
    with open(path, "rb") as file:
        if (most := limit(path.name)) is not None:
            yield path.name, _read_bounded(file, most, path.name)
        else:
            yield from members_of(file, str(path), limit)


def members_of(file: IO[bytes], name: str, limit: Limit) -> Iterator[tuple[str, bytes]]:
    """The same for an archive that is open."""
    with _archive_errors(name):
        start = file.read(262)
        file.seek(0)
        if start.startswith(b"PK\x03\x04"):
            yield from _from_zip(file, limit)
        elif start.startswith(b"!<arch>\n"):
            yield from _from_tar(_data_of_deb(file), limit)
        elif start[257:] == b"ustar" or any(map(start.startswith, PACKED)):
            yield from _from_tar(file, limit)
        else:
            raise ArchiveError(f"{name} is no archive that is known here: not a folder, zip, wheel, tar or deb")


@contextlib.contextmanager
def _archive_errors(name: str) -> Iterator[None]:
    try:
        yield
    except ArchiveError:
        raise
    except DAMAGE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ArchiveError(f"{name} is damaged or cannot be read: {said}") from error


def _read_bounded(file: Any, most: int, name: str) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise ArchiveError(f"{name} is larger than the {most:,} bytes that it should have at most")
    return content


def _from_zip(file: IO[bytes], limit: Limit) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if (most := limit(info.filename)) is not None:
                with archive.open(info) as member:
                    yield info.filename, _read_bounded(member, most, info.filename)


def _data_of_deb(file: IO[bytes]) -> IO[bytes]:
    """A Debian package is an ar archive of three; the files are in the one called data.tar, packed or not."""
    file.seek(8)
    while len(header := file.read(60)) == 60 and header.endswith(b"`\n"):
        if header.startswith(b"data.tar"):
            return file
        size = header[48:58].strip()
        if not size.isdigit():
            break
        file.seek(int(size) + int(size) % 2, io.SEEK_CUR)
    raise tarfile.ReadError("there is no data.tar inside")


def _from_tar(file: IO[bytes], limit: Limit) -> Iterator[tuple[str, bytes]]:
    start = file.read(6)
    file.seek(-len(start), io.SEEK_CUR)
    unpack = next((unpack for magic, unpack in PACKED.items() if start.startswith(magic)), None)
    stream: Any = _Forward(unpack(file) if unpack else file)  # type: ignore[operator]
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # it would remember every name it passed
            if (most := limit(info.name)) is not None and info.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
                if info.size > most:
                    raise ArchiveError(f"{info.name} is larger than the {most:,} bytes that it should have at most")
                yield info.name, stream.all_of(info.size)


class _Forward:
    """A stream for tarfile that goes only forward, in small steps and not for ever, whatever the headers say."""

    def __init__(self, stream: Any):
        self.stream, self.place = stream, 0

    def tell(self) -> int:
        return self.place

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= BLOCK:
            raise tarfile.ReadError(f"a header of {size:,} bytes is not believed")
        content = self.stream.read(size)
        self.place += len(content)
        if self.place > LONGEST:
            raise tarfile.ReadError(f"more than {LONGEST >> 30} GiB inside")
        return content

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or place < self.place:
            raise tarfile.ReadError("a header points backwards")
        while self.place < place and self.read(min(BLOCK, place - self.place)):
            pass
        return self.place

    def all_of(self, size: int) -> bytes:
        blocks, left = [], size
        while left:
            if not (block := self.read(min(BLOCK, left))):
                raise EOFError("the last file is cut off")
            blocks.append(block)
            left -= len(block)
        return b"".join(blocks)


def gunzip(content: bytes, most: int, name: str) -> bytes:
    """What gzip packed, up to so many bytes.

    >>> gunzip(gzip.compress(b"idx"), most=3, name="x.gz")
    b'idx'
    """
    with _archive_errors(name), gzip.open(io.BytesIO(content)) as file:
        return _read_bounded(file, most, name)


def idx_array(content: bytes) -> np.ndarray:
    r"""The array of an idx file, the format of MNIST: two zeros, the kind, the number of axes, their lengths, the rest.

    >>> idx_array(b"\0\0\x08\x01" + b"\0\0\0\x03" + b"abc")
    array([97, 98, 99], dtype=uint8)
    """
    axes = content[3] if len(content) >= 4 and content[:2] == b"\0\0" and content[2] in IDX_KINDS else 0
    shape = [int.from_bytes(content[4 * axis : 4 * axis + 4], "big") for axis in range(1, axes + 1)]
    if not shape or len(content) < 4 * (axes + 1):
        raise ArchiveError(f"this is no idx file: it begins with {content[:8]!r}")
    return _shaped_array(content, 4 * (axes + 1), np.dtype(IDX_KINDS[content[2]]), tuple(shape), "C")


def idx_bytes(array: np.ndarray) -> bytes:
    r"""The idx file of an array of bytes: what `idx_array` undoes.

    >>> idx_bytes(np.array([97, 98, 99], np.uint8))
    b'\x00\x00\x08\x01\x00\x00\x00\x03abc'
    """
    if array.dtype != np.uint8:
        raise ArchiveError(f"an array of bytes is needed, got {array.dtype}")
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes((0, 0, 0x08, array.ndim)) + lengths + array.tobytes()


def npy_array(content: bytes) -> np.ndarray:
    """The array of an npy file, the member of an npz. What its header says must be what is there; no Python objects."""
    file = io.BytesIO(content)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        shape, columns_first, dtype = readers[np.lib.format.read_magic(file)](file)
    except (ValueError, LookupError, TypeError, SyntaxError, tokenize.TokenError) as error:  # it is written in Python
        raise ArchiveError(f"this is no npy file: {' '.join(str(error).split())}") from error
    if dtype.hasobject:
        raise ArchiveError("this npy file holds Python objects, which are not read")
    return _shaped_array(content, file.tell(), dtype, shape, "F" if columns_first else "C")


def _shaped_array(content: bytes, start: int, dtype: np.dtype, shape: tuple[int, ...], order: Any) -> np.ndarray:
    wanted = math.prod(shape) * dtype.itemsize  # in Python's integers, which do not overflow
    if wanted != len(content) - start:
        raise ArchiveError(f"the header promises {wanted:,} bytes, there are {len(content) - start:,}")
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order=order)
