r"""Tokens are hidden from a model that learns to name them: the Cloze test."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["MaskedTokens", "mask_tokens"]

IGNORED = -100  # the target of a place where nothing is asked: torch's cross-entropy leaves it out


class MaskedTokens(NamedTuple):
    """What the model reads, and what it is asked: the true tokens at the chosen places, -100 elsewhere."""

    x: Int[Tensor, "*batch time"]
    targets: Int[Tensor, "*batch time"]


@system("mask_tokens", title="Masking of tokens", kind="function")
def mask_tokens(
    x: Int[Tensor, "*batch time"],
    vocab_size: int,
    mask_token: int,
    special: Iterable[int] = (),
    fraction: float = 0.15,
    hidden: float = 0.8,
    replaced: float = 0.1,
    generator: torch.Generator | None = None,
) -> MaskedTokens:
    r"""Choose a `fraction` of the tokens; most of these are hidden, some replaced by any token, the rest left.

    $$ P(\text{chosen}) = 0.15, \qquad P([\mathrm{MASK}], \text{random}, \text{unchanged} \mid \text{chosen})
       = (0.8, 0.1, 0.1) $$

    Since a chosen token may be any that is seen, the model must have an opinion of all; and since some are left as
    they were, what it reads is not always wrong. Each token is chosen independently of the others. `special` tokens
    ([CLS], [SEP], [PAD]) are never chosen. A random token is any of the `vocab_size`, the true one included.

    Shapes:
        x: (..., time)    returns: x and targets, both (..., time)

    Claims: bert.mlm
    Source: Devlin et al. 2019.  Differs: the original chooses 15 % of each text exactly, rounded.

    >>> x = torch.tensor([[1, 7, 8, 9, 2]])
    >>> mask_tokens(x, vocab_size=10, mask_token=3, special=[1, 2], fraction=1.0, hidden=1.0, replaced=0.0)
    MaskedTokens(x=tensor([[1, 3, 3, 3, 2]]), targets=tensor([[-100,    7,    8,    9, -100]]))
    """
    validate.tokens("x", x, validate.count("vocab_size", vocab_size))
    validate.count("mask_token", mask_token, least=0, most=vocab_size - 1)
    for name, share in (("fraction", fraction), ("hidden", hidden), ("replaced", replaced)):
        validate.number(name, share, least=0, most=1)
    if hidden + replaced > 1 + 1e-9:
        raise ValueError(f"hidden and replaced must add up to at most 1, got {hidden} and {replaced}")
    x = x if x.dtype.is_signed else x.long()  # IGNORED is below zero
    where, never = x.device, torch.tensor(list(special), dtype=x.dtype, device=x.device)
    chosen = (torch.rand(x.shape, generator=generator, device=where) < fraction) & ~torch.isin(x, never)
    fate = torch.rand(x.shape, generator=generator, device=where)
    other = torch.randint(vocab_size, x.shape, generator=generator, device=where, dtype=x.dtype)
    read = torch.where(chosen & (fate < hidden), mask_token, x)
    read = torch.where(chosen & (fate >= hidden) & (fate < hidden + replaced), other, read)
    return MaskedTokens(read, x.where(chosen, IGNORED))
