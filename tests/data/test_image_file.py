"""Images of all kinds that people have, and damage, bombs and what cannot be shown, each answered by one sentence."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from lemmata.data import FileChoices, load_file, read_image
from lemmata.data.image_folder import read_images
from lemmata.data.limits import TooLarge

RANDOM = np.random.default_rng(0)
GREY = RANDOM.integers(0, 256, (5, 7), dtype=np.uint8)
COLOUR = RANDOM.integers(0, 256, (5, 7, 3), dtype=np.uint8)
ORIENTATION = 0x0112


def encoded(pixels, kind="PNG", **more):
    file = io.BytesIO()
    (pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)).save(file, kind, **more)
    return file.getvalue()


def chunk(kind, body):
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def declared(width, height, rows=b"\0"):
    """A PNG file that says its size, whatever it holds."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "PPM"])
@pytest.mark.parametrize("pixels", [GREY, COLOUR, GREY[:1, :1]], ids=["grey", "colour", "one pixel"])
def test_what_was_written_comes_back(kind, pixels):
    found = read_image(encoded(pixels, kind))
    assert found.dtype == np.uint8
    assert np.array_equal(found, pixels)


def test_a_photograph_in_jpeg_is_nearly_the_one_that_was_written():
    smooth = np.add.outer(np.arange(32), np.arange(40)).astype(np.uint8)
    for pixels in (smooth, np.stack([smooth, smooth[::-1], smooth], -1)):
        found = read_image(encoded(pixels, "JPEG", quality=95, subsampling=0))
        assert found.shape == pixels.shape
        assert np.abs(found.astype(int) - pixels).max() <= 8


@pytest.mark.parametrize(("orientation", "turned"), [(1, lambda x: x), (3, lambda x: x[::-1, ::-1]), (6, None)])
def test_the_orientation_of_a_camera_is_followed(orientation, turned):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    wanted = np.rot90(COLOUR, -1) if turned is None else turned(COLOUR)
    assert np.array_equal(read_image(encoded(COLOUR, exif=exif.tobytes())), wanted)


def test_bitmaps_palettes_depths_and_opaque_layers_become_bytes():
    bits = GREY > 127
    assert np.array_equal(read_image(encoded(bits)), bits * 255)
    few = Image.fromarray(COLOUR).quantize(8)
    assert np.array_equal(read_image(encoded(few)), np.asarray(few.convert("RGB")))
    assert np.array_equal(read_image(encoded(GREY.astype(np.uint16) * 257)), GREY)
    assert np.array_equal(read_image(encoded(np.dstack([COLOUR, np.full((5, 7), 255, np.uint8)]))), COLOUR)
    assert read_image(b"P3 2 1 15\n# made by hand\n1 0 0  0 15 3").tolist() == [[[17, 0, 0], [0, 255, 51]]]
    assert read_image(encoded(Image.fromarray(COLOUR).convert("CMYK"), "JPEG")).shape == (5, 7, 3)


def test_a_square_is_cut_from_the_middle_and_grey_gets_three_channels():
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 200
    found = read_image(encoded(wide), side=4)
    assert found.shape == (4, 4)
    assert found.min() > 150  # what lies beyond the cut is black
    assert (found[:, 1:3] == 200).all()
    assert np.array_equal(read_image(encoded(GREY), colour=True), np.stack([GREY] * 3, -1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no PNG, JPEG, PGM or PPM file, or is damaged: it begins with b''"),
        (b"GIF89a and more", "it begins with b'GIF89a a'"),
        (encoded(GREY)[:-20], "the image is damaged: "),
        (encoded(COLOUR, "JPEG")[:-30], "the image is damaged: "),
        (encoded(COLOUR, "JPEG")[:300], "the image is damaged: "),
        (declared(7, 5), "the image is damaged: "),
        (encoded(GREY).replace(b"IDAT", b"IDAU"), "damaged: "),
        (b"P5 2 2 255 abc", "the image is damaged: "),
        (b"P2 2 1 9 1 10", "the image is damaged: "),
        (b"P2 2 1 9 1 a", "the image is damaged: "),
        (b"P5 1", "the image is damaged: "),
        (encoded(np.dstack([COLOUR, GREY])), "the image has transparent pixels: lay it on a background first"),
        (declared(46_000, 46_000), "the image has more than 178,956,970 pixels: scale it down"),
        (declared(10_000, 10_000), "the image of 10000 x 10000 needs 600 MB, more than the 100 MB of max_memory"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(content, message):
    with pytest.raises(ValueError, match=message) as refusal:
        read_image(content, max_memory=10**8)
    assert "\n" not in str(refusal.value)


def test_a_path_is_no_content():
    with pytest.raises(TypeError, match=r"content must be the bytes of a file, got str: use file\.read_bytes\(\)"):
        read_image("x.png")


def test_a_flipped_bit_of_the_content_is_noticed():
    small = encoded(GREY)
    for position in range(len(small) - 12):  # the end, which says nothing, aside
        bent = bytearray(small)
        bent[position] ^= 4
        with pytest.raises(ValueError, match="the image"):
            read_image(bytes(bent))


def test_nothing_is_decoded_before_all_sizes_are_known(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(encoded(GREY))
    (tmp_path / "b.png").write_bytes(declared(9000, 9000))
    monkeypatch.setattr("lemmata.data.image_folder.read_image", lambda *_: pytest.fail("decoded"))
    with pytest.raises(ValueError, match=r"b\.png: the image of 9000 x 9000 needs 486 MB"):
        read_images(tmp_path, max_memory=10**8, side=8)
    assert issubclass(TooLarge, ValueError)


@pytest.fixture
def mixed(tmp_path):
    """Photographs of two classes, of all sizes and in two formats, one of them grey."""
    for k in range(12):
        folder = tmp_path / "photos" / ("cat" if k % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.full((20 + k, 30 - k, 3), 20 * k, np.uint8)
        kind = "JPEG" if k % 3 else "PNG"
        (folder / f"{k:02d}.{kind.lower()}").write_bytes(encoded(pixels if k else pixels[..., 0], kind))
    return tmp_path / "photos"


def test_photographs_of_all_sizes_are_resized_by_name_when_they_are_learnt_and_when_they_are_predicted(mixed):
    with pytest.raises(
        ValueError, match=r"is 27 x 23, but 01\.jpeg is 29 x 21: .* as image_size=32 \(--image-size 32\)"
    ):
        load_file(mixed)
    data = load_file(mixed, FileChoices(image_size=8))
    assert data.train.x.shape[1:] == (3, 8, 8)
    kept = type(data.extra["preparation"]).from_json(data.extra["preparation"].to_json())
    one = kept.read(mixed / "cat" / "05.jpeg")
    assert one.x.shape == (1, 3, 8, 8)
    assert abs(float(one.x.mean()) - 100 / 255) < 0.01
    with pytest.raises(ValueError, match="image_size must be a number of pixels, at least 1, got 0"):
        load_file(mixed, FileChoices(image_size=0))
