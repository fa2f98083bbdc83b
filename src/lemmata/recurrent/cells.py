r"""Recurrent layers by name, with one meaning of inputs, hidden and memory: for whoever compares them."""

import math
from typing import Any

import torch

from lemmata import validate
from lemmata.recurrent.eigenvalue_ring import log_rate
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.layer import RecurrentLayer
from lemmata.recurrent.lru import LRU
from lemmata.recurrent.lstm import LSTM
from lemmata.recurrent.min_gru import MinGRU
from lemmata.recurrent.min_lstm import MinLSTM

__all__ = ["CELLS", "recurrent_layer"]

CELLS = ("elman", "lstm", "gru", "mingru", "minlstm", "lru")


def recurrent_layer(
    cell: str,
    inputs: int,
    hidden: int,
    memory: int | float = 100,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> RecurrentLayer:
    r"""The layer of this name with so many inputs and hidden units.

    In the layers whose memory is set by their biases or eigenvalues (mingru, minlstm, lru), units start with memories
    spread evenly on a logarithmic scale from 1 to `memory` steps; a unit that keeps the fraction $s$ of its state at
    each step forgets in $1/(1-s)$ steps. A unit of the lru turns at most once within its memory. The others start as
    usual: "gru" is torch's, with the reset after the matrix product.

    >>> recurrent_layer("mingru", 8, 16)
    MinGRU(inputs=8, hidden=16)
    """
    validate.one_of("cell", cell, CELLS)
    validate.number("memory", memory, least=2)
    factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
    if cell == "lru":
        return _spread_memories(LRU(inputs, hidden, **factory_kwargs), memory)
    if cell in ("mingru", "minlstm"):
        kind = MinGRU if cell == "mingru" else MinLSTM
        return kind(inputs, hidden, memory=memory, **factory_kwargs)
    return {"elman": Elman, "lstm": LSTM, "gru": GRU}[cell](inputs, hidden, **factory_kwargs)


@torch.no_grad()
def _spread_memories(layer: LRU, memory: int | float) -> LRU:
    """An LRU on no ring, but with memories of all lengths: on a ring by radius, hardly any unit remembers long."""
    ends, device = (0, math.log10(memory)), layer.nu.device
    steps = torch.logspace(*ends, layer.hidden + 2, dtype=torch.float64, device=device)[1:-1]  # (hidden,)
    layer.nu.copy_(log_rate(1 - 1 / steps))
    layer.phase.copy_(2 * math.pi * torch.rand(layer.hidden, device=device) / steps)
    return layer
