"""Text: three plays for language models, verses in two languages for translation, and numbers for their tokens."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import dataset
from lemmata.data.stored import stored_text

__all__ = ["Vocabulary", "shakespeare", "verses", "windows", "words"]

PAD, UNKNOWN, START, END = SPECIAL = ("<pad>", "<unknown>", "<start>", "<end>")


def words(text: str) -> list[str]:
    """The words and marks of a text in lower case.

    >>> words("He is merciful, and lendeth;")
    ['he', 'is', 'merciful', ',', 'and', 'lendeth', ';']
    """
    return re.findall(r"\w+|[^\w\s]", text.lower())


class Vocabulary:
    """Numbers for tokens, which are characters or words: `encode` a text, `decode` its numbers.

    With `<unknown>` among its tokens a vocabulary takes any text; without, it refuses what it does not know. The
    tokens `<pad>`, `<start>` and `<end>` are left out of what is decoded.

    >>> letters = Vocabulary("abc")
    >>> letters.encode("cab"), letters.decode([0, 1])
    (tensor([2, 0, 1]), 'ab')
    """

    def __init__(self, tokens: Iterable[str], of_words: bool = False):
        self.tokens = tuple(tokens)
        self.of_words = of_words
        self.numbers = {token: number for number, token in enumerate(self.tokens)}
        if len(self.numbers) < max(1, len(self.tokens)):
            raise ValueError(f"tokens must be one or more, no two alike, got {len(self.tokens)} with repetitions")

    @classmethod
    def of_texts(cls, texts: Iterable[str], min_freq: int = 1) -> "Vocabulary":
        """The words that occur `min_freq` times or more in texts, the most frequent first, after the special tokens.

        >>> Vocabulary.of_texts(["No, no!", "Yes."], min_freq=2).tokens
        ('<pad>', '<unknown>', '<start>', '<end>', 'no')
        """
        validate.count("min_freq", min_freq, least=1)
        counts = Counter(word for text in texts for word in words(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([*SPECIAL, *(word for word in ranked if counts[word] >= min_freq)], of_words=True)

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {'words' if self.of_words else 'characters'})"

    def encode(self, text: str) -> Int[Tensor, " tokens"]:
        """The numbers of a text's characters or words."""
        return torch.tensor(self._token_numbers(text), dtype=torch.int64)

    def _token_numbers(self, text: str) -> list[int]:
        tokens: Sequence[str] = words(text) if self.of_words else text
        other = self.numbers.get(UNKNOWN)
        numbers = [self.numbers.get(token, other) for token in tokens]
        if None in numbers:
            stranger = tokens[numbers.index(None)]
            raise ValueError(f"text must hold known tokens only, got {stranger!r} at place {numbers.index(None)}")
        return numbers  # type: ignore[return-value]

    def decode(self, numbers: Int[Tensor, " tokens"] | Iterable[int]) -> str:
        """The text of some numbers; words are set apart by blanks."""
        listed = numbers.tolist() if isinstance(numbers, Tensor) else [int(number) for number in numbers]
        if strangers := [number for number in listed if not 0 <= number < len(self)]:
            raise ValueError(f"numbers must be from 0 to {len(self) - 1}, got {strangers[0]}")
        tokens = [self.tokens[number] for number in listed]
        return (" " if self.of_words else "").join(s for s in tokens if s not in (PAD, START, END))


def windows(tokens: Int[Tensor, " tokens"], window: int, stride: int | None = None) -> Examples:
    r"""Pieces of a text and, one place later, what follows each token: $y_t = x_{t+1}$.

    Windows begin every `stride` tokens, by default where the last one ended. They are views: however much they
    overlap, the tokens are stored once.

    Shapes:
        tokens: (tokens,)    returns: x and y, both (windows, window)

    >>> windows(torch.arange(7), window=3).y
    tensor([[1, 2, 3],
            [4, 5, 6]])
    """
    validate.count("window", window, least=1, most=len(tokens) - 1)
    pieces = tokens.unfold(0, window + 1, validate.count("stride", window if stride is None else stride, least=1))
    return Examples(x=pieces[:, :-1], y=pieces[:, 1:])


