"""Patches: agreement with torch's unfold and convolution, and bad input."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.transformers.patches import PatchEmbedding, cut_into_patches


@pytest.mark.parametrize(("side", "height", "width"), [(1, 3, 2), (4, 8, 12), ((2, 3), 4, 9), (5, 5, 5)])
def test_the_patches_are_those_of_unfold(side: int | tuple[int, int], height: int, width: int) -> None:
    x = torch.randn(3, 2, height, width)
    assert torch.equal(cut_into_patches(x, side), functional.unfold(x, side, stride=side).mT)


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # what torch says whenever a switch of oneDNN is set
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_an_embedding_is_a_convolution_with_the_same_weights(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    embed, convolve = PatchEmbedding(4, 3, 16, dtype=dtype), nn.Conv2d(3, 16, 4, stride=4, dtype=dtype)
    embed.project.load_state_dict(convolve.state_dict())
    x = torch.randn(1, 3, 8, 20, dtype=dtype)
    # Some virtual machines announce matrix units for bfloat16 that oneDNN then cannot use: torch's own kernels.
    with torch.backends.mkldnn.flags(enabled=dtype is not torch.bfloat16):
        found, expected = embed(x), convolve(x).flatten(2).mT
    # 48 products are summed in another order, each at most some units in size
    torch.testing.assert_close(found, expected, rtol=0, atol=48 * torch.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 3, 8, 10), "x must be whole patches of 4 x 4 pixels, got 8 x 10 pixels: crop or resize"),
        ((1, 3, 0, 8), "sides of at least 1 pixels"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_pictures_that_do_not_fit_are_refused(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PatchEmbedding(4)(torch.zeros(shape))


@pytest.mark.usefixtures("unchecked")
def test_patches_must_have_sides() -> None:
    with pytest.raises(ValueError, match="patch_size must be"):
        PatchEmbedding(0)
    with pytest.raises(ValueError, match=r"patch_size must be one number or \(height, width\), got \(2, 2, 2\)"):
        PatchEmbedding((2, 2, 2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"x must be \(batch, channels, height, width\)"):
        cut_into_patches(torch.zeros(8, 8), 4)
    with pytest.raises(ValueError, match="whole patches of 4 x 4 pixels, got 0 x 4"):
        cut_into_patches(torch.zeros(1, 1, 0, 4), 4)
    with pytest.raises(TypeError, match=r"use x.float\(\) / 255"):
        PatchEmbedding(4)(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))
