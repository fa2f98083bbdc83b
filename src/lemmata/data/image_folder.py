"""Images of the user's: a file, or a folder with one subfolder for each class."""

from pathlib import Path

import numpy as np

from lemmata.data.image_file import Header, image_header, read_image
from lemmata.data.limits import check_memory, open_regular, read_regular

__all__ = ["read_images"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm")
OTHERS = (".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif")


def read_images(
    path: Path, max_memory: int | None = None, side: int | None = None, colour: bool = False
) -> tuple[np.ndarray, list[str], list[str]]:
    r"""All images below a path, the name of each one's subfolder (or ""), and the files they are from, in order.

    They must have one size, or are brought to squares of `side` pixels. If one has colour, or `colour` is asked for,
    all have: grey ones get three equal channels.

    Shapes:
        images: (images, height, width) uint8 for grey ones, (images, 3, height, width) for colour
    """
    if side is not None and (isinstance(side, bool) or not isinstance(side, int) or side < 1):
        raise ValueError(f"image_size must be a number of pixels, at least 1, got {side!r}")
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    other = next((file for file in files if file.suffix.lower() in OTHERS), None)
    if other:
        raise ValueError(f"{other}: {other.suffix} images are not read here; convert them to PNG or JPEG")
    files = [file for file in files if file.suffix.lower() in SUFFIXES]
    if not files:
        raise ValueError(f"{path} holds no image: .png, .jpg, .pgm or .ppm files in one subfolder for each class")
    headers = [_file_header(file, max_memory) for file in files]
    colour = colour or any(header.colour for header in headers)
    for file, header in zip(files, headers, strict=True):
        if side is None and header[:2] != headers[0][:2]:
            sizes = f"is {_header_size(header)}, but {files[0].name} is {_header_size(headers[0])}"
            raise ValueError(f"{file} {sizes}: bring all images to one size, as image_size=32 (--image-size 32) does")
    height, width = (side, side) if side else (headers[0].height, headers[0].width)
    shape = (3, height, width) if colour else (height, width)
    # Bytes here, and as numbers of 32 bits for the network.
    needed = 5 * len(files) * int(np.prod(shape))
    check_memory(f"{path}: {len(files)} images of {width} x {height}", needed, max_memory)
    images = np.empty((len(files), *shape), np.uint8)
    for number, file in enumerate(files):
        try:
            image = read_image(read_regular(file, max_memory), max_memory, side, colour)
            images[number] = image.transpose(2, 0, 1) if colour else image
        except (ValueError, OSError) as error:
            raise ValueError(f"{file}: {error}") from None
    names = [file.relative_to(path).parts[0] if len(file.relative_to(path).parts) > 1 else "" for file in files]
    return images, names, [str(file) for file in files]


def _file_header(file: Path, max_memory: int | None) -> Header:
    try:
        with open_regular(file) as opened:
            return image_header(opened, max_memory)
    except (ValueError, OSError) as error:
        raise ValueError(f"{file}: {error}") from None


def _header_size(header: Header) -> str:
    return f"{header.width} x {header.height}"
