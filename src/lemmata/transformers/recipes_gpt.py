"""What can be trained in this chapter: a GPT that reads plays and writes on, character by character.

What the defaults reach (seed 0), in bits a character: 2.78 after 658 updates, 2.51 after 1,316; the trigram has 2.89.
On an H200 2.17 in half a minute, with settings that a held-out tenth of the training text chose among three: `lemmata
train gpt --device cuda --precision bfloat16 --width 256 --depth 5 --heads 4 --window 256 --stride 32 --dropout 0.3
--attention-dropout 0.1 --batch-size 64 --lr 2e-3 --weight-decay 0.1 --ema-decay 0.997 --schedule cosine --warmup 100
--clip 1.0 --epochs 1000 --steps 1809 --evaluate 1000`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.registry import load
from lemmata.data.text import Vocabulary, windows
from lemmata.marks import recipe
from lemmata.recurrent.recipes import BASELINES as N_GRAMS
from lemmata.recurrent.recipes import PROMPT, continued, costs_by_context
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Language, chosen
from lemmata.train.options import Options
from lemmata.transformers.generation import generate
from lemmata.transformers.gpt import GPT

__all__ = ["GPTTextConfig", "write_plays"]

BASELINES = N_GRAMS | {"lru": 2.28, "mingru": 2.22}
HOW = (
    "n-grams interpolated by Witten and Bell's rule, counted in the training text, of which the 5-gram is the best; "
    "lru and mingru as `lemmata train` trains them on the same text, reading up to 1,024 characters. Every test "
    "character is foreseen by the GPT from at most a window of text before it, and at least half of one."
)


@dataclass(frozen=True)
class GPTTextConfig:
    """What can be chosen of a GPT that reads characters."""

    width: int = 128
    """Values that stand for a character on its way through the blocks."""
    depth: int = 3
    """Blocks, one above another."""
    heads: int = 4
    """Attentions side by side in each block."""
    dropout: float = 0.1
    """Fraction of what each part of a block adds that is left out while training."""
    attention_dropout: float = 0.0
    """Fraction of the weights of attention that is left out while training."""
    window: int = 128
    """Characters that it reads at once."""
    stride: int | None = None
    """Characters from the beginning of a training window to that of the next; half a window if None."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads"):
            validate.count(name, getattr(self, name))
        validate.count("window", self.window, least=4)
        for name in ("dropout", "attention_dropout"):
            validate.fraction(name, getattr(self, name))
        if self.stride is not None:
            validate.count("stride", self.stride, most=self.window)


READING = Options(epochs=4, batch_size=16, lr=3e-3, weight_decay=0.05, schedule="cosine", warmup=100, clip=1.0)


@recipe("gpt", data="shakespeare", metric="bits")
def write_plays(
    data: str = "shakespeare",
    config: GPTTextConfig = GPTTextConfig(),  # noqa: B008 - frozen
    options: Options = READING,
) -> Experiment:
    """Three plays of Shakespeare, character by character: how well the next one is foreseen, and what it writes.

    With `--patience` the last tenth of the training text is held out, and decides which weights are kept.
    """
    text = load(data)
    vocabulary: Vocabulary = text.extra["vocabulary"]
    if config.window >= len(text.validation.x):
        raise ValueError(f"window must be below the {len(text.validation.x)} characters, got {config.window}")
    # Windows that overlap by half: every passage is met from two beginnings, and tested with half a window before it.
    half = -(-config.window // 2)
    learnt, held_out = text.train.x, None
    if options.patience is not None:
        learnt, last = learnt.tensor_split([9 * len(learnt) // 10])
        held_out = windows(last, config.window, stride=half)
    train = windows(learnt, config.window, stride=config.stride or half)
    test = windows(text.validation.x, config.window, stride=half)
    own = chosen(config, without=("window", "stride"))
    arguments = {"vocab_size": len(vocabulary), "max_length": config.window, **own}

    def write(system: GPT) -> str:
        return written(system, vocabulary, 1, torch.Generator().manual_seed(0), length=200)

    def sample(
        system: GPT,
        count: int,
        generator: torch.Generator,
        prompt: str = PROMPT,
        length: int = 500,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> str:
        return written(system, vocabulary, count, generator, prompt, length, temperature, top_k, top_p)

    # Over the second halves of windows: the first halves are the second ones of others.
    return Language(scored=lambda nll: nll[:, nll.shape[1] // 2 :]).experiment(
        GPT, arguments, train, test, options, validation=held_out, sample=sample, write=write,
        picture=costs_by_context(test, write, BASELINES), notes={"baselines": BASELINES, "how": HOW},
    )  # fmt: skip


def written(
    system: GPT,
    vocabulary: Vocabulary,
    count: int,
    generator: torch.Generator,
    prompt: str = PROMPT,
    length: int = 200,
    temperature: float = 0.8,
    top_k: int | None = None,
    top_p: float | None = None,
) -> str:
    """Texts that begin with the prompt, set apart by a line of dashes."""

    def write(numbers: Tensor, source: torch.Generator) -> Tensor:
        return generate(system, numbers, length, temperature, top_k, top_p, generator=source)

    return continued(system, vocabulary, count, generator, prompt, write)
