"""What can be trained in this chapter, another part: BERT for sentences, tags and answers.

From the first weight on, or from a pre-trained encoder (`--encoder FOLDER`, in Hugging Face's format with its
vocab.txt), which is what fine-tuning means.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.data.text import Vocabulary
from lemmata.figure import Bars, Figure
from lemmata.marks import recipe
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification, accuracy, chosen, fraction
from lemmata.train.options import Options
from lemmata.train.randomness import seeded
from lemmata.transformers.bert import Bert
from lemmata.transformers.fine_tuned import FineTuned, SentenceClassifier, encoder_settings
from lemmata.transformers.question_answering import QuestionAnswerer
from lemmata.transformers.tagging import IGNORED, Tagger
from lemmata.transformers.wordpiece import WordPiece

__all__ = ["FineTuningConfig", "TextTuningConfig", "answer_questions", "classify_texts", "tag_words", "tell_negations"]

Model = TypeVar("Model", bound=FineTuned)


@dataclass(frozen=True)
class FineTuningConfig:
    """What can be chosen of a small BERT with one layer on top."""

    width: int = 64
    """Values that stand for a token on its way through the blocks."""
    depth: int = 2
    """Blocks, one above another."""
    heads: int = 4
    """Attentions side by side in each block."""
    hidden: int = 128
    """Units inside the network of each position."""
    dropout: float = 0.0
    """Fraction of what each part adds that is left out while training."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "hidden"):
            validate.count(name, getattr(self, name))
        validate.fraction("dropout", self.dropout)


def new_model(
    kind: type[Model], config: FineTuningConfig, options: Options, large: bool = True, **given: Any
) -> tuple[Model, dict[str, Any]]:
    """A new model, and the arguments that make it."""
    arguments = {**given, **chosen(config, FineTuningConfig), "attention_dropout": config.dropout}
    with seeded(options.seed):
        model = kind(**arguments)
        # To find a pattern, a narrow network begins with larger weights than BERT's 0.02, or would long stay there. To
        # count many words it begins with those: larger vectors of rare words would be noise that stays.
        for values in model.parameters():
            if values.ndim > 1 and large:
                torch.nn.init.normal_(values, std=config.width**-0.5)
    return model, arguments


SHARED: dict[str, Any] = {"batch_size": 32, "weight_decay": 0.01, "schedule": "cosine", "clip": 1.0}
QUICK = Options(epochs=6, lr=1e-3, warmup=30, **SHARED)
TEXTS = Options(epochs=4, lr=1e-3, warmup=100, **SHARED)
ANSWERS = Options(epochs=12, lr=2e-3, warmup=50, **SHARED)


# --- Sentences ---


@recipe("sentence_classifier", data="negation", metric="accuracy")
def tell_negations(
    data: str = "negation",
    config: FineTuningConfig = FineTuningConfig(),  # noqa: B008 - frozen
    options: Options = QUICK,
) -> Experiment:
    """Synthetic reviews in which "not" turns praise into its contrary: a bag of words is no better than a coin."""
    found = load(data)
    vocabulary: Vocabulary = found.extra["vocabulary"]
    sizes = {"vocab_size": len(vocabulary), "max_length": found.train.x.shape[1]}
    model, arguments = new_model(SentenceClassifier, config, options, classes=list(found.classes), **sizes)
    notes = {"baselines": {"naive Bayes": naive_bayes(found, len(vocabulary))}, "how": HOW}
    return _classification_experiment(model, arguments, found, options, notes, vocabulary.decode)


