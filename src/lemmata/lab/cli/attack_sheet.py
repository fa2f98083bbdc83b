"""The worst examples of an attack as one picture: what it was, what was added, and what it is taken for now."""

import io
from collections.abc import Sequence

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor, nn

ROWS, SIDE, GAP, LINE = 8, 112, 10, 18  # rows; pixels of a picture's longer side, between pictures, and of a line


def is_image(x: Tensor) -> bool:
    """Whether examples (batch, ...) are images that can be seen: grey or in colour."""
    return x.ndim == 3 or (x.ndim == 4 and x.shape[1] in (1, 3))


def contact_sheet(
    model: nn.Module,
    chosen: Sequence[tuple[Tensor, Tensor, int]],
    names: Sequence[str],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> bytes:
    """A PNG with one row for each image, example and class: original, difference as large as can be, result."""
    least, most = bounds
    high, wide = chosen[0][0].shape[-2:]
    scale = max(1, SIDE // max(high, wide))
    high, wide = scale * high, scale * wide
    column = max(wide, 150) + GAP
    sheet = Image.new("RGB", (3 * column + GAP, LINE + len(chosen) * (high + LINE + GAP) + GAP), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for place, title in enumerate(("image", "difference, amplified", "example")):
        pen.text((GAP + place * column, 2), title, fill="grey", font=font)
    for row, (x, example, own) in enumerate(chosen):
        top = LINE + GAP + row * (high + LINE + GAP)
        shift = (example - x) / (most - least)
        factor = 0.5 / max(float(shift.abs().max()), 1e-9)
        said = [_class_and_confidence(model, x, names), f"x {factor:.3g}", _class_and_confidence(model, example, names)]
        said[0] += "" if own == _class_of(model, x) else f", is {_class_name(own, names)}"
        pictures = [(x - least) / (most - least), 0.5 + factor * shift, (example - least) / (most - least)]
        for place, (values, words) in enumerate(zip(pictures, said, strict=True)):
            left = GAP + place * column
            sheet.paste(_enlarged_picture(values, (wide, high)), (left, top))
            pen.text((left, top + high + 1), words, fill="black", font=font)
    content = io.BytesIO()
    sheet.save(content, "png")
    return content.getvalue()


def _class_probabilities(model: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return model(x[None]).double().softmax(1)[0]


def _class_of(model: nn.Module, x: Tensor) -> int:
    return int(_class_probabilities(model, x).argmax())


def _class_and_confidence(model: nn.Module, x: Tensor, names: Sequence[str]) -> str:
    """The class that is answered, and how sure the classifier is of it."""
    shares = _class_probabilities(model, x)
    return f"{_class_name(int(shares.argmax()), names)} ({float(shares.max()):.0%})"


def _class_name(number: int, names: Sequence[str]) -> str:
    return names[number] if number < len(names) else str(number)


def _enlarged_picture(values: Tensor, size: tuple[int, int]) -> Image.Image:
    """Values in [0, 1], (height, width) or (channels, height, width), each pixel as a square."""
    bytes_of = (values.detach().cpu().double().clamp(0, 1) * 255).round().byte().numpy()
    flat = bytes_of if bytes_of.ndim == 2 else bytes_of[0] if len(bytes_of) == 1 else bytes_of.transpose(1, 2, 0)
    return Image.fromarray(flat).convert("RGB").resize(size, Image.Resampling.NEAREST)
