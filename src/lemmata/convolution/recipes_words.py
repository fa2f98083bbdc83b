"""What can be trained in this chapter, another part: vectors for the words of a text, from the company they keep.

What the defaults reach (seed 0): the word that stands near another in the last tenth of the plays is told from a drawn
one in 59.6 % of all cases, by counts of the same pairs in 56.0 %; in the verses 61.6 % and 58.8 %.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.glove import GloVe
from lemmata.convolution.skip_gram import SkipGram, cooccurring_pairs, thinned, unigram_distribution
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.data.text import SPECIAL, Vocabulary
from lemmata.fast.skip_gram_sweep import AliasTable, alias_table
from lemmata.figure import Figure, Points
from lemmata.marks import recipe
from lemmata.measure.principal_axes import principal_plane
from lemmata.train.experiment import Experiment
from lemmata.train.optimizers import lr_factor
from lemmata.train.options import Options
from lemmata.train.randomness import seeded

__all__ = ["SkipGramConfig", "learn_word_vectors"]

HOW = (
    "Pairs of words that stand near each other in held-out text, against the same first word with one drawn from the "
    "distribution of the negatives; equal scores count half. The counts are those of the training pairs, divided by "
    "that distribution."
)
NEIGHBOURS = 6
# Words that a reader would put together; those that a text lacks are left out of the picture.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "shakespeare": {
        "in Julius Caesar": "caesar brutus cassius antony caska decius portia octauius rome",
        "in Hamlet": "hamlet horatio polonius laertes ophelia gertrude rosincrance denmarke norway",
        "in Macbeth": "macbeth banquo duncan macduffe malcolme rosse thane scotland cawdor",
        "family": "father mother sonne daughter brother wife husband sister vncle",
        "body": "hand eye heart head tongue face blood eyes hands",
    },
    "verses": {
        "people": "moses aaron david saul solomon joseph jacob abraham peter",
        "gold and linen": "gold silver brass blue purple scarlet linen fine wood",
        "family": "father mother son daughter brother wife sons daughters children",
        "body": "hand eye heart head tongue face blood eyes feet",
        "field": "sheep oxen field corn vineyard rain water earth trees",
    },
}
TOLD = {"shakespeare": ("king", "brutus", "father", "night"), "verses": ("king", "gold", "hand", "night")}


@dataclass(frozen=True)
class SkipGramConfig:
    """What can be chosen of word vectors, and of the pairs that they are learnt from."""

    dimensions: int = 64
    """Length of a word's vector."""
    window: int = 5
    """Places that two words may be apart."""
    samples: int = 5
    """Words drawn against each observed one."""
    threshold: float = 1e-3
    """Frequency beyond which words are left out at random, the more frequent the more often."""
    min_freq: int = 5
    """Words that occur less often in the training text are left out."""

    def __post_init__(self) -> None:
        for name in ("dimensions", "window", "samples", "min_freq"):
            validate.count(name, getattr(self, name))
        validate.number("threshold", self.threshold, above=0)


@recipe("skipgram", data="shakespeare verses", metric="accuracy")
def learn_word_vectors(
    data: str = "shakespeare",
    config: SkipGramConfig = SkipGramConfig(),  # noqa: B008 - frozen
    options: Options = Options(epochs=5, batch_size=256, lr=0.025, schedule="linear", device="cpu"),  # noqa: B008
) -> Experiment:
    """Vectors for the words of three plays, or of verses: words in the same company become neighbours."""
    vocabulary, tokens, held_out = frequent_words(data, config.min_freq)
    size = len(vocabulary)
    distribution = unigram_distribution(tokens, size)
    # What is learnt from and looked at follows from the text alone: another seed draws other vectors and negatives.
    generator = torch.Generator().manual_seed(0)
    pairs, unseen = (
        cooccurring_pairs(thinned(text, size, config.threshold, generator), config.window)
        for text in (tokens, held_out)
    )
    drawn = torch.multinomial(distribution, len(unseen), replacement=True, generator=generator)
    test = Examples(x=unseen, drawn=drawn)
    arguments: dict[str, Any] = {"vocab_size": size, "dimensions": config.dimensions}
    with seeded(options.seed):
        system = SkipGram(**arguments)

    def write(system: SkipGram) -> str:
        return neighbours(system, vocabulary, [word for word in TOLD[data] if word in vocabulary.numbers])

    def sample(system: SkipGram, count: int, generator: torch.Generator, prompt: str = "") -> str:
        drawn = torch.multinomial(distribution, min(count, size), generator=generator).tolist()
        return neighbours(system, vocabulary, prompt.lower().split() or [vocabulary.tokens[k] for k in drawn])

    baselines = {"counts of the pairs": ranked(_by_counts(pairs, distribution), test), "guessing": 0.5}
    return Experiment(
        system, arguments, Examples(x=pairs), test, options, metric="accuracy", largest=True,
        learner=PairLearner(system, alias_table(distribution), options, config.samples),
        picture=lambda system: picture(system, vocabulary, GROUPS[data]), sample=sample, write=write,
        notes={"baselines": baselines, "how": HOW},
    )  # fmt: skip


