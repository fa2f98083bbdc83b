"""What can be trained in this chapter, another part: a GPT that is taught by preferences to avoid a letter.

A small GPT reads the plays first, and writes two answers to each of some prompts. The one with fewer letters e is
preferred, more often the larger the difference is, as Bradley and Terry have it: what is asked can be counted.
What the defaults reach (seed 0): 72.5 % of held-out preferences are explained, by likelihood 57.2 %; of 100 characters
that it writes 2.2 are the letter and before 10.5 were, at 3.9 nats from what it was for an answer of 32 characters.
With `--beta 0.2` and six epochs 0.4 are, at 10.7 nats, and the words suffer.

`lemmata train reward_model` learns from the same comparisons, and of the same GPT, how good answers are: 77.0 % of
the held-out preferences after four epochs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.data.text import Vocabulary
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded
from lemmata.transformers.generation import generate
from lemmata.transformers.gpt import GPT
from lemmata.transformers.preferences import DPO, Comparisons, RewardModel, answer_log_likelihood

__all__ = ["PreferenceConfig", "RewardConfig", "avoid_a_letter", "judge_answers"]

ASKED, ANSWERED = 16, 32  # characters of a prompt and of an answer
HOW = (
    "Preferences that were held out, with the same chance in them; the reference's likelihood prefers the answer that "
    "the GPT finds likelier before it is aligned."
)
TINY: dict[str, Any] = {"width": 64, "depth": 2, "heads": 4, "max_length": ASKED + ANSWERED}


@dataclass(frozen=True)
class RewardConfig:
    """What can be chosen of comparisons, and of a reward that is learnt from them."""

    letter: str = "e"
    """Letter that is not liked."""
    comparisons: int = 2000
    """Pairs of answers, of which a fifth is held out."""
    reading: int = 500
    """Steps in which the reference learns to write before."""

    def __post_init__(self) -> None:
        validate.count("comparisons", self.comparisons, least=10)
        validate.count("reading", self.reading)
        if len(self.letter) != 1 or not self.letter.isalpha():
            raise ValueError(f"letter must be one letter, got {self.letter!r}")


@dataclass(frozen=True)
class PreferenceConfig(RewardConfig):
    """What can be chosen of an alignment."""

    beta: float = 0.5
    """Price of each nat by which the policy leaves the reference."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.positive("beta", self.beta)


LEARNING = Options(epochs=2, batch_size=64, lr=5e-4, schedule="cosine", clip=1.0, weight_decay=0.0)


@recipe("dpo", data="shakespeare", metric="accuracy")
def avoid_a_letter(
    data: str = "shakespeare",
    config: PreferenceConfig = PreferenceConfig(),  # noqa: B008 - frozen
    options: Options = LEARNING,
) -> Experiment:
    """A GPT that writes verses learns from comparisons to do with few letters e, and to remain near what it was."""
    asked = preferences(data, config, options)
    arguments: dict[str, Any] = {"vocab_size": len(asked.vocabulary), **TINY, "beta": config.beta}
    system = DPO(**arguments)
    system.begin_from(asked.gpt)

    def write(system: DPO) -> str:
        score = scores(system, asked.prompts, asked.disliked)
        first = asked.prompts[:3]
        verses = generate(system.policy, first, ANSWERED, generator=torch.Generator().manual_seed(1))
        lines = [asked.vocabulary.decode(row.tolist()).replace("\n", " / ") for row in torch.cat([first, verses], 1)]
        told = f"{score['letters']:.1f} of 100 characters are {config.letter}, before {score['letters before']:.1f}; "
        return "\n".join([told + f"{score['nats']:.1f} nats from the reference", *lines])

    return Experiment(
        system, arguments, asked.train, asked.test, options, metric="accuracy", largest=True, loss=loss,
        metrics=metrics, write=write, notes={"baselines": asked.baselines, "how": HOW},
    )  # fmt: skip


@recipe("reward_model", data="shakespeare", metric="accuracy")
def judge_answers(
    data: str = "shakespeare",
    config: RewardConfig = RewardConfig(),  # noqa: B008 - frozen
    options: Options = replace(LEARNING, epochs=4, lr=5e-3),  # noqa: B008 - frozen
) -> Experiment:
    """A GPT that has read the plays learns from comparisons how much people like an answer."""
    asked = preferences(data, config, options)
    arguments: dict[str, Any] = {"vocab_size": len(asked.vocabulary), **TINY}
    system = RewardModel(**arguments)
    system.gpt.load_state_dict(asked.gpt.state_dict())

    def write(system: RewardModel) -> str:
        """Answers in the order of their rewards, the best first and the worst last."""
        texts = asked.test.x[:100]
        with torch.no_grad():
            rewards = system(texts.to(system.head.weight.device)).cpu()
        order = rewards.argsort(descending=True)
        shown = torch.cat([order[:3], order[-3:]])
        lines = [asked.vocabulary.decode(texts[k].tolist()).replace("\n", " / ") for k in shown]
        return "\n".join(f"{float(rewards[k]):+.2f}  {line}" for k, line in zip(shown, lines, strict=True))

    return Experiment(
        system, arguments, asked.train, asked.test, options, metric="accuracy", largest=True, loss=loss,
        metrics=reward_metrics, write=write, notes={"baselines": asked.baselines, "how": HOW},
    )  # fmt: skip


