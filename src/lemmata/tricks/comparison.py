r"""With and without: a trick is a named change of an experiment; a comparison trains the plain one and each of them."""

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.feedforward.softmax import cross_entropy
from lemmata.figure import Figure, Line
from lemmata.train.experiment import Experiment
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options
from lemmata.train.recipe import Recipe
from lemmata.train.run import Run
from lemmata.train.watch import Watcher
from lemmata.tricks.augmentation import Shift
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.dropout import Dropout
from lemmata.tricks.initialization import initialize
from lemmata.tricks.layer_norm import LayerNorm
from lemmata.tricks.weight_norm import weight_normalized

__all__ = ["Comparison", "TRICKS", "Trick", "apply_tricks", "compare"]

Change = Callable[[Experiment, Any], Experiment]
MOMENTUM = 0.1  # of the running averages of BatchNorm, where none is given


# --- Changes of an experiment: what its data, loss, options and system become ---


def _with_augmentation(experiment: Experiment, pixels: int) -> Experiment:
    """Training pictures are moved by up to so many pixels."""
    if "x" not in experiment.train.columns or experiment.train.x.ndim not in (3, 4):
        raise ValueError("augmentation needs pictures (height, width), which these data are not")
    shift, loss = Shift(pixels), experiment.loss
    assert loss is not None

    def on_changed(system: nn.Module, batch: Examples) -> Any:
        return loss(system, Examples(**{**batch.columns, "x": shift(batch.x)}) if system.training else batch)

    return dataclasses.replace(experiment, loss=on_changed)


def _with_smoothing(experiment: Experiment, smoothing: int | float) -> Experiment:
    """Labels are smoothed while training."""
    if not experiment.classes:
        raise ValueError("label_smoothing needs classes, which these data do not have")
    loss, output = experiment.loss, experiment.output
    assert loss is not None
    if output is None:
        raise ValueError("label_smoothing needs one class an example, which these data do not have")

    def with_smoothing(system: nn.Module, batch: Examples) -> Any:
        return cross_entropy(output(system, batch), batch.y, smoothing) if system.training else loss(system, batch)

    return dataclasses.replace(experiment, loss=with_smoothing)


def _with_weight_decay(experiment: Experiment, weight_decay: int | float) -> Experiment:
    """The optimiser lets weights decay."""
    return _with_options(experiment, weight_decay=weight_decay)


def _with_early_stopping(experiment: Experiment, patience: int) -> Experiment:
    """A fifth of the training examples is held out, and training stops when it gets no better on these."""
    if experiment.validation is not None:
        return _with_options(experiment, patience=patience)
    order = torch.randperm(len(experiment.train), generator=torch.Generator().manual_seed(experiment.options.seed))
    held_out = len(order) // 5
    if not held_out:
        raise ValueError(f"early_stopping needs 5 training examples or more, got {len(order)}")
    parts = {"validation": experiment.train[order[:held_out]], "train": experiment.train[order[held_out:]]}
    return _with_options(dataclasses.replace(experiment, **parts), patience=patience)


def _with_options(experiment: Experiment, **changed: Any) -> Experiment:
    return dataclasses.replace(experiment, options=dataclasses.replace(experiment.options, **changed))


def _with_dropout(experiment: Experiment, p: int | float) -> Experiment:
    """The inputs of every linear layer but the first are dropped."""
    for layer in _linear_layers(experiment, "dropout")[1:]:
        layer.dropout = Dropout(p)
        layer.register_forward_pre_hook(_drop_inputs)
    return experiment


def _with_dropconnect(experiment: Experiment, p: int | float) -> Experiment:
    """The weights of every linear layer but the first are dropped, one mask for a batch."""
    for layer in _linear_layers(experiment, "dropconnect")[1:]:
        parametrize.register_parametrization(layer, "weight", Dropout(p))
    return experiment


def _with_normalization(trick: str, norm: Callable[[int], nn.Module]) -> Change:
    def change(experiment: Experiment, _: Any) -> Experiment:
        """The outputs of every linear layer but the last are normalised."""
        for layer in _linear_layers(experiment, trick)[:-1]:
            if hasattr(layer, "norm"):
                raise ValueError(f"{trick} needs layers that are not normalised: take one of batchnorm and layernorm")
            layer.norm = norm(layer.out_features).to(layer.weight)
            layer.register_forward_hook(_normalise_outputs)
        return experiment

    return change


