"""What can be trained in this chapter, another part: verses translated from English to German, with attention."""

import re
from dataclasses import dataclass, fields
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.data.text import END, PAD, START, UNKNOWN, Vocabulary, words
from lemmata.figure import Figure, Heat
from lemmata.marks import recipe
from lemmata.measure.bleu import corpus_bleu
from lemmata.recurrent.conditional_sequence import ConditionalSequence
from lemmata.recurrent.decoding import beam_decode
from lemmata.recurrent.sequence_to_sequence import CELLS, SequenceToSequence
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded

__all__ = ["TranslationConfig", "Translator", "translate_verses"]

BASELINES = {"copying the English": 0.556, "word by word with a learnt dictionary (IBM model 1)": 8.26}
HOW = (
    "BLEU of lower-case words and marks on the 500 test verses; the dictionary was learnt from the same training "
    "verses. A unigram of the German words has perplexity 248 and is right for 6.3 % of them."
)
SHOWN = (0, 160, 240, 360)  # test verses whose translations are told on the way
ALIGNED = (160, 240)  # short ones, whose alignments fit side by side


@dataclass(frozen=True)
class TranslationConfig:
    """What can be chosen of a translator."""

    embedding: int = 128
    """Values of the vector that stands for a word."""
    hidden: int = 128
    """Units of each recurrent layer."""
    cell: Literal["gru", "lstm", "elman"] = "gru"
    """The recurrent layers of encoder and decoder."""
    attention: bool = True
    """Whether the decoder may look at the whole source; without, all must pass through one state."""
    dropout: float = 0.3
    """Share of values left out at each training step."""
    smoothing: float = 0.1
    """Share of a training word's weight that is given to all words alike."""
    min_freq: int = 2
    """Words that occur less often in the training verses are unknown ones."""
    beams: int = 4
    """Sentences followed at once when translating."""

    def __post_init__(self) -> None:
        for name in ("embedding", "hidden", "min_freq", "beams"):
            validate.count(name, getattr(self, name))
        for name in ("dropout", "smoothing"):
            validate.fraction(name, getattr(self, name))
        validate.one_of("cell", self.cell, CELLS)


@recipe("seq2seq", data="verses", metric="bleu")
def translate_verses(
    data: str = "verses",
    config: TranslationConfig = TranslationConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=20, batch_size=32, lr=3e-3, schedule="cosine", warmup=100, clip=1.0, evaluate=4),  # noqa: B008
) -> Experiment:
    """Verses from English to German: what 4,500 pairs of sentences teach, and where the translator looks.

    So few pairs teach the frame of a verse, the frequent phrases and a rough alignment. Many words that carry the
    meaning come out wrong, and names are copied in English spelling: better than a dictionary, far from a translation.
    """
    found = load(data, min_freq=config.min_freq)
    translator = Translator(found, config.beams, config.attention)
    chosen = {field.name: getattr(config, field.name) for field in fields(TranslationConfig)[:5]}
    sizes = {"source_vocab_size": len(translator.source), "target_vocab_size": len(translator.target)}
    arguments = {**sizes, **chosen, "bidirectional": True, "tied": True}
    with seeded(options.seed):
        system = SequenceToSequence(**arguments)

    def loss(system: SequenceToSequence, batch: Examples) -> Tensor:
        source, target, lengths = read(batch)
        return system.loss(source, target, lengths, config.smoothing if system.training else 0.0)

    # The number of a verse leads to its plain text: what is unknown to the vocabulary must not count as translated.
    test = Examples(**found.test.columns, verse=torch.arange(len(found.test)))
    return Experiment(
        system, arguments, found.train, test, options, loss=loss, metrics=translator.scores, metric="bleu",
        largest=True, picture=translator.picture if config.attention else None, predict=translator.predict,
        sample=translator.sample, write=translator.write, notes={"baselines": BASELINES, "how": HOW},
    )  # fmt: skip


def read(batch: Examples) -> tuple[Tensor, Tensor, Tensor]:
    """Source, target without its start, and the sources' lengths; no wider than the longest verse of the batch."""
    lengths = (batch.x != 0).sum(1)
    widest = int((batch.y != 0).sum(1).max())
    return batch.x[:, : int(lengths.max())], batch.y[:, 1:widest], lengths


