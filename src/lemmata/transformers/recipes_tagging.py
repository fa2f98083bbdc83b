"""What can be trained in this chapter, another part: BERT that tags the words of the Brown corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded
from lemmata.transformers.bert import Bert
from lemmata.transformers.fine_tuned import encoder_settings
from lemmata.transformers.positions import sinusoidal_encoding
from lemmata.transformers.recipes_fine_tuned import (
    SHARED,
    TextTuningConfig,
    most_frequent_tag,
    new_model,
    tagging_loss,
    words_tagged,
)
from lemmata.transformers.tagging import IGNORED, Tagger, first_pieces, tag_targets
from lemmata.transformers.wordpiece import WordPiece

__all__ = ["TaggingConfig", "tag_sentences"]


@dataclass(frozen=True)
class TaggingConfig(TextTuningConfig):
    """What can be chosen of a BERT that tags words, and of what it learns from."""

    dropout: float = 0.1
    """Fraction of what each part adds that is left out while training."""
    vocab_size: int = 16_000
    """Pieces of words, at most; so many that nearly every word that is met twice is a piece by itself."""
    max_length: int = 64
    """Pieces of a sentence; longer sentences are left out."""
    sentences: int = 8000
    """Sentences that it learns from, of all kinds of texts."""
    word_dropout: float = 0.1
    """Fraction of pieces that are hidden while training, so that the words around must tell."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("sentences", self.sentences)
        validate.fraction("word_dropout", self.word_dropout)


