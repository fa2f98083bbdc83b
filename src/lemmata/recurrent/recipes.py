"""What can be trained in this chapter, first part: models of text that read and write character by character.

What the defaults reach on the plays (seed 0), in bits a character: mingru 2.22, lru 2.28; the trigram has 2.89, and
the best of all n-grams, which looks back four characters, 2.40.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.data.text import Vocabulary, windows
from lemmata.figure import Figure, Line
from lemmata.marks import recipe
from lemmata.recurrent.character_model import CharacterModel
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Language, chosen
from lemmata.train.options import Options

__all__ = ["TextConfig", "write_text"]

BASELINES = {"unigram": 4.621, "trigram": 2.886, "5-gram": 2.4}
HOW = (
    "n-grams interpolated by Witten and Bell's rule (NGram), counted in the training text; the 5-gram is the best of "
    "all orders. They read the test text in one piece, the models in windows of 1,024 characters from the zero state. "
    "Settings of the models were chosen on the last tenth of the training text."
)
READ_AT_ONCE = 1024  # characters of a test window
PROMPT = "Ham. "


@dataclass(frozen=True)
class TextConfig:
    """What can be chosen of a model of text."""

    width: int = 128
    """Values that pass from layer to layer."""
    hidden: int = 192
    """Units of each recurrent layer."""
    depth: int = 2
    """Recurrent layers, one above another, with residuals."""
    expansion: int = 2
    """Units of each step's own network, as a multiple of the width; 0 leaves it out."""
    dropout: float = 0.1
    """Fraction of each layer's contribution left out at each training step."""
    memory: int = 100
    """Steps that the units of mingru, minlstm and lru remember at most, initially."""
    window: int = 256
    """Characters read in one piece, through which gradients flow back."""

    def __post_init__(self) -> None:
        for name in ("width", "hidden", "depth", "window"):
            validate.count(name, getattr(self, name))
        validate.count("expansion", self.expansion, least=0)
        validate.count("memory", self.memory, least=2)
        validate.fraction("dropout", self.dropout)


WRITING = Options(epochs=5, batch_size=16, lr=4e-3, weight_decay=0.01, schedule="cosine", warmup=50, clip=1.0)
CONFIGS = {
    "lru": TextConfig(hidden=128),
    "mingru": TextConfig(hidden=256),
    "minlstm": TextConfig(hidden=256),
    "lstm": TextConfig(depth=1),
    "gru": TextConfig(depth=1),
    "elman": TextConfig(depth=1, hidden=256),
}
OPTIONS = dict.fromkeys(CONFIGS, WRITING) | {"elman": replace(WRITING, lr=2e-3)}


@recipe("lru", "mingru", "minlstm", "lstm", "gru", "elman", data="shakespeare", metric="bits")
def write_text(
    data: str = "shakespeare",
    config: TextConfig = CONFIGS,  # type: ignore[assignment] - each system has its own
    options: Options = OPTIONS,  # type: ignore[assignment]
    system: str = "lru",
) -> Experiment:
    """Three plays of Shakespeare, character by character: how well the next one is foreseen, and what it writes."""
    text = load(data)
    vocabulary: Vocabulary = text.extra["vocabulary"]
    if config.window >= len(text.train.x):
        raise ValueError(f"window must be below the {len(text.train.x)} characters of the text, got {config.window}")
    # Windows that overlap: the model meets every passage from four different beginnings.
    train = windows(text.train.x, config.window, stride=-(-config.window // 4))
    test = windows(text.validation.x, READ_AT_ONCE)
    arguments = {"vocab_size": len(vocabulary), "cell": system, **chosen(config, without=("window",))}

    def write(system: CharacterModel) -> str:
        return _write_texts(system, vocabulary, 1, torch.Generator().manual_seed(0), length=200)

    def sample(
        system: CharacterModel,
        count: int,
        generator: torch.Generator,
        prompt: str = PROMPT,
        length: int = 500,
        temperature: float = 0.8,
    ) -> str:
        return _write_texts(system, vocabulary, count, generator, prompt, length, temperature)

    return Language().experiment(
        CharacterModel, arguments, train, test, options, sample=sample, write=write,
        picture=costs_by_context(test, write, BASELINES), notes={"baselines": BASELINES, "how": HOW},
    )  # fmt: skip


def _write_texts(
    system: CharacterModel,
    vocabulary: Vocabulary,
    count: int,
    generator: torch.Generator,
    prompt: str = PROMPT,
    length: int = 200,
    temperature: float = 0.8,
) -> str:
    """Texts that begin with the prompt, set apart by a line of dashes."""

    def write(numbers: Tensor, source: torch.Generator) -> Tensor:
        return system.sample(numbers, length, temperature, source)

    return continued(system, vocabulary, count, generator, prompt, write)


def continued(
    system: nn.Module,
    vocabulary: Vocabulary,
    count: int,
    generator: torch.Generator,
    prompt: str,
    write: Callable[[Tensor, torch.Generator], Tensor],
) -> str:
    """Texts that begin with the prompt and go on with what is written; set apart by a line of dashes."""
    if not prompt:
        raise ValueError("prompt must hold at least one character")
    unknown = sorted(set(prompt) - set(vocabulary.tokens))
    if unknown:
        raise ValueError(f"prompt must hold characters that the model has read, got {unknown[0]!r}: leave it out")
    device = next(system.parameters()).device
    source = generator if device.type == "cpu" else torch.Generator(device).manual_seed(generator.initial_seed())
    texts = write(vocabulary.encode(prompt).to(device).expand(count, -1), source)
    return f"\n{'-' * 20}\n".join(prompt + vocabulary.decode(text) for text in texts)


def costs_by_context(
    test: Examples, write: Callable[[Any], str], baselines: Mapping[str, float]
) -> Callable[[Any], Figure]:
    """How many bits a character costs after how much context: a model that remembers gets better as it reads on."""
    read, lines = test.x.shape[1], []
    edges = sorted({round(2 ** (k / 2)) for k in range(2 * int(math.log2(read)) + 1)} | {read})
    middles = [math.sqrt((a + 1) * b) for a, b in zip([0, *edges], edges, strict=False)]
    for name, bits in baselines.items():
        lines.append(Line([middles[0], middles[-1]], [bits, bits], name))

    def picture(system: Any) -> Figure:
        place = next(system.parameters()).device
        with evaluating(system):
            found = system.nll(test.x.to(place), test.y.to(place)).mean(0).cpu() / math.log(2)
        means = [found[a:b].mean().item() for a, b in zip([0, *edges], edges, strict=False)]
        marks = [Line(middles, means, "the model"), *lines]
        note = f"It writes: {' / '.join(write(system).splitlines())}"
        return Figure(
            "What a character costs", "characters read before it", "bits", marks, x_log=True, note=note,
        )  # fmt: skip

    return picture
