"""WordPiece: the greedy walk among all walks, and the pairs that training merges, counted anew at every step."""

import itertools
from collections import Counter
from fractions import Fraction

from lemmata.judge import all_of, always, claim, exactly, lie
from lemmata.transformers.pair_merging import merged_pairs
from lemmata.transformers.wordpiece import SpecialTokens, WordPiece

LETTERS = "abc"


def _piece_walks(word, vocab, prefix, start=0):
    """All ways to take pieces off a word from its beginning until it is at an end or no piece fits."""
    ends = [end for end in range(start + 1, len(word) + 1) if (prefix if start else "") + word[start:end] in vocab]
    return [[end, *rest] for end in ends for rest in _piece_walks(word, vocab, prefix, end)] or [[]]


def all_walks(walks, length):
    return walks


def whole_splits(walks, length):
    return [walk for walk in walks if length in walk] or [[]]


def likelihood_gain(both, first, second):
    return Fraction(both, first * second)


def raw_count(both, first, second):
    return Fraction(both)


def chance_of_second(both, first, second):
    return Fraction(both, first)


@claim("transformer.wordpiece")
@lie("the shortest piece is taken first", longest=min)
@lie("another split is sought where the greedy walk ends early", among=whole_splits)
@lie("pieces within a word are written as those at its beginning", prefix="")
@lie("the most frequent pair is merged", score=raw_count)
@lie("the pair whose second piece follows the first most surely is merged", score=chance_of_second)
def greedy_pieces_of_likely_pairs(draw, longest=max, among=all_walks, prefix="##", score=likelihood_gain):
    """All words up to five letters over drawn vocabularies; then drawn texts, whose pairs are counted from scratch."""
    pieces = ["".join(letters) for size in (1, 2, 3) for letters in itertools.product(LETTERS, repeat=size)]
    words = ["".join(letters) for size in range(1, 6) for letters in itertools.product(LETTERS, repeat=size)]
    found, expected, joined = [], [], []
    for fraction in (0.0, 0.2, 0.4, 0.7):
        marked = [mark + piece for piece in pieces for mark in ("", "##")]
        kept = [piece for piece, u in zip(marked, draw.uniform(len(marked)).tolist(), strict=True) if u < fraction]
        tokenizer = WordPiece([*SpecialTokens(), *kept])
        for word in words:
            split = tokenizer.tokenize(word)
            walk = longest(among(_piece_walks(word, set(kept), prefix), len(word)))
            starts = [0, *walk[:-1]]
            parts = [("##" if start else "") + word[start:end] for start, end in zip(starts, walk, strict=False)]
            found.append(split)
            expected.append(parts if walk and walk[-1] == len(word) else ["[UNK]"])
            joined.append(split == ["[UNK]"] or "".join(split).replace("##", "") == word)

    best = []
    for _ in range(8):
        texts = [tuple(LETTERS[n] for n in draw.integers(0, 3, 6).tolist()) for _ in range(8)]
        text = {word: int(draw.integers(1, 20)) for word in texts}
        for pair in merged_pairs(text):
            scores = _pair_scores(text, score)
            best.append(scores[pair] == max(scores.values()))
            text = _merge_pair(text, pair)
    return all_of(
        exactly(found, expected, detail="pieces of all words"),
        always(joined, detail="pieces joined are the word"),
        always(best, detail="merged pairs have the highest score"),
    )


def _pair_scores(text, score):
    alone, both = Counter(), Counter()
    for word, times in text.items():
        for piece in word:
            alone[piece] += times
        for pair in itertools.pairwise(word):
            both[pair] += times
    return {pair: score(times, alone[pair[0]], alone[pair[1]]) for pair, times in both.items()}


def _merge_pair(text, pair):
    """A text whose pieces are separated by blanks, with one pair of them joined from left to right."""
    new = Counter()
    for word, times in text.items():
        parts, rest = [], list(word)
        while rest:
            size = 2 if tuple(rest[:2]) == pair else 1
            parts.append("".join(rest[:size]))
            rest = rest[size:]
        new[tuple(parts)] += times
    return new
