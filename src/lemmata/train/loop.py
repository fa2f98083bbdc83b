"""`fit`: train any model on whatever data there are; and the same for what a recipe returned."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from lemmata.data.examples import Examples
from lemmata.figure import Figure
from lemmata.train.callbacks import Callback, as_callbacks
from lemmata.train.device import check_precision, choose_device
from lemmata.train.experiment import Experiment
from lemmata.train.gradient import GradientLearner
from lemmata.train.learner import Learner
from lemmata.train.options import Options
from lemmata.train.processes import World
from lemmata.train.progress import Progress, wanted
from lemmata.train.randomness import seeded
from lemmata.train.run import Run
from lemmata.train.saved import told_arguments
from lemmata.train.sources import Place, Source, as_source
from lemmata.train.training import Training, total_steps
from lemmata.train.watch import Keeper, Watcher

__all__ = ["fit", "run_experiment"]


def fit(
    model: Any,
    data: Any,
    *,
    validation: Any = None,
    test: Any = None,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    scheduler: Any = None,
    scheduler_every: Literal["epoch", "step"] = "epoch",
    metrics: Mapping[str, Callable[..., Any]] | Callable[[Any, Examples], Mapping[str, float]] | None = None,
    metric: str = "loss",
    largest: bool = False,
    on_step: Callback | Sequence[Callback] | None = None,
    on_epoch: Callback | Sequence[Callback] | None = None,
    learner: Learner | None = None,
    picture: Callable[[Any], Figure] | None = None,
    options: Options | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    progress: bool | None = None,
    watchers: Sequence[Watcher] = (),
    record: Mapping[str, Any] | None = None,
    **chosen: Any,
) -> Run:
    r"""Train a model; the same options give the same bits, interrupted and resumed or not.

    `data`, `validation` and `test` are tensors or numpy arrays (`(x, y)`, or a dict by name), a Dataset, a DataLoader,
    or anything that yields batches when gone through. Batch t of an epoch is a function of (seed, epoch, t), so
    resuming is exact; the order of a DataLoader or another stream is its own, and resuming skips what was seen.

    `loss` is one of torch, given output and target (`nn.MSELoss()`, `F.cross_entropy`), or a function of (model,
    batch) that returns a scalar or a dict with one under "loss"; by default cross-entropy for integer targets,
    else the mean squared error. `optimizer` and `scheduler` are objects of torch.optim, or functions that make them of
    the parameters and of the optimiser; a name ("muon") does for `optimizer`, and `schedule="cosine"` for a schedule.
    `metrics` are functions of (output, target) by name. Options (`epochs`, `lr`, `batch_size`, ...) are given by name
    or as `options`.

    `on_step` and `on_epoch` are given a `TrainingState`, and stop the training by returning True. A `learner` replaces
    all of this for systems that learn otherwise. Evaluations on the way use `validation`, or else `test`; `patience`
    needs `validation`, for weights chosen on the test examples would make its score a boast. `metric` is the score
    that counts, `largest` whether more is better. With `out`, a run folder holds the record, the log and the
    checkpoints, and `resume=True` goes on from the newest sound one. `progress` shows a bar, by default on a terminal.

    >>> x = torch.linspace(-1, 1, 128)[:, None]
    >>> run = fit(nn.Linear(1, 1), (x, 3 * x), epochs=50, lr=0.1, device="cpu")
    >>> run.stopped, run.steps, run.scores["loss"] < 1e-3, len(run.history["loss"])
    ('finished', 100, True, 50)
    """
    if isinstance(optimizer, str):
        chosen, optimizer = {**chosen, "optimizer": optimizer}, None
    options = _merge_options(options, chosen, optimizer)
    device = choose_device(options.device)
    check_precision(options.precision, device)
    world = World.join(device)
    _prepare_model(model, options, device, learner, world)
    place = Place(device, _model_dtype(model, options))
    source = as_source(data, "data", options, place, world)
    held_out = {
        name: None if given is None else as_source(given, name, options, place, world)
        for name, given in (("test", test), ("validation", validation))
    }
    if options.patience is not None and validation is None:
        raise ValueError("patience needs validation examples: stopping by the test score would spoil it")
    with seeded(options.seed):
        if learner is None:
            words: dict[str, Any] = {"options": options, "steps": total_steps(source, options) or 1, "world": world}
            words |= {"optimizer": optimizer, "scheduler": scheduler, "scheduler_every": scheduler_every}
            learner = GradientLearner(model, loss, metrics, device=device, **words)
        training = Training(model, learner, source, held_out, options, device, world, Path(out) if out else None)
        training.metric, training.sign, training.picture = metric, 1 if largest else -1, picture
        training.on_step, training.on_epoch = as_callbacks(on_step, "on_step"), as_callbacks(on_epoch, "on_epoch")
        if world.rank:
            torch.manual_seed(options.seed + 1_000_003 * world.rank)  # equal dropout on all shares would be less noise
        bar = [Progress()] if world.first and wanted(progress) else []
        if record is None:
            with seeded(options.seed):  # an item may be drawn at random: to look at one must not change what is learnt
                record = _run_facts(model, source)
        return training.run(resume, [*bar, *watchers], record)


def run_experiment(experiment: Experiment, **more: Any) -> Run:
    """`fit` for what a recipe returned; `more` are out, resume, watchers and record."""
    words = ("test", "validation", "loss", "learner", "on_epoch", "metrics", "metric", "largest", "picture", "options")
    given = {word: getattr(experiment, word) for word in words}
    if experiment.files:
        more["watchers"] = [*more.get("watchers", ()), Keeper(experiment.files)]
    return fit(experiment.system, experiment.train, **{"progress": False, **given, **more})


def _run_facts(model: Any, source: Source) -> dict[str, Any]:
    """What the folder of a run tells of it where no recipe does: how to build the model again, and what it is given."""
    facts: dict[str, Any] = {"shapes": source.shapes()}
    arguments = told_arguments(model)
    if arguments is not None:
        facts |= {"built": type(model).__lemmata_system__["id"], "arguments": arguments}
    return facts


OF_THE_OPTIMIZER = ("lr", "weight_decay", "momentum")


def _merge_options(options: Options | None, chosen: Mapping[str, Any], optimizer: Any) -> Options:
    names = [field.name for field in dataclasses.fields(Options)]
    for name in chosen:
        if name not in names:
            near = difflib.get_close_matches(name, [*names, "validation", "metrics", "on_step", "on_epoch"], 1)
            cure = f": did you mean {near[0]}?" if near else f"; it has {', '.join(names)}"
            raise TypeError(f"fit has no option {name!r}{cure}")
        if optimizer is not None and name in OF_THE_OPTIMIZER:
            raise ValueError(f"{name} belongs to your optimizer: set it there")
    return dataclasses.replace(options or Options(), **chosen)


def _prepare_model(model: Any, options: Options, device: torch.device, learner: Learner | None, world: World) -> None:
    """The model on its device, in its numbers, and in training mode."""
    if isinstance(model, nn.Module):
        model.to(device, torch.float64 if options.precision == "float64" else None)
        model.train()
    if learner is not None:
        if world.size > 1:
            raise ValueError("this system does not learn by gradients alone: use --procs 1")
    elif not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, or come with a learner, got {type(model).__name__}")


def _model_dtype(model: Any, options: Options) -> torch.dtype | None:
    """The real numbers that a model computes with, so that examples come in them; None if it has no one kind."""
    if options.precision == "float64":
        return torch.float64
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    kinds = {parameter.dtype for parameter in parameters if parameter.is_floating_point()}
    return kinds.pop() if len(kinds) == 1 else None