class Translator:
    """Texts in, texts out: two vocabularies around a model, and the test verses to show what it can do."""

    def __init__(self, data: Dataset, beams: int, aligned: bool = True) -> None:
        self.source: Vocabulary = data.extra["source"]
        self.target: Vocabulary = data.extra["target"]
        self.beams, self.max_length, self.test = beams, data.test.y.shape[1] + 5, data.test
        self.length_power = 1.0  # how much long sentences are preferred
        self.aligned = aligned  # whether the model can say where it looks
        self.verses: tuple[tuple[str, str], ...] = data.extra["test"]

    def translations(self, system: ConditionalSequence, x: Tensor, texts: list[list[str]]) -> list[list[str]]:
        """What the model makes of some rows; for a word it has no name for, the source word it looks at most."""
        lengths = (x != 0).sum(1)
        made = beam_decode(system, x, lengths, self.max_length, self.beams, self.length_power).tokens
        looked = torch.zeros_like(made)
        if self.aligned:
            with evaluating(system):  # the first place of a row is its start, which is no word
                looked = self.looked(system, x, made, lengths)[..., 1:].argmax(2)
        special, found = {self.target.numbers[token] for token in (PAD, START, END)}, []
        for tokens, places, text in zip(made.tolist(), looked.tolist(), texts, strict=True):
            named = [(self.target.tokens[s], p) for s, p in zip(tokens, places, strict=True) if s not in special]
            copied = self.aligned and len(text) > 0
            found.append([text[min(p, len(text) - 1)] if copied and w == UNKNOWN else w for w, p in named])
        return found

    def looked(
        self, system: ConditionalSequence, x: Tensor, made: Tensor, lengths: Tensor | None = None
    ) -> Float[Tensor, "batch written read"]:
        """Where the model looks as it writes each word: whose name is copied, and what is drawn."""
        return system.alignment(x, made, lengths)

    def translate(self, system: ConditionalSequence, text: str) -> str:
        """One English sentence in German."""
        row = torch.tensor([[self._token_number(START), *self.source.encode(text).tolist(), self._token_number(END)]])
        return _joined_sentence(self.translations(system, row.to(system.output_bias.device), [words(text)])[0])

    def _token_number(self, token: str) -> int:
        return self.source.numbers[token]

    def scores(self, system: ConditionalSequence, batch: Examples) -> dict[str, float]:
        """BLEU against the plain German verses, and how well each next word is foreseen, given those before it."""
        source, target, lengths = read(batch)
        pairs = [self.verses[number] for number in batch.verse.tolist()]
        made = self.translations(system, source, [words(english) for english, _ in pairs])
        counted = system.counted(target)
        right = (system(source, target, lengths).argmax(-1) == target)[counted].double().mean()
        nll = -system.log_probability(source, target, lengths).sum() / counted.sum()
        bleu = corpus_bleu(made, [words(german) for _, german in pairs])
        return {"bleu": bleu, "accuracy": right.item(), "perplexity": nll.exp().item()}

    def write(self, system: ConditionalSequence) -> str:
        """A few verses that were not learnt from, as the model has them by now, and as Luther has them."""
        verses = [self.verses[number] for number in SHOWN]
        made = [self.translate(system, english) for english, _ in verses]
        return "\n".join(f"{en}\n  -> {ours}\n  Luther: {de}" for (en, de), ours in zip(verses, made, strict=True))

    def sample(
        self, system: ConditionalSequence, count: int, generator: torch.Generator, prompt: str | None = None
    ) -> str:
        """Translations of random test verses, or of an English sentence of yours."""
        if prompt is not None:
            return self.translate(system, prompt)
        chosen = torch.randperm(len(self.verses), generator=generator)[:count].tolist()
        return "\n".join(f"{self.verses[k][0]}\n  -> {self.translate(system, self.verses[k][0])}" for k in chosen)

    def predict(self, system: ConditionalSequence, examples: Examples) -> dict[str, Tensor]:
        """How likely the model holds each verse's translation, for each of its words: the geometric mean."""
        x, y = (
            _known_numbers(column, table) for column, table in ((examples.x, self.source), (examples.y, self.target))
        )
        source, target, lengths = read(Examples(x=x, y=y))
        mean = system.log_probability(source, target, lengths) / system.counted(target).sum(1)
        return {"probability of a word": mean.exp(), "words": lengths - 2}

    def picture(self, system: ConditionalSequence) -> Figure:
        """Where the decoder looks at each word it writes, for some test verses: rows are written, columns read."""
        marks = []
        with evaluating(system):
            for verse in ALIGNED:
                x = self.test.x[verse : verse + 1].to(system.output_bias.device)
                x = x[:, : int((x != 0).sum())]
                made = beam_decode(system, x, None, self.max_length, self.beams, self.length_power).tokens
                weights = self.looked(system, x, made)[0]
                values = [[round(weight, 3) for weight in row] for row in weights.tolist()]
                read, written = _tokens_of(self.source, x[0]), _tokens_of(self.target, made[0])
                marks.append(Heat(values, label="weight", columns=read, rows=written))
        return Figure("Where the translator looks", "word read", "word written", marks)


def _known_numbers(numbers: Tensor, vocabulary: Vocabulary) -> Tensor:
    """The numbers of a vocabulary with more words, where rare words come last, in one with fewer."""
    return numbers.where(numbers < len(vocabulary), vocabulary.numbers[UNKNOWN])


def _tokens_of(vocabulary: Vocabulary, numbers: Tensor) -> list[str]:
    return [vocabulary.tokens[number] for number in numbers.tolist()]


def _joined_sentence(written: list[str]) -> str:
    """Words as one reads them: marks stand at the word before."""
    return re.sub(r" ([.,:;!?)])", r"\1", " ".join(written))
