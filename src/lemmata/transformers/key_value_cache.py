r"""What attention keeps of the past, so that a token that comes is the only one that must be looked at anew."""

from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = ["FixedCache", "KeyValueCache"]


class KeyValueCache:
    r"""Keys and values of the positions so far, in memory that is taken once.

    Without it, writing $T$ tokens reads $1 + 2 + \dots + T$ of them; with it, $T$.

    Shapes:
        key, value: (batch, heads, time, head_width) are added; all of the past comes back in the same shape

    Claims: transformer.decoder

    >>> cache = KeyValueCache(max_length=8)
    >>> _ = cache.append(torch.ones(1, 2, 5, 4), torch.ones(1, 2, 5, 4))
    >>> keys, values = cache.append(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))
    >>> keys.shape, len(cache)
    (torch.Size([1, 2, 6, 4]), 6)
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = validate.count("max_length", max_length)
        self._length = 0
        self._memory: tuple[Tensor, Tensor] | None = None  # keys and values, taken when the first ones tell their shape

    def __len__(self) -> int:
        return self._length

    @property
    def start(self) -> int:
        """The position of the next key."""
        return self._length

    def append(
        self, key: Float[Tensor, "batch heads time head_width"], value: Float[Tensor, "batch heads time head_width"]
    ) -> tuple[Float[Tensor, "batch heads past head_width"], Float[Tensor, "batch heads past head_width"]]:
        """Keep these too, and give all that there are."""
        end = self._length + key.shape[2]
        if end > self.max_length:
            raise ValueError(f"the cache holds {self.max_length} positions, got {end}: ask for a larger max_length")
        if self._memory is None:
            batch, heads, _, width = key.shape
            longest = (batch, heads, self.max_length)
            self._memory = key.new_empty(*longest, width), value.new_empty(*longest, value.shape[-1])
        keys, values = self._memory
        if len(key) != len(keys):
            raise ValueError(f"the cache is that of {len(keys)} sequences, got {len(key)}")
        keys[:, :, self._length : end] = key
        values[:, :, self._length : end] = value
        self._length = end
        return keys[:, :, :end], values[:, :, :end]

    def buffers(self) -> tuple[Tensor, Tensor]:
        """The memory of keys and values, of which the first positions are filled."""
        if self._memory is None:
            raise ValueError("the cache has taken no memory yet: append to it first")
        return self._memory

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch in this order: what a beam search does with its sequences."""
        if self._memory is None:
            return
        keys, values = self._memory
        if len(rows) != len(keys):
            self._memory = keys[rows], values[rows]
            return
        for each in self._memory:  # only what is filled: the rest need not be moved
            each[:, :, : self._length] = each[rows, :, : self._length]

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` positions."""
        self._length = validate.count("length", length, least=0, most=self._length)


class FixedCache:
    r"""The memory of a `KeyValueCache`, written where a number on the device says, and given as a whole.

    For steps that are recorded once and replayed: nothing of it changes in Python. Whoever uses it masks what has not
    come yet, and moves `start` on.

    Shapes:
        start: (1,) the position of the key that comes
        key, value: (batch, heads, 1, head_width) are written; the whole memory comes back

    >>> cache = KeyValueCache(max_length=8)
    >>> _ = cache.append(torch.ones(1, 2, 5, 4), torch.ones(1, 2, 5, 4))
    >>> keys, _ = FixedCache(cache, torch.tensor([5])).append(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))
    >>> keys.shape, keys[0, 0, :6, 0]
    (torch.Size([1, 2, 8, 4]), tensor([1., 1., 1., 1., 1., 0.]))
    """

    def __init__(self, cache: KeyValueCache, start: Tensor) -> None:
        self.start = start
        self._key, self._value = cache.buffers()
        for memory in (self._key, self._value):
            memory[:, :, len(cache) :] = 0  # even a weight of zero would make NaN of what memory happens to hold

    def append(
        self, key: Float[Tensor, "batch heads 1 head_width"], value: Float[Tensor, "batch heads 1 head_width"]
    ) -> tuple[Float[Tensor, "batch heads past head_width"], Float[Tensor, "batch heads past head_width"]]:
        """Keep these at `start`, and give all memory."""
        return self._key.index_copy_(2, self.start, key), self._value.index_copy_(2, self.start, value)
