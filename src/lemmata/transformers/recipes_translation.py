"""What can be trained in this chapter: verses translated from English to German, without recurrence."""

from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.data.text import END, PAD, START, UNKNOWN, Vocabulary
from lemmata.marks import recipe
from lemmata.recurrent.recipes_translation import BASELINES, HOW, Translator, read
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded
from lemmata.transformers.recipes_bert import shared_evenly
from lemmata.transformers.transformer import Transformer

__all__ = ["TransformerConfig", "translate_with_attention_alone"]

BESIDE = "The recurrent network with attention (lemmata train seq2seq) reaches 13.1."


@dataclass(frozen=True)
class TransformerConfig:
    """What can be chosen of a translator without recurrence."""

    width: int = 128
    """Values that stand for a word on its way through the blocks."""
    depth: int = 2
    """Blocks of the encoder, and as many of the decoder."""
    heads: int = 4
    """Attentions side by side in each block."""
    hidden: int = 256
    """Units inside the network of each position."""
    norm_first: bool = True
    """Whether parts are normalised before, not after, they are added."""
    dropout: float = 0.3
    """Share of values left out at each training step."""
    word_dropout: float = 0.1
    """Share of words, of those read and of those written before, that are hidden at each training step."""
    smoothing: float = 0.2
    """Share of a training word's weight that is given to all words alike."""
    min_freq: int = 2
    """Words that occur less often in the training verses are unknown ones."""
    beams: int = 4
    """Sentences followed at once when translating."""
    length_power: float = 1.4
    """By which power of its length a sentence's log-probability is divided: the larger, the longer sentences are."""
    aligned: int = 2
    """The block of the decoder that tells which word is looked at, or the last there is; 0 takes the mean of all."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "hidden", "min_freq", "beams"):
            validate.count(name, getattr(self, name))
        for name in ("dropout", "word_dropout", "smoothing"):
            validate.fraction(name, getattr(self, name))
        validate.flag("norm_first", self.norm_first)
        validate.number("length_power", self.length_power, least=0)
        validate.count("aligned", self.aligned, least=0)


# Of few pairs, an average over the last steps makes more than the last step does.
LEARNING = Options(
    epochs=40, batch_size=32, lr=2e-3, schedule="cosine", warmup=200, clip=1.0, ema_decay=0.999, evaluate=10
)


@recipe("transformer", data="verses", metric="bleu")
def translate_with_attention_alone(
    data: str = "verses",
    config: TransformerConfig = TransformerConfig(),  # noqa: B008 - frozen
    options: Options = LEARNING,
) -> Experiment:
    """Verses from English to German by attention alone, beside the recurrent network that was taught the same.

    It takes about a quarter of an hour on one core. The learning rate rises for the first steps: before the weights
    have found their sizes, large steps do harm. With few pairs, words are hidden at random, so that no verse is learnt
    by heart. On 500 verses held out of the training part, such a model of the other 4,000 has BLEU 12.6; dividing by
    the length itself, 12.3, and with the first block to name words, 12.5.
    """
    found = load(data, min_freq=config.min_freq)
    translator = AligningTranslator(found, config)
    chosen = {field.name: getattr(config, field.name) for field in fields(TransformerConfig)[:6]}
    sizes = {"source_vocab_size": len(translator.source), "target_vocab_size": len(translator.target)}
    arguments = {**sizes, **chosen}
    with seeded(options.seed):
        system = Transformer(**arguments)
    a_verse = float(system.counted(found.train.y[:, 1:]).sum() / len(found.train))

    def loss(system: Transformer, batch: Examples) -> Tensor:
        source, target, lengths = read(batch)
        if not system.training:
            return system.loss(source, target, lengths)
        shown = [
            hidden_words(tokens, vocabulary, config.word_dropout)
            for tokens, vocabulary in ((source, translator.source), (target, translator.target))
        ]
        counted = system.counted(target)
        logits = system(*shown, lengths)[counted]  # (counted, target_vocab_size)
        mean = functional.cross_entropy(logits, target[counted], label_smoothing=config.smoothing)
        return shared_evenly(mean, counted, a_verse)

    # The number of a verse leads to its plain text: what is unknown to the vocabulary must not count as translated.
    test = Examples(**found.test.columns, verse=torch.arange(len(found.test)))
    return Experiment(
        system, arguments, found.train, test, options, loss=loss, metrics=translator.scores, metric="bleu",
        largest=True, picture=translator.picture, predict=translator.predict, sample=translator.sample,
        write=translator.write, notes={"baselines": BASELINES, "how": f"{HOW} {BESIDE}"},
    )  # fmt: skip


def hidden_words(
    tokens: Int[Tensor, "batch time"], vocabulary: Vocabulary, fraction: float
) -> Int[Tensor, "batch time"]:
    """Tokens, a fraction of whose words is unknown; marks of start, end and padding stay."""
    marks = tokens.new_tensor([vocabulary.numbers[token] for token in (PAD, START, END)])
    chosen = (torch.rand(tokens.shape, device=tokens.device) < fraction) & ~torch.isin(tokens, marks)
    return tokens.masked_fill(chosen, vocabulary.numbers[UNKNOWN])


class AligningTranslator(Translator):
    """A translator that copies names, and draws, by what one block of the decoder looks at, or all of them."""

    def __init__(self, data: Dataset, config: TransformerConfig) -> None:
        super().__init__(data, config.beams)
        self.length_power = config.length_power
        self.layer = min(config.aligned, config.depth) - 1 if config.aligned else None

    def looked(
        self, system: Any, x: Tensor, made: Tensor, lengths: Tensor | None = None
    ) -> Float[Tensor, "batch written read"]:
        return system.alignment(x, made, lengths, layer=self.layer)