@dataclass(frozen=True)
class TextTuningConfig(FineTuningConfig):
    """What can be chosen of a BERT that tells kinds of texts apart."""

    dropout: float = 0.2
    """Fraction of what each part adds that is left out while training."""
    vocab_size: int = 4000
    """Pieces of words; learnt from the training texts."""
    max_length: int = 128
    """Pieces that are read of a text; the rest is cut off."""
    encoder: str = ""
    """Folder of a pre-trained BERT with its vocab.txt; its sizes are then those of the network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("vocab_size", self.vocab_size)
        validate.count("max_length", self.max_length, least=3)


HOW = "naive Bayes: pieces of words counted in the same training texts, one added to each count; their order is unseen"


@recipe("sentence_classifier", data="plays_or_verses imdb", metric="accuracy")
def classify_texts(
    data: str = "plays_or_verses",
    config: TextTuningConfig = TextTuningConfig(),  # noqa: B008 - frozen
    options: Options = TEXTS,
) -> Experiment:
    """Six words of Shakespeare or of the Bible, or film reviews (`lemmata data imdb --from FILE`): which are they?

    Of six words, those that occur say nearly all: trained on these alone, BERT is as good as naive Bayes and no better.
    """
    found = load(data)
    texts: Sequence[str] = found.extra["texts"]
    if config.encoder:
        tokenizer, encoder = WordPiece.from_pretrained(config.encoder), Bert.from_pretrained(config.encoder)
        validate.count("max_length", config.max_length, most=encoder.config.max_length)
        with seeded(options.seed):
            model = SentenceClassifier.on(encoder, list(found.classes))
        arguments: dict[str, Any] = {**encoder_settings(encoder), "classes": list(found.classes)}
    else:
        tokenizer = WordPiece.train((texts[int(k)] for k in found.train.text), config.vocab_size, by="count")
        sizes = {"vocab_size": len(tokenizer.vocab), "max_length": config.max_length}
        model, arguments = new_model(
            SentenceClassifier, config, options, large=False, classes=list(found.classes), **sizes
        )
    read = {part: _read_texts(tokenizer, texts, examples, config.max_length) for part, examples in found.parts.items()}
    numbered = Dataset(data, read, found.classes)
    notes = {"baselines": {"naive Bayes": naive_bayes(numbered, len(tokenizer.vocab))}, "how": HOW}
    return _classification_experiment(model, arguments, numbered, options, notes, tokenizer.decode, tokenizer)


def _read_texts(tokenizer: WordPiece, texts: Sequence[str], examples: Examples, max_length: int) -> Examples:
    """The texts of some examples as rows of pieces."""
    rows = tokenizer([texts[int(k)] for k in examples.text], max_length=max_length)
    return Examples(x=rows.x, y=examples.y)


def _classification_experiment(
    model: SentenceClassifier,
    arguments: dict[str, Any],
    data: Dataset,
    options: Options,
    notes: dict[str, Any],
    decode: Callable[[Tensor], str],
    tokenizer: WordPiece | None = None,
) -> Experiment:
    shown = data.test[:: max(len(data.test) // 6, 1)][:6]

    form = Classification(class_logits)

    def told(system: SentenceClassifier, x: Tensor) -> list[str]:
        with evaluating(system):
            said = form.predict(system, Examples(x=x.to(system.classifier.weight.device)))
        pairs = zip(said["class"].tolist(), said["probability"].tolist(), strict=True)
        return [f"{system.classes[label]} ({probability:.2f})" for label, probability in pairs]

    def write(system: SentenceClassifier) -> str:
        texts = (" ".join(word for word in decode(row).split() if not word.startswith("[")) for row in shown.x)
        return "\n".join(f"{text[:100]} -> {says}" for text, says in zip(texts, told(system, shown.x), strict=True))

    def sample(system: SentenceClassifier, count: int, generator: torch.Generator, prompt: str | None = None) -> str:
        """What it says of test texts, or of a text of yours."""
        if prompt is not None and tokenizer is not None:
            return told(system, tokenizer(prompt, max_length=system.encoder.config.max_length).x)[0]
        rows = data.test.x[torch.randperm(len(data.test), generator=generator)[:count]]
        return "\n".join(f"{decode(x)} -> {says}" for x, says in zip(rows, told(system, rows), strict=True))

    return form.experiment(
        model, arguments, data.train, data.test, options, classes=data.classes, write=write, sample=sample, notes=notes
    )


def trimmed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows without the columns that are padding in all of them, and where there is a token."""
    mask = x != 0
    longest = max(int(mask.sum(1).max()), 1)
    return x[:, :longest], mask[:, :longest]


