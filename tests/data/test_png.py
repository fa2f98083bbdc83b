"""The reader of PNG files: all five filters, pictures of all shapes, agreement with pillow, damage in every place."""

import io
import struct
import zlib

import numpy as np
import pytest

from lemmata.data import read_png
from lemmata.data.stored import stored_arrays

PHOTOS = {name: content.tobytes() for name, content in stored_arrays("photos.npz").items()}


def chunk(kind, body):
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def png(rows, width, height, colour=0, depth=8, interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    packed = zlib.compress(rows)
    pieces = chunk(b"IDAT", packed[:7]) + chunk(b"IDAT", packed[7:])  # writers may cut it anywhere
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"tEXt", b"said") + pieces + chunk(b"IEND", b"")


def predicted(kind, left, above, corner):
    """The filters as the standard words them, one number at a time."""
    guess = left + above - corner
    nearest = min((abs(guess - left), 0, left), (abs(guess - above), 1, above), (abs(guess - corner), 2, corner))[2]
    return [0, left, above, (left + above) // 2, nearest][kind]


def encoded(picture, filters):
    """A PNG file of a (height, width, channels) picture whose rows use the given filters."""
    height, width, channels = picture.shape
    framed = np.zeros((height + 1, width + 1, channels), int)
    framed[1:, 1:] = picture
    rows = bytearray()
    for y in range(height):
        rows.append(filters[y])
        for x in range(width):
            for c in range(channels):
                guess = predicted(filters[y], framed[y + 1, x, c], framed[y, x + 1, c], framed[y, x, c])
                rows.append(int(picture[y, x, c] - guess) % 256)
    return png(bytes(rows), width, height, colour={1: 0, 3: 2}[channels])


@pytest.mark.parametrize("shape", [(7, 5, 1), (6, 9, 3), (1, 1, 1), (1, 8, 3), (8, 1, 1)])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, "mixed"])
def test_what_was_filtered_comes_back(shape, kind):
    random = np.random.default_rng(0)
    picture = random.integers(0, 256, shape, dtype=np.uint8)
    filters = random.integers(0, 5, shape[0]) if kind == "mixed" else np.full(shape[0], kind)
    found = read_png(encoded(picture.astype(int), filters.tolist()))
    assert found.dtype == np.uint8
    assert np.array_equal(found, picture[:, :, 0] if shape[2] == 1 else picture)


@pytest.mark.parametrize("name", PHOTOS)
def test_the_photographs_are_read_as_pillow_reads_them(name, tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "photo.png").write_bytes(PHOTOS[name])
    with image.open(tmp_path / "photo.png") as picture:
        assert np.array_equal(read_png(PHOTOS[name]), np.asarray(picture))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the picture is not a PNG file: it begins with b''"),
        (b"GIF89a and more", "the picture is not a PNG file: it begins with b'GIF89a a'"),
        (PHOTOS["cat"][:2000], "the picture is damaged: the checksum at byte 33 is wrong"),
        (PHOTOS["cat"][:-12], "the picture is damaged: a PNG file has IHDR first and IEND last"),
        (PHOTOS["cat"][:8], "the picture is damaged: a PNG file has IHDR first and IEND last"),
        (png(b"\0" * 7, 2, 2), "the picture is damaged: its content does not fit its size"),
        (png(b"\0" * 5, 2, 2), "the picture is damaged: its content does not fit its size"),
        (png(b"\0\1\1\5\1\1", 2, 2), "the picture is damaged: its content does not fit its size"),
        (png(b"", 0, 0), "the picture is damaged: its content does not fit its size"),
        (png(b"\0\1", 1, 1, colour=3), "8 bits a channel, grey or colour, not interlaced, got depth 8, colour type 3"),
        (png(b"\0\1\1", 1, 1, depth=16), "got depth 16, colour type 0"),
        (png(b"\0\1", 1, 1, interlaced=1), "got depth 8, colour type 0, interlaced"),
    ],
)
def test_other_files_are_refused_in_one_sentence(content, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        read_png(content)
    assert str(refusal.value).endswith(message)


def test_content_that_does_not_decompress_is_damage():
    whole = png(b"\0\1", 1, 1)
    broken = whole[: whole.index(b"IDAT") - 4] + chunk(b"IDAT", b"no zlib") + chunk(b"IEND", b"")
    with pytest.raises(ValueError, match="its content cannot be decompressed"):
        read_png(broken)


def test_a_flipped_bit_is_noticed_wherever_it_is():
    small = png(b"\0\1\2\1\1\1", 2, 2)
    for place in range(len(small)):
        bent = bytearray(small)
        bent[place] ^= 4
        with pytest.raises(ValueError, match="the picture"):
            read_png(bytes(bent))


@pytest.mark.parametrize("width", [1, 8, 105])
def test_bitmaps_agree_with_pillow(width):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 2, (7, width)).astype(bool)
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png")
    assert (read_png(file.getvalue()) == pixels * 255).all()
