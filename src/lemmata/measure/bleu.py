r"""BLEU: how many runs of words a translation shares with that of a person."""

import math
from collections import Counter
from collections.abc import Sequence

from lemmata import validate

__all__ = ["corpus_bleu"]


def corpus_bleu(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]], longest: int = 4) -> float:
    r"""The geometric mean of the shares of 1- to 4-word runs that the references have too, from 0 to 100.

    $$ 100 \cdot \min\big(1, e^{1 - r/h}\big) \prod_{n=1}^{4} p_n^{1/4}, \qquad
       p_n = \frac{\sum_i |\text{runs of } n \text{ words in both}|}{\sum_i |\text{runs in translation } i|} $$

    Each run counts at most as often as the reference has it; $h$ and $r$ are the words of all translations and of all
    references, so that leaving out what is difficult does not pay. Counts are summed over all sentences before they are
    divided, and nothing is smoothed: without a common run of four words the score is 0. Sentences come as lists of
    words; scores of texts that were cut into words differently cannot be compared.

    Source: Papineni et al. 2002.

    >>> corpus_bleu([["the", "cat", "sat", "down"]], [["the", "cat", "sat", "down", "again"]])
    77.8800783071405
    """
    if len(translations) != len(references) or not references:
        raise ValueError(f"translations and references must be as many, got {len(translations)} and {len(references)}")
    validate.count("longest", longest)
    for name, sentences in (("translations", translations), ("references", references)):
        if any(isinstance(sentence, str) for sentence in sentences):
            raise TypeError(f"{name} must hold lists of words, got a string: split it into words")
    logarithms = [_log_share(translations, references, n) for n in range(1, longest + 1)]
    ours, theirs = sum(map(len, translations)), sum(map(len, references))
    brevity = min(0.0, 1 - theirs / ours) if ours else -math.inf
    return 100 * math.exp(sum(logarithms) / longest + brevity)


def _log_share(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]], n: int) -> float:
    common = total = 0
    for translation, reference in zip(translations, references, strict=True):
        ours, theirs = _word_runs(translation, n), _word_runs(reference, n)
        common, total = common + (ours & theirs).total(), total + ours.total()
    return math.log(common / total) if common else -math.inf


def _word_runs(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
