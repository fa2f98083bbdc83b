r"""Pieces of words from pairs that stand side by side: how WordPiece and byte-pair encoding learn vocabularies."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from lemmata import validate

__all__ = ["merged_pairs"]

Pair = tuple[str, str]


def merged_pairs(
    words: Mapping[tuple[str, ...], int],
    by: str = "likelihood",
    min_freq: int = 1,
    join: Callable[[str, str], str] = str.__add__,
) -> Iterator[Pair]:
    r"""The pairs of pieces that are merged one after another, each the best of its moment, until none is left.

    $$ \text{likelihood: } \frac{\mathrm{count}(ab)}{\mathrm{count}(a)\,\mathrm{count}(b)}, \qquad
       \text{count: } \mathrm{count}(ab) $$

    `words` says how often each word, given as its pieces, occurs. Merging a pair that is more frequent than its parts
    would have it by chance is what raises the likelihood of the text under independent pieces most for each occurrence;
    since that is a ratio, rare pairs win, and `min_freq` keeps out those that are too rare to count on. Of equal
    scores the more frequent pair wins, then the one that comes first in the alphabet: the same text gives the same
    pairs everywhere.

    Claims: transformer.wordpiece
    Source: Schuster and Nakajima 2012 (likelihood); Sennrich, Haddow and Birch 2016 (count).

    >>> words = {("h", "u", "g"): 10, ("p", "u", "g"): 5, ("p", "u", "n"): 12, ("b", "u", "n"): 4}
    >>> words |= {("h", "u", "g", "s"): 5}
    >>> next(merged_pairs(words, by="likelihood")), next(merged_pairs(words, by="count"))
    (('g', 's'), ('u', 'g'))
    """
    validate.one_of("by", by, ("likelihood", "count"))
    validate.count("min_freq", min_freq)
    state = _Text(words)
    while (best := state.best(by, min_freq)) is not None:
        yield best
        state.merge(best, join(*best))


def several_texts(texts: Iterable[str]) -> Iterable[str]:
    """Texts to learn from; one text by itself would be taken for as many as it has characters."""
    if isinstance(texts, str):
        raise TypeError("texts must be several texts, got one string: write [text]")
    return texts


def with_merged(word: list[str], pair: Pair, piece: str) -> list[str]:
    """The pieces of a word with a pair of them written as one, wherever it stands, from left to right."""
    merged, place = [], 0
    while place < len(word):
        found = (*word[place : place + 2],) == pair
        merged.append(piece if found else word[place])
        place += 1 + found
    return merged


class _Text:
    """A text as counted words, with the counts of its pieces and pairs, kept as pairs are merged."""

    def __init__(self, words: Mapping[tuple[str, ...], int]) -> None:
        self.words = [list(word) for word in words]
        self.times = list(words.values())
        self.where: defaultdict[Pair, set[int]] = defaultdict(set)
        self.pieces: dict[str, int] = {}
        self.pairs: dict[Pair, int] = {}
        self.names: list[Pair] = []
        # What the search for the best pair reads, in the order of the pairs and pieces above.
        self.together, self.alone = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.parts = np.zeros((0, 2), dtype=np.int64)
        changes = _Changes()
        for index in range(len(self.words)):
            self._count_pairs(index, 1, changes)
        self._apply_changes(changes)

    def _count_pairs(self, index: int, sign: int, changes: "_Changes") -> None:
        """Note what one word adds to the counts, or takes away."""
        word, times = self.words[index], sign * self.times[index]
        for piece in word:
            changes.pieces[piece] += times
        for pair in itertools.pairwise(word):
            changes.pairs[pair] += times
            if sign > 0:
                self.where[pair].add(index)

    def _apply_changes(self, changes: "_Changes") -> None:
        """Bring the counts up to date; pieces and pairs that are new are numbered."""
        pieces = [self.pieces.setdefault(piece, len(self.pieces)) for piece in changes.pieces]
        pairs = [self.pairs.setdefault(pair, len(self.pairs)) for pair in changes.pairs]
        new = [pair for pair, number in zip(changes.pairs, pairs, strict=True) if number >= len(self.names)]
        self.names += new
        parts = [(self.pieces[first], self.pieces[second]) for first, second in new]
        self.parts = np.concatenate([self.parts, np.array(parts, dtype=np.int64).reshape(-1, 2)])
        self.together = np.concatenate([self.together, np.zeros(len(new), dtype=np.int64)])
        self.alone = np.concatenate([self.alone, np.zeros(len(self.pieces) - len(self.alone), dtype=np.int64)])
        if pieces:
            self.alone[pieces] += list(changes.pieces.values())
        if pairs:  # words of one character have none
            self.together[pairs] += list(changes.pairs.values())

    def best(self, by: str, min_freq: int) -> Pair | None:
        """The pair to merge next, or None where no pair is frequent enough."""
        if by == "count":
            score = self.together.astype(np.float64)
        else:  # a pair that has vanished may be of a piece that has: 0 / 1 then
            score = self.together / np.maximum(self.alone[self.parts].prod(1), 1)
        score[self.together < min_freq] = -1.0
        if len(score) == 0 or (highest := score.max()) < 0:
            return None
        # Quotients of integers are rounded the same way everywhere, so equal scores are equal here.
        ties = np.flatnonzero(score == highest).tolist()
        return min((-self.together[each], self.names[each]) for each in ties)[1]

    def merge(self, pair: Pair, piece: str) -> None:
        """Write a pair as one piece wherever it stands, from left to right."""
        changes = _Changes()
        for index in self.where.pop(pair):
            self._count_pairs(index, -1, changes)
            self.words[index] = with_merged(self.words[index], pair, piece)
            self._count_pairs(index, 1, changes)
        self._apply_changes(changes)


class _Changes:
    """By how much counts change when a pair is merged."""

    def __init__(self) -> None:
        self.pieces: defaultdict[str, int] = defaultdict(int)
        self.pairs: defaultdict[Pair, int] = defaultdict(int)