def _weight_normalised(experiment: Experiment, _: Any) -> Experiment:
    """The rows of every weight matrix are a length times a direction."""
    for layer in _linear_layers(experiment, "weightnorm"):
        weight_normalized(layer)
    return experiment


def _with_initialization(scheme: str) -> Change:
    def change(experiment: Experiment, _: Any) -> Experiment:
        _linear_layers(experiment, scheme)
        initialize(experiment.system, scheme, generator=torch.Generator().manual_seed(experiment.options.seed))
        return experiment

    return change


# A layer finds its parts in itself, so that copies of a system have copies of them.
def _drop_inputs(layer: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (layer.get_submodule("dropout")(inputs[0]), *inputs[1:])


def _normalise_outputs(layer: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    flat = output.flatten(0, -2) if output.ndim > 2 else output  # the steps of a sequence are examples too
    return layer.get_submodule("norm")(flat).view_as(output)


def _linear_layers(experiment: Experiment, trick: str) -> list[nn.Linear]:
    modules = experiment.system.modules() if isinstance(experiment.system, nn.Module) else ()
    found = [part for part in modules if isinstance(part, nn.Linear)]
    if len(found) < 2:
        name = type(experiment.system).__name__
        raise ValueError(f"{trick} needs a system with hidden linear layers, such as mlp; {name} has none")
    return found


@dataclass(frozen=True)
class Trick:
    """A change of an experiment, and how strong it is where the recipe does not say. `TRICKS` takes more of them."""

    change: Change
    strength: int | float = 0.0
    setting: str = ""  # of the recipe's config or options, which is 0 in the plain experiment


# In the order in which several are applied: a loss is replaced before its batches are changed.
TRICKS: dict[str, Trick] = {
    **{scheme: Trick(_with_initialization(scheme)) for scheme in ("lecun", "glorot", "he", "orthogonal")},
    "batchnorm": Trick(_with_normalization("batchnorm", BatchNorm)),
    "layernorm": Trick(_with_normalization("layernorm", LayerNorm)),
    "weightnorm": Trick(_weight_normalised),
    "dropout": Trick(_with_dropout, 0.3, "dropout"),
    "dropconnect": Trick(_with_dropconnect, 0.3),
    "weight_decay": Trick(_with_weight_decay, 0.1, "weight_decay"),
    "label_smoothing": Trick(_with_smoothing, 0.1),
    "augmentation": Trick(_with_augmentation, 1, "shift"),
    "early_stopping": Trick(_with_early_stopping, 10, "patience"),
}


def apply_tricks(experiment: Experiment, names: str, strengths: Mapping[str, Any] | None = None) -> Experiment:
    """The experiment with a trick, or with several joined by +, in an order that does not depend on theirs.

    The system is changed in place; the rest is a copy. `strengths` replaces the usual ones, by the name of the trick.

    >>> from lemmata.feedforward.recipes import classify_points
    >>> changed = apply_tricks(classify_points("moons"), "weight_decay+batchnorm", {"weight_decay": 0.5})
    >>> changed.options.weight_decay, type(changed.system.layers[0].norm).__name__
    (0.5, 'BatchNorm')
    """
    wanted = [validate.one_of("tricks", name, TRICKS) for name in names.split("+")]
    for name in strengths or {}:
        validate.one_of("strengths", name, TRICKS)
    for name, trick in TRICKS.items():
        if name in wanted:
            experiment = trick.change(experiment, (strengths or {}).get(name, trick.strength))
    return experiment


# --- Plain, and with each ---


@dataclass(frozen=True)
class Comparison:
    """The runs by name, the plain one first, and what they were judged by."""

    runs: dict[str, Run]
    metric: str
    largest: bool
    tested: int  # examples

    @property
    def scores(self) -> dict[str, float]:
        """The score of each on the test examples, in the end."""
        return {name: run.scores[self.metric] for name, run in self.runs.items()}

    @property
    def noise(self) -> float | None:
        """Two standard errors of the difference of two fractions, such as accuracies, of so many examples."""
        scores = list(self.scores.values())
        if not (self.largest and all(0 <= value <= 1 for value in scores)):
            return None
        mean = sum(scores) / len(scores)
        return 2 * math.sqrt(2 * mean * (1 - mean) / self.tested)

    @property
    def caution(self) -> str:
        """How large a difference must be to mean something, and which runs were too short for theirs to."""
        told = []
        if self.noise is not None:
            told = [
                f"Differences below {100 * self.noise:.1f} % are within the noise of {self.tested:,} test examples."
            ]
        for name, run in self.runs.items():
            left = (1 - MOMENTUM) ** run.steps  # of the mean 0 and variance 1 that running averages begin with
            if "batchnorm" in name.split("+") and left > 0.01:
                steps = f"{run.steps} step" + ("s" if run.steps > 1 else "")
                told.append(f"{name}: after {steps} running averages are {left:.0%} what they began as: train longer.")
        return " ".join(told)

    def figure(self, title: str = "") -> Figure:
        """The score of each run at each evaluation, with its last score in the legend."""
        lines, held_out = [], []
        for name, run in self.runs.items():
            column = f"{run.history.prefix}_{self.metric}"
            seen = [row for row in run.history.epochs if column in row]
            label = f"{name} {self.scores[name]:.3f}"
            lines.append(Line([row["epoch"] for row in seen], [row[column] for row in seen], label))
            held_out += [name] if run.history.prefix == "validation" else []
        note = f"In the legend: on the test examples in the end. {self.caution}"
        if held_out:
            note += f" The curve of {' and '.join(held_out)} is that on its own held-out examples."
        return Figure(title or f"{self.metric}, plain and with each trick", "epoch", self.metric, lines, note=note)


def compare(
    recipe: Callable[..., Experiment] | Recipe,
    tricks: Sequence[str],
    data: str = "",
    config: Any = None,
    options: Options | None = None,
    on_run: Callable[[str, Experiment], Sequence[Watcher]] | None = None,
) -> Comparison:
    """Train what a recipe builds without any trick, and then with each of several, all else being equal.

    The plain experiment is the recipe's with its own tricks turned off (dropout, shifted pictures, weight decay,
    patience); where the recipe has one of them, its strength is that of the recipe. `on_run` is told each name before
    its run begins, and returns who looks on.

    >>> from lemmata.feedforward.recipes import classify_points
    >>> found = compare(classify_points, ["batchnorm"], "moons", options=Options(epochs=2, device="cpu"))
    >>> list(found.scores), len(found.figure().marks)
    (['plain', 'batchnorm'], 2)
    """
    if isinstance(tricks, str):
        raise ValueError(f"tricks must be a list of names, got {tricks!r}: use [{tricks!r}]")
    for name in tricks:
        for each in name.split("+"):
            validate.one_of("tricks", each, TRICKS)
    if len(set(tricks)) != len(tricks) or not tricks:
        raise ValueError(f"tricks must have one name or more, each once, got {', '.join(tricks) or 'none'}")
    recipe = Recipe.of(recipe)
    config, options = config or recipe.usual[0], recipe.usual[1] if options is None else options
    assert options is not None
    strengths = {
        name: value for name, trick in TRICKS.items() if (value := _trick_setting(trick.setting, config, options))
    }
    config, options = _without_tricks(config, options)
    build = functools.partial(recipe, data, config, options)
    plain = build()
    if plain.loss is None:
        name = type(plain.system).__name__
        raise ValueError(f"tricks are for systems that learn by gradients, {name} does not")
    for name in tricks:  # what cannot be changed so is refused now, not when the runs before it have been trained
        apply_tricks(dataclasses.replace(plain, system=copy.deepcopy(plain.system)), name, strengths)
    runs = {}
    for name in ("plain", *tricks):
        experiment = plain if name == "plain" else apply_tricks(build(), name, strengths)
        watchers = on_run(name, experiment) if on_run else ()
        experiment = dataclasses.replace(experiment, picture=None)  # the pictures are those of single runs
        runs[name] = run_experiment(experiment, watchers=watchers)
    return Comparison(runs, plain.metric, plain.largest, len(plain.test))


def _trick_setting(name: str, config: Any, options: Options) -> Any:
    """What the recipe says about a trick, if anything."""
    return getattr(config, name, None) or getattr(options, name, None) if name else None


def _without_tricks(config: Any, options: Options) -> tuple[Any, Options]:
    """The same with all tricks turned off."""
    own = {field.name for field in dataclasses.fields(config)}
    off = {trick.setting: 0 for trick in TRICKS.values() if trick.setting in own}
    config = dataclasses.replace(config, **{name: type(getattr(config, name))(value) for name, value in off.items()})
    return config, dataclasses.replace(options, weight_decay=0.0, patience=None)
