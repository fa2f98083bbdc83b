r"""Patches: a picture as a sequence of small squares, each a token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system

__all__ = ["PatchEmbedding", "cut_into_patches"]


def sides_of(name: str, value: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width, told as one number or as two.

    >>> sides_of("patch_size", 16), sides_of("patch_size", (16, 8))
    ((16, 16), (16, 8))
    """
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(f"{name} must be one number or (height, width), got {value!r}")
        return validate.count(f"{name}[0]", value[0]), validate.count(f"{name}[1]", value[1])
    return validate.count(name, value), value


def cut_into_patches(
    x: Float[Tensor, "batch channels height width"], patch_size: int | tuple[int, int]
) -> Float[Tensor, "batch patches entries"]:
    """The patches of pictures, row by row, each as a vector: all pixels of a channel, channel after channel.

    >>> cut_into_patches(torch.arange(16.0).reshape(1, 1, 4, 4), 2)[0, :2].tolist()
    [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    """
    height, width = sides_of("patch_size", patch_size)
    if x.ndim != 4:
        raise ValueError(f"x must be (batch, channels, height, width), got shape {tuple(x.shape)}")
    if not min(x.shape[2:]) or x.shape[2] % height or x.shape[3] % width:
        told = f"got {x.shape[2]} x {x.shape[3]} pixels: crop or resize the pictures"
        raise ValueError(f"x must be whole patches of {height} x {width} pixels, {told}")
    cut = x.unflatten(3, (-1, width)).unflatten(2, (-1, height))  # (batch, channels, rows, height, columns, width)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (batch, rows * columns, entries)


@system(
    "patch_embedding",
    title="Patch embedding",
    kind="module",
    example="PatchEmbedding(patch_size=4, channels=3, width=8)(torch.randn(4, 3, 8, 12))",
)
class PatchEmbedding(nn.Module):
    r"""Each patch of $p\times p$ pixels and $q$ channels as a vector: $x_t = V\,\mathrm{vec}(\mathrm{patch}_t) + b$.

    The matrix is kept as the kernels of the convolution that it is, with stride $p$, so that their weights fit; the
    product with the patches, cut out before, is what is computed: it is faster.

    Shapes:
        x: (batch, channels, height, width), whole patches    returns: (batch, patches, token_width)

    Claims: vit.patch_embedding
    Source: Dosovitskiy et al. 2021.

    >>> PatchEmbedding(patch_size=16, channels=3, width=768)(torch.randn(2, 3, 224, 224)).shape
    torch.Size([2, 196, 768])
    """

    def __init__(
        self,
        patch_size: int | tuple[int, int],
        channels: int = 3,
        width: int = 768,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.patch_size = sides_of("patch_size", patch_size)
        validate.count("channels", channels), validate.count("width", width)
        self.project = nn.Conv2d(channels, width, self.patch_size, self.patch_size, device=device, dtype=dtype)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch patches token_width"]:
        images("x", x, self.project.in_channels)
        return functional.linear(cut_into_patches(x, self.patch_size), self.matrix, self.project.bias)

    @property
    def matrix(self) -> Float[Tensor, "token_width entries"]:
        """The matrix V that maps the entries of a patch to a token."""
        return self.project.weight.flatten(1)
