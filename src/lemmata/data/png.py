r"""Pictures in PNG files, read with nothing but zlib: grey, colour or bitmap, not interlaced."""

import struct
import zlib
from collections.abc import Iterator

import numpy as np

__all__ = ["read_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3}  # PNG's numbers for grey and for colour


def read_png(content: bytes) -> np.ndarray:
    r"""The picture in the bytes of a PNG file, as numbers 0 to 255; a bitmap has 0 and 255 only.

    Shapes:
        returns: (height, width) uint8 for grey pictures, (height, width, 3) for colour

    Source: W3C, Portable Network Graphics (PNG) Specification.  Differs: palettes, transparency, other
    depths than eight bits (or one bit of grey) and interlacing are refused.

    >>> from lemmata.data import stored
    >>> read_png(stored.stored_arrays("photos.npz")["camera"].tobytes()).shape
    (256, 256)
    """
    chunks = list(_chunks(content))
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != 13 or chunks[-1][0] != b"IEND":
        raise ValueError("the picture is damaged: a PNG file has IHDR first and IEND last")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    bitmap = (depth, colour) == (1, 0)
    if not (bitmap or (depth == 8 and colour in CHANNELS)) or interlaced:
        kind = f"depth {depth}, colour type {colour}{', interlaced' if interlaced else ''}"
        raise ValueError(f"the picture must have 8 bits a channel, grey or colour, not interlaced, got {kind}")
    across = -(-width // 8) if bitmap else width  # to the filters eight pixels of a bitmap are one
    rows = _inflate(b"".join(body for kind, body in chunks if kind == b"IDAT"), height, across * CHANNELS[colour])
    picture = _unfilter(rows[:, 0], rows[:, 1:].reshape(height, across, CHANNELS[colour]))
    if bitmap:
        return np.unpackbits(picture[:, :, 0], axis=1, count=width) * np.uint8(255)
    return picture[:, :, 0] if colour == 0 else picture


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not content.startswith(SIGNATURE):
        raise ValueError(f"the picture is not a PNG file: it begins with {content[:8]!r}")
    place = len(SIGNATURE)
    while place < len(content):
        length = int.from_bytes(content[place : place + 4])
        named, check = content[place + 4 : place + 8 + length], content[place + 8 + length : place + 12 + length]
        if len(check) < 4 or zlib.crc32(named) != int.from_bytes(check):
            raise ValueError(f"the picture is damaged: the checksum at byte {place} is wrong")
        yield named[:4], named[4:]
        place += 12 + length


def _inflate(packed: bytes, height: int, width: int) -> np.ndarray:
    """One row a line, led by the number of its filter."""
    size = height * (1 + width)
    try:
        content = zlib.decompressobj().decompress(packed, size + 1)  # a byte more would already be too many
    except zlib.error:
        raise ValueError("the picture is damaged: its content cannot be decompressed") from None
    rows = np.frombuffer(content, np.uint8)
    if not size or len(rows) != size or (rows.reshape(height, 1 + width)[:, 0] > 4).any():
        raise ValueError("the picture is damaged: its content does not fit its size")
    return rows.reshape(height, 1 + width)


def _unfilter(filters: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Add to each pixel what its filter predicts from its neighbours to the left, above, and above left.

    All three are known once the previous diagonals are, so each diagonal of the picture is restored at one stroke.
    """
    if not filters.any():
        return stored.copy()
    height, width, channels = stored.shape
    picture = np.zeros((height + 1, width + 1, channels), np.int16)  # a frame of zeros above and to the left
    for diagonal in range(height + width - 1):
        row = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        column = diagonal - row
        left, above, corner = picture[row + 1, column], picture[row, column + 1], picture[row, column]
        guesses = [np.zeros_like(left), left, above, (left + above) // 2, _paeth(left, above, corner)]
        picture[row + 1, column + 1] = (stored[row, column] + np.choose(filters[row, None], guesses)) & 255
    return picture[1:, 1:].astype(np.uint8)


def _paeth(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Whichever of the three is nearest to left + above - corner; the first of them where two are equally near."""
    neighbours = np.stack([left, above, corner])
    nearest = np.abs(left + above - corner - neighbours).argmin(0)
    return np.take_along_axis(neighbours, nearest[None], 0)[0]
