"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.measure.bleu import corpus_bleu as corpus_bleu
from lemmata.measure.word_by_word import WordByWord as WordByWord

__all__ = [
    "WordByWord",
    "corpus_bleu",
]