class Preferences(NamedTuple):
    """What is learnt from: a GPT that has read, comparisons of its answers, and prompts that it has not met."""

    gpt: GPT
    vocabulary: Vocabulary
    disliked: Tensor
    train: Examples
    test: Examples
    prompts: Tensor
    baselines: Mapping[str, float]


def preferences(data: str, config: RewardConfig, options: Options) -> Preferences:
    """A GPT reads, answers and is compared, by the seed alone."""
    text = load(data)
    vocabulary: Vocabulary = text.extra["vocabulary"]
    disliked = torch.tensor([token.lower() == config.letter.lower() for token in vocabulary.tokens])
    generator = torch.Generator().manual_seed(options.seed)
    with seeded(options.seed):
        gpt = GPT(len(vocabulary), **TINY)
        read(gpt, text.train.x, config.reading, generator)
    found = compared(gpt, text.train.x, disliked, config.comparisons, generator)
    train, test = found[len(found.x) // 5 :], found[: len(found.x) // 5]
    prompts = prompts_of(text.validation.x, 200, torch.Generator().manual_seed(0))
    with torch.no_grad():
        pairs = comparisons_of(test)
        likelihoods = (answer_log_likelihood(gpt, pairs[k], pairs[k + 2]) for k in (0, 1))
        likelier = torch.sub(*likelihoods) > 0
    baselines = {"the reference's likelihood": likelier.double().mean().item(), "guessing": 0.5}
    return Preferences(gpt, vocabulary, disliked, train, test, prompts, baselines)


def loss(system: DPO | RewardModel, batch: Examples) -> Tensor:
    """The loss of a batch of comparisons."""
    return system.loss(comparisons_of(batch))


def metrics(system: DPO, batch: Examples) -> Mapping[str, float]:
    """How often the preferred answer has the higher reward."""
    pairs = comparisons_of(batch)
    lead = system.rewards(pairs.better, pairs.better_answers) - system.rewards(pairs.worse, pairs.worse_answers)
    return {"accuracy": (lead > 0).double().mean().item()}


def reward_metrics(system: RewardModel, batch: Examples) -> Mapping[str, float]:
    """The same of a reward model."""
    pairs = comparisons_of(batch)
    lead = system(pairs.better, pairs.better_answers) - system(pairs.worse, pairs.worse_answers)
    return {"accuracy": (lead > 0).double().mean().item()}


def comparisons_of(batch: Examples) -> Comparisons:
    """A batch as comparisons: all prompts are as long, and all answers."""
    answers = (torch.arange(ASKED + ANSWERED, device=batch.x.device) >= ASKED).expand(len(batch.x), -1)
    return Comparisons(batch.x, batch.worse, answers, answers)


def read(gpt: GPT, text: Tensor, steps: int, generator: torch.Generator) -> None:
    """Learn to foresee the text, as `lemmata train gpt` does, for a short while."""
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3, weight_decay=0.0)
    length = ASKED + ANSWERED
    for _ in range(steps):
        begins = torch.randint(len(text) - length, (24, 1), generator=generator)
        optimizer.zero_grad()
        gpt.loss(text[begins + torch.arange(length)]).backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimizer.step()


def prompts_of(text: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Pieces of the text: (count, ASKED)."""
    begins = torch.randint(len(text) - ASKED, (count, 1), generator=generator)
    return text[begins + torch.arange(ASKED)]


def compared(gpt: GPT, text: Tensor, disliked: Tensor, count: int, generator: torch.Generator) -> Examples:
    """Two answers to each prompt, the preferred one first, by Bradley and Terry's chance."""
    prompts = prompts_of(text, count, generator)
    answers = [generate(gpt, prompts, ANSWERED, generator=generator) for _ in range(2)]
    lead = (disliked[answers[1]].sum(1) - disliked[answers[0]].sum(1)).double()
    first = torch.rand(count, generator=generator, dtype=torch.float64) < torch.sigmoid(lead)
    better = torch.where(first[:, None], *answers)
    worse = torch.where(first[:, None], *answers[::-1])
    return Examples(x=torch.cat([prompts, better], 1), worse=torch.cat([prompts, worse], 1))


def scores(system: DPO, prompts: Tensor, disliked: Tensor) -> dict[str, float]:
    """How many of 100 characters are the letter, with and without alignment, and how far the policy has gone."""
    device = system.policy.tokens.weight.device
    found: dict[str, Any] = {}
    for name, gpt in (("letters", system.policy), ("letters before", system.reference)):
        answers = generate(gpt, prompts.to(device), ANSWERED, generator=torch.Generator(device).manual_seed(0))
        found[name] = 100 * disliked[answers.cpu()].double().mean().item()
        if gpt is system.policy:
            texts = torch.cat([prompts.to(device), answers], 1)
            where = (torch.arange(texts.shape[1], device=device) >= ASKED).expand(len(texts), -1)
            with torch.no_grad():
                found["nats"] = system.log_ratio(texts, where).double().mean().item()
    return found
