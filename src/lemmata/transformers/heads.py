"""What self-attention and cross-attention share: the width of a head, its mask, and heads joined again."""

from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__: list[str] = []


def head_width_of(width: int, heads: int, head_width: int | None) -> int:
    """The width of each head: told, or an equal share."""
    if head_width is not None:
        return validate.count("head_width", head_width)
    if width % heads:
        raise ValueError(f"width must be a multiple of heads, got {width} and {heads}: or say head_width")
    return width // heads


def for_all_heads(mask: Tensor | None) -> Tensor | None:
    """The mask of a batch as one of (batch, heads, queries, keys)."""
    if mask is None:
        return None
    if mask.ndim not in (2, 3):
        raise ValueError(f"mask must be (batch, keys) or (batch, queries, keys), got shape {tuple(mask.shape)}")
    return mask[:, None, None] if mask.ndim == 2 else mask[:, None]


def side_by_side(found: Float[Tensor, "batch heads time head_width"]) -> Float[Tensor, "batch time joined"]:
    """What the heads found at each position, one beside another."""
    return found.transpose(1, 2).flatten(2)
