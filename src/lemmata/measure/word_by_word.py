r"""Translation word by word: a dictionary learnt from pairs of sentences, and what every translator must beat."""

from collections.abc import Iterable, Sequence

import torch

from lemmata import validate

__all__ = ["WordByWord"]

NULL = 0  # a word that every sentence has, for what translates nothing


class WordByWord:
    r"""Each word replaced by its likeliest translation, in place; words that were never seen are copied.

    $$ p(f_{1:n} \mid e_{1:m}) \propto \prod_{j=1}^{n} \sum_{i=0}^{m} t(f_j \mid e_i) $$

    Which word translates which is not told; the expectation-maximisation algorithm finds the table $t$ by sharing each
    target word among the words of its source sentence and an empty word $e_0$, again and again (IBM model 1). The
    likelihood has one maximum, so that the start does not matter.

    Source: Brown et al. 1993.

    >>> pairs = [("the house".split(), "das haus".split()), ("the book".split(), "das buch".split())]
    >>> WordByWord().fit(pairs).translate("the old book".split())
    ['das', 'old', 'buch']
    """

    def __init__(self, rounds: int = 10) -> None:
        self.rounds = validate.count("rounds", rounds)

    def fit(self, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> "WordByWord":
        """Learn the table from pairs of a source and a target sentence, each a list of words."""
        pairs = list(pairs)
        if not pairs:
            raise ValueError("pairs must hold at least one pair of sentences")
        sources, targets = _number_words((s for s, _ in pairs), 1), _number_words((t for _, t in pairs), 0)
        # One row for each target word and each word of its source sentence: its entry in the table, and its place.
        entries, places, place = [], [], 0
        for source, target in pairs:
            known = [NULL, *(sources[word] for word in source)]
            for word in target:
                entries += [number * len(targets) + targets[word] for number in known]
                places += [place] * len(known)
                place += 1
        table, entry = torch.tensor(entries).unique(return_inverse=True)
        where, of_source = torch.tensor(places), table // len(targets)
        chance = torch.ones(len(table), dtype=torch.float64)
        for _ in range(self.rounds):
            share = chance[entry]
            share = share / torch.zeros(place, dtype=share.dtype).index_add(0, where, share)[where]
            chance = torch.zeros_like(chance).index_add(0, entry, share)
            total = torch.zeros(len(sources) + 1, dtype=share.dtype).index_add(0, of_source, chance)
            chance = chance / total[of_source]
        names, best = list(targets), _best_rows(of_source, chance)
        self.dictionary_: dict[str, str] = {
            word: names[int(table[best[number]]) % len(targets)] for word, number in sources.items() if number in best
        }
        return self

    def translate(self, words: Sequence[str]) -> list[str]:
        """The translation of each word, in the order of the source."""
        return [self.dictionary_.get(word, word) for word in words]


def _number_words(sentences: Iterable[Sequence[str]], first: int) -> dict[str, int]:
    distinct = dict.fromkeys(word for sentence in sentences for word in sentence)
    return {word: number for number, word in enumerate(distinct, first)}


def _best_rows(group: torch.Tensor, values: torch.Tensor) -> dict[int, int]:
    """For each group that has rows, that of its largest value, the first of equals."""
    best: dict[int, int] = {}
    listed = values.tolist()
    for row, number in enumerate(group.tolist()):
        if number not in best or listed[row] > listed[best[number]]:
            best[number] = row
    return best
