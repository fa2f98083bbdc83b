r"""Random numbers for many chains: each chain has a stream of its own, whatever runs beside it."""

import hashlib
import math
from typing import Any

from torch import Generator, Tensor

from lemmata import validate

__all__ = ["ChainStreams"]

BLOCK = 4096  # numbers of one chain that are drawn at once, of which 64 transitions at most


class ChainStreams:
    r"""Random numbers of `chains` chains, drawn as one tensor, a stream for each.

    Chain $c$ takes its numbers from a generator whose seed is a hash of `seed`, $c$ and the number of the block:
    chain 3 gets the same bits alone as among a thousand, and a run goes on from a position instead of a generator's
    state. `first` is the number of the first chain. What all chains decide together, such as the length of a
    trajectory, comes from `shared`. Kernels take it in place of a torch.Generator.

    Shapes:
        normal(like), uniform(like): (chains, ...) as like; uniform gives (chains,)

    >>> like = torch.zeros(3, 2)
    >>> third = ChainStreams(seed=0, chains=1, first=2)
    >>> torch.equal(ChainStreams(seed=0, chains=3).normal(like)[2:], third.normal(like[2:]))
    True
    """

    def __init__(self, seed: int, chains: int, first: int = 0) -> None:
        self.seed = validate.count("seed", seed, least=0)
        self.chains = validate.count("chains", chains)
        self.first = validate.count("first", first, least=0)
        self._taken: dict[str, int] = {}  # how many have been taken of each kind
        self._blocks: dict[str, Tensor] = {}

    def normal(self, like: Tensor) -> Tensor:
        """Normal numbers of the shape, dtype and device of `like`, whose first axis are the chains."""
        return self._next_numbers("normal", like)

    def uniform(self, like: Tensor) -> Tensor:
        """One number in [0, 1) for each chain, in the dtype and on the device of `like`."""
        return self._next_numbers("uniform", like[:, :0].sum(1) if like.ndim > 1 else like)

    def shared(self) -> float:
        """One number in [0, 1) for all chains together."""
        taken = self._taken.get("shared", 0)
        self._taken["shared"] = taken + 1
        return _hash_of_parts(self.seed, "shared", taken) / 2**63

    def state_dict(self) -> dict[str, Any]:
        """Where the streams stand: plain numbers."""
        return {"seed": self.seed, "first": self.first, "taken": dict(self._taken)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there; the number of chains may be another."""
        self.seed, self.first, self._taken = state["seed"], state["first"], dict(state["taken"])
        self._blocks = {}

    def _next_numbers(self, kind: str, like: Tensor) -> Tensor:
        if len(like) != self.chains:
            raise ValueError(f"the streams are those of {self.chains} chains, got a tensor of {len(like)}")
        shape = tuple(like.shape[1:])
        name = f"{kind} {'x'.join(map(str, shape))} {like.dtype}"
        taken = self._taken.get(name, 0)
        rows = max(1, min(64, BLOCK // max(1, math.prod(shape))))
        if taken % rows == 0 or name not in self._blocks:
            self._blocks[name] = self._draw_block(kind, name, taken // rows, (rows, *shape), like)
        self._taken[name] = taken + 1
        return self._blocks[name][taken % rows]

    def _draw_block(self, kind: str, name: str, number: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Numbers for so many transitions: (transitions, chains, ...)."""
        block = like.new_empty(self.chains, *shape)
        generator = Generator(like.device)
        for chain in range(self.chains):
            generator.manual_seed(_hash_of_parts(self.seed, name, self.first + chain, number))
            if kind == "normal":
                block[chain].normal_(generator=generator)
            else:
                block[chain].uniform_(generator=generator)
        return block.transpose(0, 1).contiguous()


def _hash_of_parts(*parts: object) -> int:
    """63 bits that depend on all the parts, the same on every machine."""
    text = "/".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
