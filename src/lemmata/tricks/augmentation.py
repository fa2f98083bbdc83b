r"""Augmentation: pictures varied at random while training, a whole batch at a time, each picture in its own way."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["Augment", "Crop", "Cutout", "Flip", "Noise", "Rotate", "Shift", "Transformation", "extended"]


class Transformation(nn.Module):
    """A random change of pictures that acts in training mode and is the identity in evaluation.

    A transformation of your own has one method, `changed(x, generator)`, for pictures (batch, channels, height, width).
    Random numbers come from `generator`, on the pictures' device, or from torch's global one.
    """

    def forward(
        self, x: Float[Tensor, "batch *channels height width"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch *channels out_height out_width"]:
        if validate.tensor("x", x).ndim not in (3, 4) or not x.is_floating_point():
            axes, got = (
                "(batch, height, width) or (batch, channels, height, width)",
                f"{x.dtype} of shape {tuple(x.shape)}",
            )
            cure = ": use x.float() / 255" if x.dtype is torch.uint8 else ""
            raise ValueError(f"x must hold floating-point pictures, {axes}, got {got}{cure}")
        if not self.training or len(x) == 0:
            return self.still(x)
        return self.changed(x, generator) if x.ndim == 4 else self.changed(x[:, None], generator)[:, 0]

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Each picture of (batch, channels, height, width), changed at random."""
        raise NotImplementedError

    def still(self, x: Tensor) -> Tensor:
        """What evaluation sees."""
        return x


@system(
    "augment",
    title="Data augmentation",
    kind="module",
    example="Augment(Shift(2), Flip(), Cutout(3))(torch.randn(4, 3, 8, 8))",
)
class Augment(Transformation):
    r"""Several random changes, one after another; which of them leave a label as it is, only the user can know.

    $$ \{(x_i, y_i)\} \mapsto \bigcup_k \{(\tau_k(x_i), y_i)\} $$

    A transformation is drawn on the fly, anew for each picture of each batch; in evaluation mode pictures pass as they
    are. Everything is computed on the pictures' device in their dtype.

    Shapes:
        x: (batch, height, width) or (batch, channels, height, width)    returns: the same, or as large as a crop

    Claims: aug.transformations
    Source: P. Simard, D. Steinkraus and J. Platt, Best practices for convolutional neural networks (2003);
        A. Krizhevsky, I. Sutskever and G. Hinton, ImageNet classification with deep convolutional networks (2012).

    >>> augment = Augment(Shift(2), Flip(), Rotate(15), Cutout(6))
    >>> augment(torch.rand(8, 28, 28), torch.Generator().manual_seed(0)).shape
    torch.Size([8, 28, 28])
    """

    def __init__(self, *transformations: Transformation) -> None:
        super().__init__()
        for each in transformations:
            if not isinstance(each, Transformation):
                raise TypeError(f"transformations must be transformations such as Flip(), got {each!r}"[:120])
        self.transformations = nn.ModuleList(transformations)

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        for each in self.transformations:
            x = each(x, generator)
        return x

    def still(self, x: Tensor) -> Tensor:
        for each in self.transformations:
            x = each(x)
        return x


class Flip(Transformation):
    """Each picture turned over with probability `p`: left to right, or with `vertical` upside down.

    >>> Flip(p=1.0)(torch.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 2., 1.]]])
    """

    def __init__(self, p: int | float = 0.5, vertical: bool = False) -> None:
        super().__init__()
        self.p, self.axis = validate.fraction("p", p, most=1.0), -2 if validate.flag("vertical", vertical) else -1

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        over = _random_numbers(x, generator, 1, 1, 1) < self.p  # (batch, 1, 1, 1)
        return torch.where(over, x.flip(self.axis), x)

    def extra_repr(self) -> str:
        return f"p={self.p}, vertical={self.axis == -2}"


class Shift(Transformation):
    """Each picture moved by up to `pixels` whole pixels each way; what comes in at the border is `fill`.

    >>> _ = torch.manual_seed(1)
    >>> Shift(1)(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 0.],
             [4., 0.]]])
    """

    def __init__(self, pixels: int, fill: int | float = 0.0) -> None:
        super().__init__()
        self.pixels, self.fill = validate.count("pixels", pixels, least=0), validate.finite_number("fill", fill)

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        wide = functional.pad(x, (self.pixels,) * 4, value=self.fill)
        return _random_windows(wide, x.shape[-2], x.shape[-1], generator)

    def extra_repr(self) -> str:
        return f"pixels={self.pixels}"


class Crop(Transformation):
    """A random window of `size` pixels a side of each picture, which may be padded first; in evaluation the middle one.

    >>> Crop(24)(torch.rand(5, 3, 28, 28)).shape, Crop(24).eval()(torch.rand(5, 28, 28)).shape
    (torch.Size([5, 3, 24, 24]), torch.Size([5, 24, 24]))
    """

    def __init__(self, size: int, padding: int = 0, fill: int | float = 0.0) -> None:
        super().__init__()
        self.size, self.padding = validate.count("size", size), validate.count("padding", padding, least=0)
        self.fill = validate.finite_number("fill", fill)

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return _random_windows(self._pad_images(x), self.size, self.size, generator)

    def still(self, x: Tensor) -> Tensor:
        x = self._pad_images(x)
        top, left = (x.shape[-2] - self.size) // 2, (x.shape[-1] - self.size) // 2
        return x[..., top : top + self.size, left : left + self.size]

    def _pad_images(self, x: Tensor) -> Tensor:
        if min(x.shape[-2:]) + 2 * self.padding < self.size:
            raise ValueError(f"size must be at most that of the padded pictures, got {self.size} for {tuple(x.shape)}")
        return functional.pad(x, (self.padding,) * 4, value=self.fill) if self.padding else x

    def extra_repr(self) -> str:
        return f"size={self.size}, padding={self.padding}"


