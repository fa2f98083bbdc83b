r"""Sentences made by rule that ask for context: answers to find, words that are noun or verb, praise and negation.

These are synthetic: a grammar of a few dozen words, in which a word by itself says too little. The last set is real:
six words of a play or of the Bible.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.generated import balanced, two_parts
from lemmata.data.registry import dataset
from lemmata.data.stored import stored_text
from lemmata.data.text import Vocabulary, verses, words

__all__ = ["facts", "homographs", "negation", "plays_or_verses"]

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

THINGS = tuple("ball door coat cup chair lamp boat flag hat kite".split())
COLOURS = tuple("red blue green brown grey pink".split())
SHADES = ("dark", "light")
LONGEST_FACT = 6  # the ball is dark red .

NOUN, VERB, OTHER = "noun", "verb", "other"
BOTH = tuple("watch play walk work drink dance help plan rest visit".split())  # a noun after "the", a verb after "they"
PERSONS, ARTICLES, ADVERBS = ("they", "we", "you"), ("the", "a", "this"), ("often", "never", "always")
NOUNS, VERBS = ("dog", "house", "child", "friend"), ("see", "like", "want", "hear")

GOOD = tuple("good great lovely brilliant funny fine".split())
BAD = tuple("bad awful dull boring weak poor".split())
PARTS = tuple("film plot cast music story ending".split())
DEGREES = ("very", "really", "quite")


@dataset(
    "facts",
    title="Questions about made-up facts",
    task="question answering",
    origin="generated",
    size="4,000 + 1,000",
    shape="a question and 2 facts",
    licence="generated, none needed",
    credit="after J. Weston et al., Towards AI-Complete Question Answering, 2015",
    splits="train, test",
)
def facts(n: int = 4000, test: int = 1000, count: int = 2, seed: int = 0) -> Dataset:
    r"""Facts about `count` things, and a question about one of them, whose answer is one word or two of the passage.

    `[CLS] what colour is the ball ? [SEP] the cup is dark red . the ball is blue . [SEP]`: the answer is "blue". Who
    does not look at the question finds one of `count` answers.

    Shapes:
        x, segments: (examples, time) int64, segment 1 for the passage; start, end: (examples,) int64, the places of
        the answer's first and last word in x; number 0, `[PAD]`, fills the rows
        extra: `vocabulary`, which encodes and decodes

    >>> data = facts(n=2)
    >>> data.extra["vocabulary"].decode(data.train.x[0][:9])
    '[CLS] what colour is the hat ? [SEP] the'
    """
    validate.count("count", count, most=len(THINGS))
    vocabulary = _group_vocabulary(["what", "colour", "is", "the", "?", "."], THINGS, COLOURS, SHADES)
    width = 8 + count * LONGEST_FACT + 1

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        rows, segments = [], np.zeros((size, width), np.int64)
        places = np.zeros((size, 2), np.int64)
        for n in range(size):
            things = [THINGS[k] for k in generator.permutation(len(THINGS))[:count]]
            asked = int(generator.integers(count))
            row = [CLS, "what", "colour", "is", "the", things[asked], "?", SEP]
            begin = len(row)
            for number, thing in enumerate(things):
                shade = [str(generator.choice(SHADES))] if generator.random() < 0.5 else []
                colour = [*shade, str(generator.choice(COLOURS))]
                row += ["the", thing, "is", *colour, "."]
                if number == asked:
                    places[n] = len(row) - 1 - len(colour), len(row) - 2
            row.append(SEP)
            segments[n, begin : len(row)] = 1
            rows.append(row)
        return {
            "x": _token_numbers(vocabulary, rows, width), "segments": segments,
            "start": places[:, 0], "end": places[:, 1],
        }  # fmt: skip

    return two_parts("facts", sample, n=n, test=test, seed=seed, extra={"vocabulary": vocabulary})


@dataset(
    "homographs",
    title="Words that are noun or verb",
    task="tagging",
    origin="generated",
    size="2,000 + 500",
    shape="a sentence of 4 to 6 words",
    licence="generated, none needed",
    credit="none needed",
    splits="train, test",
)
def homographs(n: int = 2000, test: int = 500, seed: int = 0) -> Dataset:
    r"""Sentences such as "they often watch the play", whose words have their tag by what stands before them.

    Ten words are now nouns, now verbs: "the watch", "they watch". Who goes by the word alone tags four in ten of them
    wrongly. The subject may be a noun, and an adverb may stand before the verb, so that the place says little.

    Shapes:
        x: (sentences, 8) int64, `[CLS]`, words, `[SEP]` and number 0, `[PAD]`; y: (sentences, 8) int64, the class of
        each word, and -100 where there is none
        extra: `vocabulary`, which encodes and decodes; `ambiguous`, the numbers of the ten words

    >>> data = homographs(n=3)
    >>> data.extra["vocabulary"].decode(data.train.x[0]), data.train.y[0][:4].tolist()
    ('[CLS] they dance a help [SEP] [PAD] [PAD]', [-100, 2, 1, 2])
    """
    vocabulary = _group_vocabulary(BOTH, NOUNS, VERBS, PERSONS, ARTICLES, ADVERBS)
    classes, width = (NOUN, VERB, OTHER), 8

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        rows, y = [], np.full((size, width), -100)

        def word(others: Sequence[str]) -> str:
            return str(generator.choice(BOTH if generator.random() < 0.8 else others))

        for n in range(size):
            noun = [(str(generator.choice(ARTICLES)), OTHER), (word(NOUNS), NOUN)]
            subject = noun if generator.random() < 0.5 else [(str(generator.choice(PERSONS)), OTHER)]
            adverb = [(str(generator.choice(ADVERBS)), OTHER)] if generator.random() < 0.5 else []
            thing = [(str(generator.choice(ARTICLES)), OTHER), (word(NOUNS), NOUN)]
            sentence = [*subject, *adverb, (word(VERBS), VERB), *thing]
            rows.append([CLS, *(each for each, _ in sentence), SEP])
            y[n, 1 : len(sentence) + 1] = [classes.index(tag) for _, tag in sentence]
        return {"x": _token_numbers(vocabulary, rows, width), "y": y}

    ambiguous = [vocabulary.numbers[each] for each in BOTH]
    extra = {"vocabulary": vocabulary, "ambiguous": ambiguous}
    return two_parts("homographs", sample, n=n, test=test, seed=seed, classes=classes, extra=extra)


@dataset(
    "negation",
    title="Reviews with negations",
    task="text classification",
    origin="generated",
    size="2,000 + 500",
    shape="a sentence of 4 to 6 words",
    licence="generated, none needed",
    credit="none needed",
    splits="train, test",
)
def negation(n: int = 2000, test: int = 500, seed: int = 0) -> Dataset:
    r"""Reviews such as "the plot was not very good", where "not" turns praise into its contrary, half of the time.

    A word of praise and a "not" come in either class equally often, so that a bag of words is no better than a coin.

    Shapes:
        x: (reviews, 8) int64, `[CLS]`, words, `[SEP]` and number 0, `[PAD]`; y: (reviews,) int64, 1 for praise
        extra: `vocabulary`, which encodes and decodes

    >>> data = negation(n=2)
    >>> data.extra["vocabulary"].decode(data.train.x[0]), data.classes[data.train.y[0]]
    ('[CLS] the film was not funny [SEP] [PAD]', 'negative')
    """
    vocabulary = _group_vocabulary(["the", "was", "not"], GOOD, BAD, PARTS, DEGREES)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        y, rows = balanced(generator, size, 2), []
        for label in y:
            negated = generator.random() < 0.5
            judged = str(generator.choice(GOOD if label == (not negated) else BAD))
            degree = [str(generator.choice(DEGREES))] if generator.random() < 0.5 else []
            middle = [*(["not"] if negated else []), *degree]
            rows.append([CLS, "the", str(generator.choice(PARTS)), "was", *middle, judged, SEP])
        return {"x": _token_numbers(vocabulary, rows, 8), "y": y}

    classes = ("negative", "positive")
    return two_parts("negation", sample, n=n, test=test, seed=seed, classes=classes, extra={"vocabulary": vocabulary})


@dataset(
    "plays_or_verses",
    title="Shakespeare or the Bible",
    task="text classification",
    origin="embedded",
    size="8,928 + 988",
    shape="6 words",
    licence="public domain (in the United Kingdom the King James text is under Crown patent)",
    credit="W. Shakespeare, first folio, 1623; King James Version",
    splits="train, test",
)
def plays_or_verses() -> Dataset:
    r"""Six words from the beginning of a line of Shakespeare, or of a verse of the Bible: which of them is it?

    Lower case and without marks, for those and the length would tell. The test lines are from the last tenth of the
    plays, in Macbeth; the verses are divided as in `verses`.

    Shapes:
        text: (texts,) int64, the place of the text in `extra["texts"]`; y: (texts,) int64, 1 for a verse

    >>> data = plays_or_verses()
    >>> [data.extra["texts"][int(data.train.text[k])] for k in (0, -1)]
    ['enter flauius murellus and certaine commoners', 'wherefore say behold i give unto']
    """
    plays, bible = stored_text("shakespeare.txt.gz"), verses()
    cut = int(0.9 * len(plays))
    texts: list[str] = []
    parts = {}
    for part, passage in (("train", plays[:cut]), ("test", plays[cut:])):
        # A speaker's name, which stands before what is said, would tell too.
        lines = _sentence_beginnings(re.sub(r"^ +\w+\. ", "", line) for line in passage.split("\n"))
        begun = _sentence_beginnings(english for english, _ in bible.extra[part])
        both = [lines[k * len(lines) // len(begun)] for k in range(len(begun))], begun  # as many, from all acts
        y = torch.tensor([label for label, found in enumerate(both) for _ in found])
        parts[part] = Examples(text=torch.arange(len(texts), len(texts) + len(y)), y=y)
        texts += [*both[0], *both[1]]
    return Dataset("plays_or_verses", parts, ("Shakespeare", "Bible"), {"texts": texts})


def _sentence_beginnings(lines: Iterable[str], length: int = 6) -> list[str]:
    """The first words of every line that has so many, without marks."""
    found = ([word for word in words(line) if word.isalpha()] for line in lines)
    return [" ".join(line[:length]) for line in found if len(line) >= length]


def _group_vocabulary(*groups: Iterable[str]) -> Vocabulary:
    """The special tokens of BERT, and then the words of all groups."""
    return Vocabulary([*SPECIAL, *(word for group in groups for word in group)], of_words=True)


def _token_numbers(vocabulary: Vocabulary, rows: Sequence[Sequence[str]], width: int) -> np.ndarray:
    filled = [[*row, *[PAD] * (width - len(row))] for row in rows]
    return np.array([[vocabulary.numbers[token] for token in row] for row in filled])
