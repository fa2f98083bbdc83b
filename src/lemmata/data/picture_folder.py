"""Pictures of the user's: a file, or a folder with one subfolder for each class."""

from pathlib import Path

import numpy as np

from lemmata.data.netpbm import read_netpbm
from lemmata.data.png import read_png

__all__ = ["read_pictures"]

READERS = {".png": read_png, ".pgm": read_netpbm, ".ppm": read_netpbm}
OTHERS = (".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")


def read_pictures(path: Path) -> tuple[np.ndarray, list[str], list[str]]:
    r"""All pictures below a path, the name of each one's subfolder (or ""), and the files they are from, in order.

    Shapes:
        pictures: (pictures, height, width) uint8 for grey ones, (pictures, 3, height, width) for colour
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    other = next((file for file in files if file.suffix.lower() in OTHERS), None)
    if other:
        raise ValueError(f"{other}: {other.suffix} pictures are not read here; convert them to PNG")
    files = [file for file in files if file.suffix.lower() in READERS]
    if not files:
        raise ValueError(f"{path} holds no picture: .png, .pgm or .ppm files in one subfolder for each class")
    pictures = [read_picture(file) for file in files]
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape != pictures[0].shape:
            sizes = f"is {_size(picture)}, but {files[0].name} is {_size(pictures[0])}"
            raise ValueError(f"{file} {sizes}: bring all pictures to one size")
    names = [file.relative_to(path).parts[0] if len(file.relative_to(path).parts) > 1 else "" for file in files]
    return np.stack(pictures), names, [str(file) for file in files]


def read_picture(file: Path) -> np.ndarray:
    """One picture, colour as three planes."""
    try:
        picture = READERS[file.suffix.lower()](file.read_bytes())
    except (ValueError, OSError) as error:
        raise ValueError(f"{file}: {error}") from None
    return picture if picture.ndim == 2 else np.ascontiguousarray(picture.transpose(2, 0, 1))


def _size(picture: np.ndarray) -> str:
    height, width = picture.shape[-2:]
    return f"{width} x {height}{' in colour' if picture.ndim == 3 else ' grey'}"