@recipe("tagger", data="brown", metric="accuracy")
def tag_sentences(
    data: str = "brown",
    config: TaggingConfig = TaggingConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=6, lr=3e-3, warmup=100, **SHARED),  # noqa: B008
) -> Experiment:
    """English sentences of 1961 (`lemmata data brown --from FILE`), a part of speech for each word.

    Where a word is cut into pieces, its first must find the others before it can be tagged: with few pieces that is
    what fails. From fresh weights it is a little better than each word's most frequent tag, 88.3 to 88.1 % of the words
    of held-out sentences after three epochs; `--encoder FOLDER` begins with a pre-trained BERT, for which `--lr 1e-4`
    is enough.
    """
    found = load(data)
    words, tags = found.extra["words"], found.extra["tags"]
    rows = found.train.sentence
    train = rows[torch.arange(0, len(rows), max(len(rows) // config.sentences, 1))][: config.sentences].tolist()
    test = found.test.sentence[:: max(len(found.test) // 1000, 1)].tolist()
    arguments: dict[str, Any]
    if config.encoder:
        tokenizer, encoder = WordPiece.from_pretrained(config.encoder), Bert.from_pretrained(config.encoder)
        validate.count("max_length", config.max_length, most=encoder.config.max_length)
        with seeded(options.seed):
            model = Tagger.on(encoder, found.classes)
        arguments = {**encoder_settings(encoder), "classes": list(found.classes)}
    else:
        texts = (" ".join(words[k]) for k in train)
        tokenizer = WordPiece.train(texts, config.vocab_size, by="count", lower=False)
        sizes: dict[str, Any] = {"vocab_size": len(tokenizer.vocab), "max_length": config.max_length}
        model, arguments = new_model(Tagger, config, options, classes=list(found.classes), **sizes)
        words_begin_alike(model)
    parts = {"train": train, "test": test}
    read = {part: tagged_rows(tokenizer, words, tags, kept, config.max_length) for part, kept in parts.items()}
    shown = [words[k] for k in test if len(words[k]) < 16][:3]

    unknown, marks = tokenizer.numbers[tokenizer.special.unknown], [tokenizer.numbers[s] for s in tokenizer.special]

    def loss(system: Tagger, batch: Examples) -> dict[str, Tensor]:
        if not system.training:
            return tagging_loss(system, batch)
        hidden = torch.rand(batch.x.shape, device=batch.x.device) < config.word_dropout
        hidden &= ~torch.isin(batch.x, batch.x.new_tensor(marks))
        return tagging_loss(system, Examples(x=batch.x.masked_fill(hidden, unknown), y=batch.y))

    def write(system: Tagger) -> str:
        return "\n".join(tagged_words(system, tokenizer, sentence) for sentence in shown)

    def sample(system: Tagger, count: int, generator: torch.Generator, prompt: str | None = None) -> str:
        """Sentences of the test texts with their tags, or one of yours."""
        chosen = [test[k] for k in torch.randperm(len(test), generator=generator)[:count].tolist()]
        sentences = [words[k] for k in chosen] if prompt is None else [tokenizer.words(prompt)]
        return "\n".join(tagged_words(system, tokenizer, sentence) for sentence in sentences)

    baseline = by_the_word({part: ([words[k] for k in kept], [tags[k] for k in kept]) for part, kept in parts.items()})
    return Experiment(
        model, arguments, read["train"], read["test"], options, loss=loss, metric="accuracy", largest=True,
        classes=found.classes, predict=words_tagged, write=write, sample=sample,
        notes={"baselines": {"most frequent tag of the word": baseline}},
    )  # fmt: skip


@torch.no_grad()
def words_begin_alike(model: Tagger) -> None:
    """Vectors of tokens near zero, beside positions that know their neighbours.

    What is drawn at random for a word that is met once or twice would be noise that stays; and from random positions it
    takes long until a piece finds the one beside it.
    """
    encoder = model.encoder
    width = encoder.config.width
    encoder.tokens.weight.mul_(0.001 * width**0.5)  # drawn with a standard deviation of width^-0.5
    encoder.segments.weight.zero_()  # all is one sentence
    places = torch.arange(encoder.config.max_length)
    encoder.positions.weight.copy_(0.02 * 2**0.5 * sinusoidal_encoding(places, width, base=100.0))


def pieces(tokenizer: WordPiece, sentence: Sequence[str]) -> tuple[list[int], list[int | None]]:
    """`[CLS]`, the pieces of given words and `[SEP]`, and the word that each piece belongs to."""
    first, separator, unknown = (
        tokenizer.numbers[token]
        for token in (tokenizer.special.first, tokenizer.special.separator, tokenizer.special.unknown)
    )
    split = [tokenizer.numbered(word) or [unknown] for word in sentence]  # every word has a piece to be tagged at
    owners = [n for n, each in enumerate(split) for _ in each]
    return [first, *(piece for each in split for piece in each), separator], [None, *owners, None]


def tagged_rows(
    tokenizer: WordPiece,
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[int]],
    chosen: Sequence[int],
    max_length: int,
) -> Examples:
    """Sentences as rows of pieces with the tags at first pieces; those that are too long are left out."""
    rows = [(*pieces(tokenizer, words[k]), tags[k]) for k in chosen]
    rows = [row for row in rows if len(row[0]) <= max_length]
    if not rows:
        raise ValueError(f"max_length must leave at least one sentence, got {max_length}: raise it")
    x = torch.full((len(rows), max(len(row[0]) for row in rows)), tokenizer.numbers[tokenizer.special.padding])
    y = torch.full_like(x, IGNORED)
    for n, (numbers, owners, labels) in enumerate(rows):
        x[n, : len(numbers)] = torch.tensor(numbers)
        y[n, : len(numbers)] = tag_targets(labels, owners)
    return Examples(x=x, y=y)


def tagged_words(system: Tagger, tokenizer: WordPiece, sentence: Sequence[str]) -> str:
    """A sentence with the tag that the model gives behind each word."""
    numbers, owners = pieces(tokenizer, sentence)
    x = torch.tensor([numbers[: system.encoder.config.max_length]], device=system.classifier.weight.device)
    with evaluating(system):
        said = system(x).argmax(-1)[0].tolist()
    places = [place for place in first_pieces(owners) if place < len(said)]
    return " ".join(f"{word}/{system.classes[said[place]]}" for word, place in zip(sentence, places, strict=False))


def by_the_word(parts: dict[str, tuple[list[Any], list[Any]]]) -> float:
    """The accuracy of each word's most frequent tag, words as they are written."""
    numbers: dict[str, int] = {}
    columns = {}
    for part, (sentences, tags) in parts.items():
        row = [numbers.setdefault(word, len(numbers)) for sentence in sentences for word in sentence]
        columns[part] = Examples(x=torch.tensor([row]), y=torch.tensor([[tag for each in tags for tag in each]]))
    classes = 1 + max(int(each.y.max()) for each in columns.values())
    return most_frequent_tag(Dataset("words", columns, tuple(map(str, range(classes)))), len(numbers))
