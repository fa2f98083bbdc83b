r"""What experiments of one form share: a classification, a regression and a model of text hold loss, scores and
predictions once, so that a recipe is its data, its network and what is special."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded

__all__ = ["Classification", "Language", "Regression", "accuracy", "likeliest_class"]

Output = Callable[[Any, Examples], Tensor]  # output(system, batch)


def output_of_x(system: Any, batch: Examples) -> Tensor:
    """What a system makes of the column x."""
    return system(batch.x)


def chosen(config: Any, kind: type | None = None, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The choices of a config by name; those of `kind` alone, where the config is a larger one."""
    return {each.name: getattr(config, each.name) for each in fields(kind or config) if each.name not in without}


def built(kind: Any, arguments: Mapping[str, Any], options: Options) -> Any:
    """A new system; its weights are drawn by the seed alone."""
    with seeded(options.seed):
        return kind(**arguments)


class Form:
    """What a system says of a batch, what that costs, and what it is measured and used by."""

    output: Output
    metric: str
    largest = False

    def loss(self, system: Any, batch: Examples) -> dict[str, Tensor]:
        """The loss and the scores, from one pass through the system."""
        raise NotImplementedError

    def predict(self, system: Any, examples: Examples) -> dict[str, Tensor]:
        """For `lemmata predict`, by name."""
        raise NotImplementedError

    def experiment(
        self, system: Any, arguments: Mapping[str, Any], train: Examples, test: Examples, options: Options, **more: Any
    ) -> Experiment:
        """An experiment of this form; `system` is one, or the class that is built of the arguments."""
        system = built(system, arguments, options) if isinstance(system, type) else system
        own = {"loss": self.loss, "output": self.output, "metric": self.metric, "largest": self.largest}
        return Experiment(system, arguments, train, test, options, **{**own, "predict": self.predict, **more})


# --- Classes ---


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """The fraction of examples whose largest output is that of their class; a metric for `fit`.

    >>> accuracy(torch.tensor([[1.0, 2.0], [3.0, 0.0]]), torch.tensor([1, 1]))
    tensor(0.5000, dtype=torch.float64)
    """
    return fraction(output.detach().argmax(1) == target)


def fraction(found: Tensor) -> Tensor:
    """How often something is true, in double precision where the device has it."""
    return found.to(torch.float32 if found.device.type == "mps" else torch.float64).mean()


def likeliest_class(probability: Tensor) -> dict[str, Tensor]:
    """The likeliest class of each example, and how likely it is held; probability is (batch, classes)."""
    return {"class": probability.argmax(1), "probability": probability.amax(1)}


@dataclass(frozen=True)
class Classification(Form):
    """Classes, the column y, by the cross-entropy of logits; `varied` changes the batches that are learnt from."""

    output: Output = output_of_x  # (batch, classes) logits
    varied: Callable[[Examples], Examples] | None = None
    at_once: int = 2**62  # examples of a prediction
    metric: str = "accuracy"
    largest: bool = True

    def loss(self, system: Any, batch: Examples) -> dict[str, Tensor]:
        seen = self.varied(batch) if self.varied and system.training else batch
        logits = self.output(system, seen)
        return {"loss": functional.cross_entropy(logits, seen.y), "accuracy": accuracy(logits, seen.y)}

    def predict(self, system: Any, examples: Examples) -> dict[str, Tensor]:
        parts = [examples[first : first + self.at_once] for first in range(0, len(examples), self.at_once)]
        return likeliest_class(torch.cat([self.output(system, part).softmax(1) for part in parts or [examples]]))


# --- Numbers ---


def mean_absolute_error(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).abs().mean()


@dataclass(frozen=True)
class Regression(Form):
    """Numbers, the column y; the first of the scores decides which weights are best."""

    output: Output = lambda system, batch: system(batch.x)[:, 0]  # (batch,)
    error: Callable[[Tensor, Tensor], Tensor] = functional.mse_loss
    scores: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = field(
        default_factory=lambda: {"mae": mean_absolute_error}
    )
    name: str = "predicted"
    value: Callable[[Tensor], Tensor] = lambda output: output  # in the target's own unit

    @property
    def metric(self) -> str:  # type: ignore[override]
        return next(iter(self.scores))

    def loss(self, system: Any, batch: Examples) -> dict[str, Tensor]:
        output = self.output(system, batch)
        scores = {name: score(output.detach(), batch.y) for name, score in self.scores.items()}
        return {"loss": self.error(output, batch.y), **scores}

    def predict(self, system: Any, examples: Examples) -> dict[str, Tensor]:
        return {self.name: self.value(self.output(system, examples))}


# --- Text ---


@dataclass(frozen=True)
class Language(Form):
    """Tokens, each told from those before it: negative log-likelihoods in nats, and in bits those that are scored."""

    output: Output = lambda system, batch: system.nll(batch.x, batch.y)  # (batch, time), or their mean
    scored: Callable[[Tensor], Tensor] = lambda nll: nll
    metric: str = "bits"
    predict = None  # type: ignore[assignment] - a text is sampled

    def loss(self, system: Any, batch: Examples) -> dict[str, Tensor]:
        nll = self.output(system, batch)
        return {"loss": nll.mean(), "bits": self.scored(nll).detach().mean() / math.log(2)}
