"""Episodes: few-shot tasks drawn from labelled examples, with a support to learn from and a query to be judged by."""

import hashlib
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.data import Dataset

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system

__all__ = ["Episodes"]


@system("episodes", title="Episodes of few-shot classification", kind="function")
class Episodes(Dataset[dict[str, Tensor]]):
    r"""As many tasks as wanted: N classes at random, K examples of each to learn from, others of each to be judged by.

    $$ \mathcal T = (\text{support } A, \text{query } B), \qquad |A| = NK, \qquad A \cap B = \emptyset $$

    The classes of an episode are numbered anew from 0, in a random order: a head that remembered names would be wrong.
    Episode i is a function of (seed, i). `classes` are those that may occur, by default all with enough examples; train
    and test need different ones. A torch Dataset: `fit` and a DataLoader take it; `batch` gives several at once.

    Shapes:
        x: (n, ...), y: (n,)    an episode: x (ways * shots, ...), y (ways * shots,), query_x, query_y likewise

    Claims: meta.episode
    Source: Vinyals et al., Matching networks for one shot learning (2016).

    >>> x, y = torch.arange(60.0)[:, None], torch.arange(60) // 6
    >>> episodes = Episodes(x, y, ways=3, shots=1, queries=2, length=100)
    >>> episode = episodes[7]
    >>> episode["y"].tolist(), episode["query_y"].tolist()
    ([0, 1, 2], [0, 0, 1, 1, 2, 2])
    """

    def __init__(
        self,
        x: Float[Tensor, "n ..."],
        y: Int[Tensor, " n"],
        ways: int = 5,
        shots: int = 1,
        queries: int = 15,
        length: int = 1000,
        classes: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        validate.tensor("x", x)
        self.x, self.y, self.seed = x, y, validate.count("seed", seed, least=0)
        self.ways, self.shots = validate.count("ways", ways, least=2), validate.count("shots", shots)
        self.queries, self.length = validate.count("queries", queries), validate.count("length", length)
        if len(x) != len(y) or y.ndim != 1 or y.is_floating_point():
            raise ValueError(f"y must hold one class for each of {len(x)} examples, got {tuple(y.shape)} of {y.dtype}")
        self.members = {k: (y == k).nonzero()[:, 0] for k in sorted(set(y.tolist()))}
        needed = shots + queries
        able = [k for k, rows in self.members.items() if len(rows) >= needed]
        self.classes = able if classes is None else list(classes)
        if len(set(self.classes)) < ways:
            what = f"classes with {needed} examples" if classes is None else "classes given"
            raise ValueError(
                f"ways must be at most the {len(set(self.classes))} {what}, got {ways}: lower shots or queries"
            )
        if short := sorted(set(self.classes) - set(able)):
            have = len(self.members.get(short[0], ()))
            raise ValueError(
                f"shots and queries must be at most the {have} of class {short[0]}, got {shots} + {queries}"
            )

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, which: int) -> dict[str, Tensor]:
        if not -self.length <= which < self.length:
            raise IndexError(f"there are {self.length} episodes, got {which}")
        digest = hashlib.sha256(f"{self.seed} {which % self.length}".encode()).digest()
        random = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        chosen = torch.randperm(len(self.classes), generator=random)[: self.ways].tolist()
        support, query = [], []
        for k in chosen:
            members = self.members[self.classes[k]]
            rows = members[torch.randperm(len(members), generator=random)[: self.shots + self.queries]]
            support.append(rows[: self.shots])
            query.append(rows[self.shots :])
        names = torch.arange(self.ways)
        return {
            "x": self.x[torch.cat(support)],
            "y": names.repeat_interleave(self.shots),
            "query_x": self.x[torch.cat(query)],
            "query_y": names.repeat_interleave(self.queries),
        }

    def batch(self, which: Sequence[int]) -> Examples:
        """Several episodes at once, one row a task."""
        found = [self[k] for k in which]
        return Examples(**{name: torch.stack([episode[name] for episode in found]) for name in found[0]})
