"""What a recipe hands to the loop: a system, what it learns from, how, and what to show for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from lemmata.data.examples import Examples
from lemmata.figure import Figure
from lemmata.train.callbacks import Callback
from lemmata.train.learner import Learner
from lemmata.train.options import Options

if TYPE_CHECKING:
    from lemmata.data.preparation import Preparation

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """A training run before it begins. A recipe is a function that returns one:

        @recipe("mlp", data="fashion digits moons", metric="accuracy")
        def classify(data: str, config: MLPConfig, options: Options) -> Experiment: ...

    Its `config` and `options` parameters are frozen dataclasses whose defaults are the recipe's own; the command line
    and the page make their options from them.
    """

    system: Any  # a class marked @system: an nn.Module, or any object with state_dict and load_state_dict
    arguments: Mapping[str, Any]  # plain values that build the same system again: type(system)(**arguments)
    train: Examples
    test: Examples
    options: Options
    validation: Examples | None = None  # for the evaluations on the way, and for patience; never part of train or test
    loss: Callable[..., Any] | None = None  # loss(system, batch) -> scalar, or dict with "loss"; for gradient learners
    output: Callable[[Any, Examples], torch.Tensor] | None = None  # output(system, batch): logits, or numbers
    learner: Learner | None = None  # for systems that learn otherwise
    on_epoch: Callback | None = None  # after each epoch: a true answer ends the training
    metrics: Callable[[Any, Examples], Mapping[str, float]] | None = None  # metrics(system, batch), means over a batch
    metric: str = "loss"  # the number that decides which weights are best
    largest: bool = False  # whether large values of it are good
    classes: tuple[str, ...] = ()
    picture: Callable[[Any], Figure] | None = None  # after each evaluation
    predict: Callable[[Any, Examples], Mapping[str, torch.Tensor]] | None = None  # for `lemmata predict`
    # sample(system, count, generator), for `lemmata sample`; bytes are the content of a WAV file
    sample: Callable[..., "Figure | str | bytes"] | None = None
    write: Callable[[Any], str] | None = None  # a few lines of text, told after an evaluation
    # by name, for the run's folder, when training is over; figure-NAME.json is drawn by whoever shows the run
    files: Callable[[Any], Mapping[str, bytes]] | None = None
    preparation: "Preparation | None" = None  # of a user's own file: how new examples become inputs
    notes: Mapping[str, Any] = field(default_factory=dict)  # facts for the run's record, such as baselines
