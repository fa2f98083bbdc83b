r"""Pictures in the plain formats of Netpbm, PGM (grey) and PPM (colour), as bytes or as text."""

import re

import numpy as np

__all__ = ["read_netpbm"]

KINDS = {b"P2": 1, b"P3": 3, b"P5": 1, b"P6": 3}  # channels; the first two write numbers as text
FIELD = re.compile(rb"(?:\s|#[^\n]*\n)*(\d{1,7})")
LARGEST = 2**28  # values of a picture


def read_netpbm(content: bytes) -> np.ndarray:
    r"""The picture in the bytes of a PGM or PPM file, as numbers 0 to 255.

    Shapes:
        returns: (height, width) uint8 for grey pictures, (height, width, 3) for colour

    Source: the Netpbm manual, pgm(5) and ppm(5).  Differs: more than 8 bits a channel are refused.

    >>> read_netpbm(b"P2 3 1 255  0 128 255")
    array([[  0, 128, 255]], dtype=uint8)
    """
    channels = KINDS.get(content[:2])
    if channels is None:
        raise ValueError(f"the picture is not a PGM or PPM file: it begins with {content[:8]!r}")
    place, fields = 2, []
    for _ in range(3):
        match = FIELD.match(content, place)
        if not match:
            raise ValueError("the picture is damaged: width, height and the largest value must stand first")
        fields.append(int(match[1]))
        place = match.end()
    width, height, largest = fields
    size = width * height * channels
    if not 0 < size <= LARGEST or not 0 < largest < 256:
        raise ValueError(f"the picture must have 1 to 255 as its largest value, got {width} x {height}, {largest}")
    if content[1:2] in b"56":
        values = np.frombuffer(content, np.uint8, offset=min(place + 1, len(content)))[:size]
    else:
        words = re.sub(rb"#[^\n]*", b"", content[place:]).split()[:size]
        values = np.array([int(word) if re.fullmatch(rb"\d{1,3}", word) else 256 for word in words] or [256])
    if len(values) < size or values.max() > largest:
        raise ValueError(f"the picture is damaged: it needs {size} values from 0 to {largest}")
    scaled = (values.astype(np.float64) * 255 / largest).round().astype(np.uint8)
    return scaled.reshape((height, width) if channels == 1 else (height, width, 3))
