r"""Images in PNG, JPEG, PGM and PPM files, read by Pillow as 8 bits a channel, after a look at what they declare."""

import io
import struct
import warnings
import zlib
from typing import BinaryIO, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from lemmata.data.limits import TooLarge, check_memory

__all__ = ["read_image"]

FORMATS = ("PNG", "JPEG", "PPM")
GREY = ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L")  # Pillow's names for modes without colour
BROKEN = (OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, OverflowError, struct.error, zlib.error)
BYTES = {False: 6, True: 20}  # a pixel takes at most on its way through Pillow to an array: 8 bits of grey, or more


class Header(NamedTuple):
    """What an image declares, as it is shown: turned as its EXIF orientation says."""

    width: int
    height: int
    colour: bool


def read_image(
    content: bytes, max_memory: int | None = None, side: int | None = None, colour: bool = False
) -> np.ndarray:
    r"""The image in the bytes of a PNG, JPEG, PGM or PPM file, as numbers 0 to 255; a bitmap has 0 and 255 only.

    An image that by its header takes more than `max_memory` bytes, by default half of the free memory, is refused
    before it is decoded. It is turned as its EXIF orientation says. With `side` it is scaled and cut, around its
    middle, to a square of so many pixels; with `colour` a grey one gets three equal channels.

    Shapes:
        returns: (height, width) uint8 for grey images, (height, width, 3) for colour

    Differs: palettes become colours, 16 bits a channel become 8; transparent pixels are refused, for what they are laid
    on would be a guess.

    >>> from lemmata.data import stored
    >>> photo = stored.stored_arrays("photos.npz")["camera"].tobytes()
    >>> read_image(photo).shape, read_image(photo, side=32, colour=True).shape
    ((256, 256), (32, 32, 3))
    """
    if not isinstance(content, bytes):
        raise TypeError(f"content must be the bytes of a file, got {type(content).__name__}: use file.read_bytes()")
    header = image_header(io.BytesIO(content), max_memory)
    try:
        if content.startswith(b"\x89PNG"):
            with _open_image(io.BytesIO(content)) as image:
                image.verify()  # the checksums, at which decoding does not look
        with _open_image(io.BytesIO(content)) as image:
            turned = _exif_orientation(image) != 1
            shown = _eight_bits(ImageOps.exif_transpose(image) if turned else image, header.colour or colour)
    except Refused:
        raise
    except BROKEN as error:
        raise ValueError(f"the image is damaged: {_one_line(error)}") from None
    if side is not None:
        shown = ImageOps.fit(shown, (side, side), Image.Resampling.BILINEAR)
    return np.array(shown)


def image_header(file: BinaryIO, max_memory: int | None = None) -> Header:
    """What the image in a file declares; none of it is decoded, and what would take too much memory is refused."""
    try:
        with _open_image(file) as image:
            width, height = (
                image.size if _exif_orientation(image) < 5 else image.size[::-1]
            )  # rows and columns exchanged
            header = Header(width, height, image.mode not in GREY)
            deep = image.mode not in ("1", "L")
    except Image.DecompressionBombError:
        raise TooLarge(f"the image has more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels: scale it down") from None
    except Image.UnidentifiedImageError:
        file.seek(0)
        begins = f"it begins with {file.read(8)!r}"
        raise ValueError(f"the image is no PNG, JPEG, PGM or PPM file, or is damaged: {begins}") from None
    except BROKEN as error:
        raise ValueError(f"the image is damaged: {_one_line(error)}") from None
    check_memory(f"the image of {width} x {height}", BYTES[deep] * width * height, max_memory)
    return header


class Refused(ValueError):
    """An image that is sound, and is not what is needed."""


def _open_image(file: BinaryIO) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the memory is looked at here
        return Image.open(file, formats=FORMATS)


def _exif_orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8, as far as it stands before the pixels: Pillow would decode to find a later one."""
    exif = Image.Exif()
    exif.load(image.info.get("exif") or b"")
    found = exif.get(0x0112, 1)
    return found if found in range(1, 9) else 1


def _eight_bits(image: Image.Image, colour: bool) -> Image.Image:
    """Grey or colour with 8 bits a channel, nothing of it transparent."""
    if image.mode.startswith("I"):  # of 16 bits: 65535 becomes 255
        image = Image.fromarray(((np.asarray(image).astype(np.int64) + 128) // 257).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data and image.convert("RGBA").getchannel("A").getextrema()[0] < 255:  # type: ignore[operator]
        raise Refused("the image has transparent pixels: lay it on a background first")
    return image.convert("RGB" if colour else "L")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