class Rotate(Transformation):
    """Each picture turned around its middle by up to `degrees` either way, with pixels interpolated between four.

    >>> turned = Rotate(10)(torch.ones(1, 9, 9))
    >>> round(turned[0, 4, 4].item(), 4), turned.min().item() < 1
    (1.0, True)
    """

    def __init__(self, degrees: int | float) -> None:
        super().__init__()
        self.degrees = validate.number("degrees", degrees, least=0, most=180)

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        angle = math.radians(self.degrees) * (2 * _random_numbers(x, generator) - 1)  # (batch,)
        return rotated(x, angle)

    def extra_repr(self) -> str:
        return f"degrees={self.degrees}"


class Noise(Transformation):
    """Normal noise of the given standard deviation on every pixel.

    >>> Noise(0.1)(torch.zeros(2, 50, 50)).std() < 0.11
    tensor(True)
    """

    def __init__(self, sigma: int | float) -> None:
        super().__init__()
        self.sigma = validate.number("sigma", sigma, least=0)

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return torch.add(x, noise, alpha=self.sigma)

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}"


class Cutout(Transformation):
    """A square of `size` pixels a side of each picture replaced by `fill`; its centre is anywhere, the border included.

    Source: T. DeVries and G. Taylor, Improved regularization of convolutional neural networks with cutout (2017).

    >>> int(Cutout(3)(torch.ones(1, 20, 20)).eq(0).sum()) in (4, 6, 9)
    True
    """

    def __init__(self, size: int, fill: int | float = 0.0) -> None:
        super().__init__()
        self.size, self.fill = validate.count("size", size), validate.finite_number("fill", fill)

    def changed(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        inside = []
        for length in x.shape[-2:]:
            first = torch.randint(length, (len(x), 1), generator=generator, device=x.device) - self.size // 2
            pixels = torch.arange(length, device=x.device)
            inside.append((pixels >= first) & (pixels < first + self.size))  # (batch, length)
        hole = inside[0][:, None, :, None] & inside[1][:, None, None, :]  # (batch, 1, height, width)
        return x.masked_fill(hole, self.fill)

    def extra_repr(self) -> str:
        return f"size={self.size}"


@system("extended", title="Data extended by transformations", kind="function")
def extended(
    x: Shaped[Tensor, "points ..."],
    y: Shaped[Tensor, "points ..."],
    transformations: Sequence[Callable[[Tensor], Tensor]],
) -> tuple[Shaped[Tensor, "more ..."], Shaped[Tensor, "more ..."]]:
    r"""All examples under each of several transformations, with their labels: $\bigcup_k \{(\tau_k(x_i), y_i)\}$.

    The originals are among them only if the identity is one of the transformations (`torch.positive`). If they form a
    group, a linear model fitted to the result does not change its answers under any of them.

    Shapes:
        x: (points, ...), y: (points, ...)    returns: both with as many times the points as transformations

    Claims: aug.transformations

    >>> x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([7])
    >>> extended(x, y, [torch.positive, lambda x: x.flip(-1)])
    (tensor([[1., 2.],
            [2., 1.]]), tensor([7, 7]))
    """
    if not transformations:
        raise ValueError("transformations must have one entry or more; torch.positive is the identity")
    if len(x) != len(y):
        raise ValueError(f"y must have an entry for each of {len(x)} points, got {len(y)}")
    parts = [each(x) for each in transformations]
    for number, part in enumerate(parts):
        if len(part) != len(x):
            raise ValueError(f"transformation {number} must keep all {len(x)} points, it returned {len(part)}")
    return torch.cat(parts), torch.cat([y] * len(parts))


def rotated(x: Tensor, angle: Tensor) -> Tensor:
    """Pictures (batch, channels, height, width), each turned counter-clockwise by its angle, in radians."""
    height, width = x.shape[-2:]
    angle = angle.to(torch.promote_types(x.dtype, torch.float32))[:, None, None]  # coarser ones would miss the pixels
    cos, sin = angle.cos(), angle.sin()  # (batch, 1, 1)
    down, right = ((2 * torch.arange(n, device=x.device, dtype=angle.dtype) + 1) / n - 1 for n in (height, width))
    down = down[:, None]  # (height, 1)
    # Where a pixel comes from, in coordinates from -1 to 1, which are longer along the longer side.
    # Written out, as torch's affine_grid multiplies matrices, which autocast does in coarser numbers.
    grid = torch.stack([cos * right - sin * (height / width) * down, sin * (width / height) * right + cos * down], -1)
    return functional.grid_sample(x.to(grid.dtype), grid, align_corners=False).to(x.dtype)


def _random_numbers(x: Tensor, generator: torch.Generator | None, *ones: int) -> Tensor:
    """A number from 0 to 1 for each picture; in float32 at least, so that coarse dtypes draw as finely."""
    dtype = torch.float64 if x.dtype is torch.float64 else torch.float32
    return torch.rand(len(x), *ones, generator=generator, device=x.device, dtype=dtype)


def _random_windows(x: Tensor, height: int, width: int, generator: torch.Generator | None) -> Tensor:
    """A window of this size from a place of its own in each picture."""
    views = x.unfold(2, height, 1).unfold(3, width, 1)  # (batch, channels, down, right, height, width), without a copy
    down, right = (
        torch.randint(room, (len(x),), generator=generator, device=x.device)
        for room in (views.shape[2], views.shape[3])
    )
    return views[torch.arange(len(x), device=x.device), :, down, right]
