"""Random numbers that are set, kept and given back: the order of the examples, and the state of every generator."""

import contextlib
import functools
import hashlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["batch_indices", "seeded"]


def batch_indices(seed: int, epoch: int, batch: int, size: int, examples: int) -> Tensor:
    """Which examples form a batch: a function of (seed, epoch, batch) alone, so each can be had without the others.

    Every epoch uses every example once, in an order of its own; the last batch may be shorter.

    >>> sorted(torch.cat([batch_indices(0, 7, batch, 4, 10) for batch in range(3)]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    return _epoch_order(seed, epoch, examples)[batch * size : (batch + 1) * size]


@functools.lru_cache(maxsize=2)
def _epoch_order(seed: int, epoch: int, examples: int) -> Tensor:
    # A hash, since the generators of neighbouring seeds are related and epoch 1 of seed 0 is not epoch 0 of seed 1.
    digest = hashlib.sha256(f"order {seed} {epoch}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.randperm(examples, generator=generator)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch, numpy and random start from the seed; outside, nobody notices.

    >>> before = torch.get_rng_state()
    >>> with seeded(3): drawn = torch.rand(1)
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    kept = random_state()
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - what users' own code draws from
    random.seed(seed)
    try:
        yield
    finally:
        restore_random_state(kept)


def random_state() -> dict[str, Any]:
    """The state of every global generator, as tensors and plain numbers."""
    _, key, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    version, internal, following = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": list(torch.cuda.get_rng_state_all()) if torch.cuda.is_available() else [],
        "numpy": [torch.from_numpy(np.asarray(key).astype(np.int64)), int(position), int(has_gauss), float(gauss)],
        "python": [version, torch.tensor(internal), following],
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Take over what `random_state` returned; generators of devices that are not here are left out."""
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])
    key, position, has_gauss, gauss = state["numpy"]
    np.random.set_state(("MT19937", key.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    version, internal, following = state["python"]
    random.setstate((version, tuple(internal.tolist()), following))