class PairLearner:
    """Each batch of pairs is one step of stochastic gradient descent, without autograd."""

    def __init__(self, system: SkipGram, distribution: AliasTable, options: Options, samples: int) -> None:
        self.system, self.distribution, self.options, self.samples = system, distribution, options, samples

    def step(self, batch: Examples, progress: float) -> dict[str, float]:
        # The last step of a linear fall would have no length, which no step may have.
        lr = max(self.options.lr * lr_factor(progress, 1, self.options.schedule), 1e-12)
        self.distribution = AliasTable(*(part.to(batch.x.device) for part in self.distribution))
        return {"loss": self.system.sweep(batch.x, self.distribution, lr, self.samples, len(batch)), "lr": lr}

    def evaluate(self, examples: Examples) -> dict[str, float]:
        with torch.no_grad():
            return {"accuracy": ranked(self._pair_scores, examples.to(self.system.given.weight.device))}

    def _pair_scores(self, words: Tensor, contexts: Tensor) -> Tensor:
        return (self.system.embed(words) * self.system.predicted(contexts)).sum(1)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


def ranked(scores: Callable[[Tensor, Tensor], Tensor], examples: Examples) -> float:
    """How often the observed pair scores above the one with a drawn word."""
    words, contexts = examples.x.unbind(1)
    lead = scores(words, contexts) - scores(words, examples.drawn)
    return ((lead > 0).double() + 0.5 * (lead == 0).double()).mean().item()


def _by_counts(
    pairs: Int[Tensor, "pairs 2"], distribution: Float[Tensor, "size"]
) -> Callable[[Tensor, Tensor], Float[Tensor, "examples"]]:
    """Scores of pairs by how often they met, against how often the second word is drawn."""
    size = len(distribution)
    counts = torch.bincount(pairs[:, 0] * size + pairs[:, 1], minlength=size * size).view(size, size)
    return lambda words, contexts: counts[words, contexts] / distribution[contexts]


def neighbours(system: SkipGram | GloVe, vocabulary: Vocabulary, words: Sequence[str]) -> str:
    """A line for each word: those whose vectors point most nearly in the same direction."""
    unknown = [word for word in words if word not in vocabulary.numbers]
    if unknown:
        raise ValueError(f"prompt must hold words that the text has often enough, got {unknown[0]!r}: try another")
    numbers = torch.tensor([vocabulary.numbers[word] for word in words], device=system.given.weight.device)
    found = system.nearest(numbers, min(NEIGHBOURS, len(vocabulary) - 1)) if words else []
    return "\n".join(
        f"{word}: {' '.join(vocabulary.tokens[k] for k in row.tolist())}"
        for word, row in zip(words, found, strict=True)
    )


def picture(system: SkipGram | GloVe, vocabulary: Vocabulary, groups: Mapping[str, str]) -> Figure:
    """Some words in the plane of their vectors' greatest variance."""
    shown = {name: [word for word in words.split() if word in vocabulary.numbers] for name, words in groups.items()}
    shown = {name: words for name, words in shown.items() if words}
    numbers = torch.tensor([vocabulary.numbers[word] for words in shown.values() for word in words], dtype=torch.int64)
    vectors = system.embed(numbers.to(system.given.weight.device)).detach().cpu().double()
    vectors = functional.normalize(vectors, dim=1)  # (words, dimensions)
    places = principal_plane(vectors).split([len(words) for words in shown.values()])
    marks = [Points(xy[:, 0], xy[:, 1], name) for name, xy in zip(shown, places, strict=True)]
    note = "; ".join(f"{name}: {' '.join(words)}" for name, words in shown.items())
    return Figure("Words by the company they keep", "first principal axis", "second", marks, note=note)


def frequent_words(data: str, min_freq: int) -> tuple[Vocabulary, Tensor, Tensor]:
    """The words that are frequent enough, and both parts of the text in them alone."""
    if data == "shakespeare":
        found = load(data, unit="word")
        known, parts = found.extra["vocabulary"].tokens, (found.train.x, found.validation.x)
    else:
        found = load(data)
        known, parts = found.extra["source"].tokens, (found.train.x.flatten(), found.test.x.flatten())
    frequent = torch.bincount(parts[0], minlength=len(known)) >= min_freq
    frequent[[number for number, token in enumerate(known) if token in SPECIAL]] = False
    if int(frequent.sum()) < 2:
        raise ValueError(f"min_freq must leave at least two words of the text, got {min_freq}")
    number = frequent.cumsum(0) - 1
    kept = [token for token, often in zip(known, frequent.tolist(), strict=True) if often]
    tokens, held_out = (number[part[frequent[part]]] for part in parts)
    return Vocabulary(kept, of_words=True), tokens, held_out