def class_logits(system: SentenceClassifier, batch: Examples) -> Tensor:
    """(texts, classes), of texts without the columns that are padding in all of them."""
    x, mask = trimmed(batch.x)
    return system(x, mask=mask)


def naive_bayes(data: Dataset, vocab_size: int) -> float:
    """The accuracy on the test part of what counts words and does not see their order."""
    classes = len(data.classes)
    counts = torch.zeros(classes, vocab_size, dtype=torch.float64)
    for label in range(classes):
        tokens = data.train.x[data.train.y == label]
        counts[label] = torch.bincount(tokens[tokens != 0], minlength=vocab_size)
    likelihood = (counts + 1).log() - (counts + 1).sum(1, keepdim=True).log()
    prior = torch.bincount(data.train.y, minlength=classes).double().log()
    likelihood[:, 0] = 0.0  # padding says nothing
    said = [(likelihood[:, row].sum(1) + prior).argmax() for row in data.test.x]
    return fraction(torch.stack(said) == data.test.y).item()


# --- Tags ---


@recipe("tagger", data="homographs", metric="accuracy")
def tag_words(
    data: str = "homographs",
    config: FineTuningConfig = FineTuningConfig(),  # noqa: B008 - frozen
    options: Options = QUICK,
) -> Experiment:
    """Synthetic sentences whose words are noun or verb by what stands before them."""
    found = load(data)
    vocabulary: Vocabulary = found.extra["vocabulary"]
    sizes = {"vocab_size": len(vocabulary), "max_length": found.train.x.shape[1]}
    model, arguments = new_model(Tagger, config, options, classes=list(found.classes), **sizes)
    baseline = most_frequent_tag(found, len(vocabulary))

    def write(system: Tagger) -> str:
        said = _predicted_tags(system, found.test.x[:4])
        return "\n".join(
            _tagged_sentence(vocabulary, found.classes, x, y) for x, y in zip(found.test.x, said, strict=False)
        )

    return Experiment(
        model, arguments, found.train, found.test, options, loss=tagging_loss, metric="accuracy", largest=True,
        classes=found.classes, predict=words_tagged, write=write,
        notes={"baselines": {"most frequent tag of the word": baseline}},
    )  # fmt: skip


def tagging_loss(system: Tagger, batch: Examples) -> dict[str, Tensor]:
    """The cross-entropy of the tags, and the fraction of words that are tagged rightly."""
    x, mask = trimmed(batch.x)
    y = batch.y[:, : x.shape[1]]
    logits = system(x, mask=mask)
    counted = y != IGNORED
    logits, y = logits[counted], y[counted]  # (counted, classes)
    return {"loss": functional.cross_entropy(logits, y), "accuracy": accuracy(logits, y)}


def words_tagged(system: Tagger, examples: Examples) -> dict[str, Tensor]:
    """How many words a sentence has, and how many of them are tagged rightly."""
    x, mask = trimmed(examples.x)
    right = (system(x, mask=mask).argmax(-1) == examples.y[:, : x.shape[1]]).sum(1)
    return {"words": (examples.y != IGNORED).sum(1), "right": right}


def most_frequent_tag(data: Dataset, vocab_size: int) -> float:
    """The accuracy on the test part of giving each word the tag that it has most often in the training part."""
    classes = len(data.classes)
    counted, tested = data.train.y != IGNORED, data.test.y != IGNORED
    pairs = data.train.x[counted] * classes + data.train.y[counted]
    table = torch.bincount(pairs, minlength=vocab_size * classes).reshape(vocab_size, classes)
    common = table.sum(0).argmax()  # for words that the training part lacks
    best = torch.where(table.sum(1) > 0, table.argmax(1), common)
    return fraction(best[data.test.x[tested]] == data.test.y[tested]).item()


