"""`lemmata restore`: undo a blur of an image of yours, with a balance that the image itself decides."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.words import UserError

if TYPE_CHECKING:  # help must not import torch
    from torch import Tensor

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
MOST = 60_000_000  # pixels: some gigabytes of spectra


@dataclass(frozen=True)
class Arguments:
    """Restore an image that was blurred by a motion, by a lens, or by a box.

    For example: lemmata restore blurred.png --blur motion --length 9 --angle 30 --out sharp.png
    """

    image: Annotated[Path, tyro.conf.Positional]
    """The blurred image, a file that Pillow can read."""
    out: Path
    """Where the restored image goes: .png, .jpg, .bmp, .tif or .webp."""
    blur: Literal["motion", "gaussian", "box"] = "motion"
    """What blurred it."""
    length: float = 9.0
    """Of a motion: its length in pixels; of a box: its side, an odd number."""
    angle: float = 0.0
    """Of a motion: its direction in degrees, counter-clockwise from the right."""
    sigma: float = 1.5
    """Of a Gaussian: its standard deviation in pixels."""
    noise: float | None = None
    """Standard deviation of the noise, for white = 1; without it cross-validation chooses the balance."""
    balance: float | None = None
    """The balance between detail and noise, if you want to choose it."""
    json: bool = False
    """Print what was done as JSON."""


def run(arguments: Arguments) -> int:
    if arguments.out.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out must end in {', '.join(SUFFIXES)}, got {arguments.out}")
    if arguments.out.is_dir():
        raise UserError(f"--out must name a file, got the folder {arguments.out}")
    if arguments.noise is not None and arguments.balance is not None:
        raise UserError("give --noise or --balance, not both")
    colours, alpha, deep = _read_colours(arguments.image)
    try:
        sharp, balance, reason = _restore_image(colours, arguments)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    _write_image(arguments.out, sharp, alpha, deep)
    height, width = colours.shape[-2:]
    facts = {"image": str(arguments.image), "out": str(arguments.out), "height": height, "width": width}
    facts |= {"blur": arguments.blur, "balance": balance, "reason": reason}
    if arguments.json:
        print_json(facts)
    else:
        console().print(f"{arguments.out}: {width} x {height} pixels, balance {balance:.3g}: {reason}", soft_wrap=True)
    return 0


def _restore_image(image: "Tensor", arguments: Arguments) -> "tuple[Tensor, float, str]":
    import torch

    from lemmata.vision import Restoration, box_kernel, gaussian_kernel, motion_blur_kernel

    name = "sigma" if arguments.blur == "gaussian" else "length"
    longest, given = max(image.shape[-2:]), getattr(arguments, name)
    if given > longest:  # before a kernel of that size is made
        raise ValueError(f"--{name} must be at most the {longest} pixels of the image's longer side, got {given:g}")
    if arguments.blur == "motion":
        kernel = motion_blur_kernel(arguments.length, arguments.angle)
    elif arguments.blur == "gaussian":
        kernel = gaussian_kernel(arguments.sigma).dense()
    else:
        if arguments.length != int(arguments.length):
            raise ValueError(f"--length of a box must be an odd integer, got {arguments.length:g}")
        kernel = box_kernel(int(arguments.length)).dense()
    restoration = Restoration(kernel, regulariser="gradient")
    with torch.no_grad():
        if arguments.balance is not None:
            return restoration(image, arguments.balance), arguments.balance, "as given"
        by = "cross-validation" if arguments.noise is None else "discrepancy"
        return restoration.restore(image, arguments.noise, by)


def _read_colours(path: Path) -> "tuple[Tensor, Any, bool]":
    """Colours as (channels, height, width) in [0, 1], transparency, which no blur is undone of, and if of 16 bits."""
    import numpy as np
    import torch
    from PIL import Image, ImageOps, UnidentifiedImageError

    if path.is_dir():
        raise UserError(f"{path} is a folder: name an image in it")
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > MOST:
                raise UserError(
                    f"{path} has {opened.width} x {opened.height} pixels, more than {MOST:,}: make it smaller"
                )
            upright = ImageOps.exif_transpose(opened)  # as it is seen: what is written does not say how to turn it
            if upright.mode == "P" and "transparency" in upright.info:
                upright = upright.convert("RGBA")
            alpha = upright.getchannel("A") if "A" in upright.getbands() else None
            deep = upright.mode.startswith("I")  # 16 bits
            if upright.mode == "F":
                raise UserError(f"{path} holds floating-point numbers, whose white is unknown: save it with 16 bits")
            grey = upright.mode in ("1", "L", "LA")
            pixels = np.asarray(upright if deep else upright.convert("L" if grey else "RGB"))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{path} is no image that Pillow can read: {error}") from None
    values = torch.from_numpy(pixels.astype(np.float32)) / (65535 if deep else 255)
    return (values[None] if values.ndim == 2 else values.permute(2, 0, 1)), alpha, deep


def _write_image(path: Path, image: "Tensor", alpha: Any, deep: bool) -> None:
    import io

    import numpy as np
    from PIL import Image

    from lemmata.files import write_whole

    deep = deep and path.suffix.lower() in (".png", ".tif", ".tiff")  # the others hold 8 bits
    values = (image.clamp(0, 1) * (65535 if deep else 255)).round().numpy().astype(np.uint16 if deep else np.uint8)
    made = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
    if alpha is not None and path.suffix.lower() in (".png", ".webp", ".tif", ".tiff"):
        made.putalpha(alpha)
    content = io.BytesIO()
    kind = {".jpg": "jpeg", ".tif": "tiff"}.get(path.suffix.lower(), path.suffix.lower()[1:])
    made.save(content, kind)
    write_whole(path, content.getvalue())