@dataset(
    "shakespeare",
    title="Three plays of Shakespeare",
    task="language",
    origin="embedded",
    size="336,222 + 37,359",
    shape="one character of 70",
    licence="public domain",
    credit="W. Shakespeare, first folio, 1623: Julius Caesar, Hamlet, Macbeth",
    splits="train, validation",
)
def shakespeare(unit: str = "character", window: int | None = None, stride: int | None = None) -> Dataset:
    r"""Julius Caesar, Hamlet and Macbeth in the spelling of 1623; the last tenth, in Macbeth, is for validation.

    Shapes:
        x: (tokens,) int64, the text in one piece; with `window`: x and y, both (windows, window), where y is one
        place ahead of x (see `windows`)
        extra: `vocabulary`, which encodes and decodes

    `unit="word"` counts in words and marks in lower case instead of characters, with `<unknown>` for words that the
    training part lacks. Bits a character on the validation part, interpolated n-grams: order 0 4.62, 1 3.59, 2 2.89,
    3 2.47, 4 2.40, 5 2.51.
    Source: public domain.

    >>> data = shakespeare()
    >>> data.extra["vocabulary"].decode(data.train.x[:29])
    'THE TRAGEDIE OF IULIUS CAESAR'
    >>> shakespeare(window=128).train
    Examples(x=(2626, 128), y=(2626, 128))
    """
    text = stored_text("shakespeare.txt.gz")
    cut = int(0.9 * len(text))
    if unit not in ("character", "word"):
        raise ValueError(f"unit must be character or word, got {unit!r}")
    vocabulary = Vocabulary(sorted(set(text))) if unit == "character" else Vocabulary.of_texts([text[:cut]])
    parts = {}
    for part, passage in (("train", text[:cut]), ("validation", text[cut:])):
        tokens = vocabulary.encode(passage)
        parts[part] = Examples(x=tokens) if window is None else windows(tokens, window, stride)
    return Dataset("shakespeare", parts, vocabulary.tokens, {"vocabulary": vocabulary})


@dataset(
    "verses",
    title="Verses in English and German",
    task="translation",
    origin="embedded",
    size="4,500 + 500",
    shape="two sentences of 3 to 17 words",
    licence="CC0 1.0, texts in the public domain (in the United Kingdom the King James text is under Crown patent)",
    credit="King James Version; Luther 1912",
    splits="train, test",
)
def verses(min_freq: int = 1) -> Dataset:
    r"""Five thousand verses of the Bible in English (King James) and German (Luther 1912), no sentence twice.

    Words that occur less than `min_freq` times in the training part become `<unknown>`.

    Shapes:
        x: (verses, 30) int64, English; y: (verses, 28) int64, German; each `<start>`, words and marks, `<end>`,
        and number 0, `<pad>`, to fill the row
        extra: `source` and `target`, the two vocabularies, made from the training part; `train` and `test`, the
        same verses as pairs of plain strings

    A word-by-word translation with IBM model 1 has BLEU 8.1; of the words of the test part, 4.5 % in English and 7.0 %
    in German do not occur in the training part.
    Source: CC0 1.0.

    >>> data = verses()
    >>> data.extra["train"][0][0], data.extra["target"].decode(data.train.y[0])[:20]
    ('He is ever merciful, and lendeth; and his seed is blessed.', 'er ist allezeit barm')
    """
    lines = stored_text("verses_en_de.tsv.gz").split("\n")[1:]  # under a line of headings
    rows = [line.split("\t") for line in lines if line]  # at tabs only: quotation marks are text
    pairs = {part: tuple((en, de) for split, en, de in rows if split == part) for part in ("train", "test")}
    source = Vocabulary.of_texts((en for en, _ in pairs["train"]), min_freq)
    target = Vocabulary.of_texts((de for _, de in pairs["train"]), min_freq)
    sides = {
        "x": _pad_sentences(source, [en for _, en, _ in rows]),
        "y": _pad_sentences(target, [de for _, _, de in rows]),
    }
    training, everything = torch.tensor([split == "train" for split, _, _ in rows]), Examples(**sides)
    parts = {"train": everything[training], "test": everything[~training]}
    return Dataset("verses", parts, (), {"source": source, "target": target, **pairs})


def _pad_sentences(vocabulary: Vocabulary, sentences: list[str]) -> Int[Tensor, "sentences longest"]:
    pad, start, end = (vocabulary.numbers[token] for token in (PAD, START, END))
    rows = [[start, *vocabulary._token_numbers(sentence), end] for sentence in sentences]
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