def _predicted_tags(system: Tagger, x: Tensor) -> Tensor:
    with evaluating(system):
        return system(x.to(system.classifier.weight.device), mask=x.to(system.classifier.weight.device) != 0).argmax(-1)


def _tagged_sentence(vocabulary: Vocabulary, classes: Sequence[str], x: Tensor, y: Tensor) -> str:
    """A sentence with a tag behind each word."""
    pairs = ((vocabulary.tokens[word], classes[tag]) for word, tag in zip(x.tolist(), y.tolist(), strict=True))
    return " ".join(f"{word}/{tag}" for word, tag in pairs if not word.startswith("["))


# --- Answers ---


@recipe("question_answerer", data="facts", metric="exact")
def answer_questions(
    data: str = "facts",
    config: FineTuningConfig = FineTuningConfig(),  # noqa: B008 - frozen
    options: Options = ANSWERS,
) -> Experiment:
    """Synthetic questions about the colours of things, answered by one word or two of a passage."""
    found = load(data)
    vocabulary: Vocabulary = found.extra["vocabulary"]
    sizes = {"vocab_size": len(vocabulary), "max_length": found.train.x.shape[1]}
    model, arguments = new_model(QuestionAnswerer, config, options, **sizes)
    # Who answers with any colour of the passage; the passages have as many facts.
    first = vocabulary.numbers["."]
    baseline = float((1 / (found.test.x == first).sum(1)).mean())

    def predict(system: QuestionAnswerer, examples: Examples) -> dict[str, Tensor]:
        answer = system.answer(examples.x, examples.segments, examples.x != 0)
        return {"start": answer.start, "end": answer.end, "score": answer.score}

    def write(system: QuestionAnswerer) -> str:
        with evaluating(system):
            said = predict(system, found.test[:4].to(system.classifier.weight.device))
        spans = zip(found.test.x[:4], said["start"].tolist(), said["end"].tolist(), strict=True)
        return "\n".join(f"{vocabulary.decode(x[x != 0])} -> {vocabulary.decode(x[i : j + 1])}" for x, i, j in spans)

    return Experiment(
        model, arguments, found.train, found.test, options, loss=span_loss, metric="exact", largest=True,
        predict=predict, write=write, picture=lambda system: _answer_positions(system, found.test[:1], vocabulary),
        notes={"baselines": {"any of the answers": baseline}},
    )  # fmt: skip


def span_loss(system: QuestionAnswerer, batch: Examples) -> dict[str, Tensor]:
    """The mean of the two cross-entropies, and the fraction of answers that are right in both places."""
    mask = batch.x != 0
    loss = system.loss(batch.x, batch.start, batch.end, batch.segments, mask)
    if system.training:
        return {"loss": loss}
    answer = system.answer(batch.x, batch.segments, mask)
    exact = (answer.start == batch.start) & (answer.end == batch.end)
    return {"loss": loss, "exact": fraction(exact)}


def _answer_positions(system: QuestionAnswerer, example: Examples, vocabulary: Vocabulary) -> Figure:
    """How likely each token of a passage begins the answer, and ends it."""
    length = int((example.x != 0).sum())
    x, segments = (each[:, :length].to(system.classifier.weight.device) for each in (example.x, example.segments))
    with evaluating(system):
        start, end = (logits[0].softmax(0).tolist() for logits in system(x, segments))
    names = [f"{n} {vocabulary.tokens[token]}" for n, token in enumerate(x[0].tolist())]
    marks = [Bars(names, [round(p, 4) for p in side], label) for side, label in ((start, "begins"), (end, "ends"))]
    return Figure("Where the answer is", "token", "probability", marks, note=vocabulary.decode(x[0]))
