"""The one training loop: a reproducible order, evaluation, checkpoints, and a clean stop for every reason."""

import contextlib
import copy
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.data.examples import Examples
from lemmata.figure import Figure
from lemmata.files import write_whole
from lemmata.train import checkpoint
from lemmata.train.device import check_precision, choose_device
from lemmata.train.experiment import Experiment
from lemmata.train.folder import alone_in, differing, open_folder, versions
from lemmata.train.gradient import GradientLearner
from lemmata.train.interrupt import Asked, asked_to_stop
from lemmata.train.learner import Learner
from lemmata.train.options import Options
from lemmata.train.position import checked_position
from lemmata.train.processes import World
from lemmata.train.randomness import batch_indices, random_state, restore_random_state, seeded
from lemmata.train.watch import Album, Audience, Log, Watcher

__all__ = ["Diverged", "Run", "fit", "run_experiment"]

SECONDS_BETWEEN_SAVES = 5.0  # at the ends of epochs, unless `save` counts steps; a small system's takes about 0.02 s
# A look at a number on a GPU waits for it, so there several steps are looked at together.
STEPS_LOOKED_AT = {"cpu": 1}
clock = time.monotonic  # decides when to save, never what is computed


class Diverged(ArithmeticError):
    """A number that must be finite was not; the message says which, where, and what is kept."""


@dataclass
class Run:
    """A training run that is over: the system, its scores, and why it stopped."""

    system: Any
    scores: dict[str, float] = field(default_factory=dict)  # on the test examples, or on the training ones if none
    best: dict[str, float] = field(default_factory=dict)  # of the evaluations on the way
    steps: int = 0
    epochs: int = 0
    seconds: float = 0.0
    folder: Path | None = None
    stopped: str = "finished"  # or "patience", or "converged": the learner had nothing left to learn
    messages: list[str] = field(default_factory=list)  # what was said on resuming, such as a damaged file skipped


def fit(
    system: Any,
    train: "Examples | Sequence[Tensor] | Mapping[str, Tensor]",
    *,
    test: "Examples | Sequence[Tensor] | Mapping[str, Tensor] | None" = None,
    validation: "Examples | Sequence[Tensor] | Mapping[str, Tensor] | None" = None,
    loss: Callable[[Any, Examples], Any] | None = None,
    learner: Learner | None = None,
    metrics: Callable[[Any, Examples], Mapping[str, float]] | None = None,
    metric: str = "loss",
    largest: bool = False,
    picture: Callable[[Any], Figure] | None = None,
    options: Options | None = None,
    out: "Path | str | None" = None,
    resume: bool = False,
    watchers: Sequence[Watcher] = (),
    record: Mapping[str, Any] | None = None,
) -> Run:
    r"""Train a system on examples; the same options give the same bits, interrupted and resumed or not.

    `loss(system, batch)` returns a scalar or a dict with one under "loss" (default: cross-entropy for whole-number
    targets, else the mean squared error). A `learner` replaces it for systems that learn otherwise. With `out`, a run
    folder holds the record, the log and the checkpoints, and `resume=True` goes on from the newest sound one.
    Evaluations on the way use `validation`, or else `test`; `patience` needs `validation`, for weights chosen on the
    test examples would make its score a boast. `metric` is the score that counts, `largest` whether more is better.

    >>> x = torch.linspace(-1, 1, 128)[:, None]
    >>> run = fit(nn.Linear(1, 1), (x, 3 * x), options=Options(epochs=50, lr=0.1, device="cpu"))
    >>> run.stopped, run.steps, run.scores["loss"] < 1e-3
    ('finished', 100, True)
    """
    options = options or Options()
    device = choose_device(options.device)
    check_precision(options.precision, device)
    world = World.join(device)
    parts = {"train": _examples("train", train, options), "test": None, "validation": None}
    for name, given in (("test", test), ("validation", validation)):
        parts[name] = None if given is None else _examples(name, given, options)
    if options.patience is not None and validation is None:
        raise ValueError("patience needs validation examples: stopping by the test score would spoil it")
    with seeded(options.seed):
        loop = _Loop(system, parts, options, device, world, metric, largest, picture, Path(out) if out else None)
        loop.prepare(loss, learner, metrics)
        if world.rank:
            torch.manual_seed(options.seed + 1_000_003 * world.rank)  # equal dropout on all shares would be less noise
        return loop.run(resume, watchers, record or {})


def run_experiment(experiment: Experiment, **more: Any) -> Run:
    """`fit` for what a recipe returned; `more` are out, resume, watchers and record."""
    words = ("train", "test", "validation", "loss", "learner", "metrics", "metric", "largest", "picture", "options")
    return fit(experiment.system, **{word: getattr(experiment, word) for word in words}, **more)


class _Loop:
    """The state of a run on its way. Its life: prepare, restore, learn, finish."""

    def __init__(self, system, parts, options, device, world, metric, largest, picture, out):
        self.system, self.options, self.device, self.world = system, options, device, world
        self.train, self.test, self.validation = parts["train"], parts["test"], parts["validation"]
        self.metric, self.sign, self.picture, self.out = metric, 1 if largest else -1, picture, out
        self.per_epoch = -(-len(self.train) // options.batch_size)
        self.total = min(options.epochs * self.per_epoch, options.steps or math.inf)
        self.told_every = max(1, min(self.per_epoch // 10, 100))
        self.step, self.stopped = 0, "finished"
        self.pending: list[Mapping[str, Any]] = []  # numbers of steps that were not looked at yet
        self.sums: dict[str, float] = {}
        self.count = 0
        self.best: dict[str, Any] = {"scores": {}, "system": None, "since": 0}
        self.seconds, self.messages = 0.0, []
        self.audience = Audience()  # of several processes, one tells
        self.here = versions(device, world.size)

    # --- before ---

    def prepare(self, loss: Any, learner: Learner | None, metrics: Any) -> None:
        if isinstance(self.system, nn.Module):
            self.system.to(self.device, torch.float64 if self.options.precision == "float64" else None)
            self.system.train()
        self.all_here = sum(column.nbytes for column in self.train) < 2**31  # else each batch travels alone
        if self.all_here:
            self.train = self.train.to(self.device)
        if learner is not None:
            if self.world.size > 1:
                raise ValueError("this system does not learn by gradients alone: use --procs 1")
            self.learner = learner
            return
        if not isinstance(self.system, nn.Module):
            raise TypeError(f"system must be an nn.Module, or come with a learner, got {type(self.system).__name__}")
        words = {"options": self.options, "steps": self.total, "world": self.world, "device": self.device}
        self.learner = GradientLearner(self.system, loss, metrics, **words)

    def run(self, resume: bool, watchers: Sequence[Watcher], record: Mapping[str, Any]) -> Run:
        with contextlib.ExitStack() as stack:
            if self.out is not None and self.world.first:
                facts = {"class": type(self.system).__name__, **record}
                open_folder(self.out, facts, self.options, resume, self.here)
                stack.enter_context(alone_in(self.out))
            if self.out is not None and resume:
                self.resume(self.out / "checkpoints")
            if self.world.first:
                files = [] if self.out is None else [Log(self.out / "log.jsonl"), Album(self.out / "pictures")]
                self.audience = Audience([*files, *watchers])
                stack.callback(self.audience.close)
            began = clock() - self.seconds
            facts = {"step": self.step, "steps": self.total, "epochs": self.options.epochs, "messages": self.messages}
            self.audience.tell("started", facts | {"epoch": self.step // self.per_epoch, **record})
            self.audience.heed()
            with asked_to_stop() as asked:
                self.learn(asked, began)
            self.seconds = clock() - began
            return self.finish()

    def resume(self, folder: Path) -> None:
        """Go on from the newest sound checkpoint, and note what there is to say about it."""
        found = checkpoint.newest(folder)
        if found is None:
            incomplete = "".join(f" ({reason})" for reason in checkpoint.incomplete(folder)[:1])
            self.messages.append(f"there is nothing to resume in {folder}{incomplete}: training starts at step 0")
            return
        self.messages += found.messages
        try:
            self.restore(found.state, checked_position(found.state["loop"], found.step))
            changed = differing(found.state.get("versions", {}), self.here)
        except checkpoint.BROKEN as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise checkpoint.CheckpointError(f"{found.path} does not fit this run ({why}): start a new one") from error
        if changed:
            other = "from here on the bits may differ from those of an unbroken run"
            self.messages.append(f"step {self.step} was saved under other conditions ({changed}): {other}")

    def restore(self, state: Mapping[str, Any], loop: Mapping[str, Any]) -> None:
        if self.system is not None:
            self.system.load_state_dict(state["system"])
        self.learner.restore(state["learner"])
        self.step, self.sums, self.count = loop["step"], dict(loop["sums"]), loop["count"]
        self.best, self.seconds, self.stopped = dict(loop["best"]), loop["seconds"], loop["stopped"]
        patience = self.options.patience
        if patience and self.best["system"] is None:
            self.best = {"scores": {}, "system": None, "since": 0}  # the weights of those scores were not kept
        if self.stopped == "patience" and (patience is None or self.best["since"] < patience):
            self.stopped = "finished"  # there is more of it now
        restore_random_state(state["random"])
        if self.world.rank < len(state["ranks"]):
            torch.set_rng_state(state["ranks"][self.world.rank])

    # --- on the way ---

    def learn(self, asked: Asked, began: float) -> None:
        self.saved_at = clock()
        while self.step < self.total and self.stopped == "finished":
            epoch, position = divmod(self.step, self.per_epoch)
            self.pending.append(self.advance(epoch, position))
            self.step += 1
            ends = position + 1 == self.per_epoch or self.step == self.total
            self.look(epoch, now=ends)
            if self.over() or (ends and (epoch + 1) % self.options.evaluate == 0):
                self.evaluate(epoch + 1)
            stop, due = self.wishes(asked, ends or self.over())
            if (stop or due) and self.pending:  # what was not looked at would be lost with a kill
                self.look(epoch, now=True)
                if self.over():
                    self.evaluate(epoch + 1)
            if stop or due or self.over():
                self.seconds = clock() - began
                self.save()
            if stop:
                if asked.signal is None:
                    self.audience.heed()
                self.audience.failure = None  # who closes a terminal closes the screen with it
                asked.obey()

    def over(self) -> bool:
        return self.step == self.total or self.stopped != "finished"

    def advance(self, epoch: int, position: int) -> Mapping[str, Any]:
        """One step on the batch of this place."""
        indices = batch_indices(self.options.seed, epoch, position, self.options.batch_size, len(self.train))
        progress = self.step / self.total
        if self.world.size == 1:
            return self.learner.step(self.batch(indices), progress)
        indices, weight = self.world.share(indices)
        return self.learner.step(self.batch(indices), progress, weight)  # type: ignore[call-arg]

    def batch(self, indices: Tensor) -> Examples:
        if self.all_here:
            return self.train[indices.to(self.device)]
        return self.train[indices].to(self.device)

    def wishes(self, asked: Asked, ends: bool) -> tuple[bool, bool]:
        """Whether to stop after this step, and whether to save it: the same on all processes."""
        stop = asked.signal is not None or self.audience.failure is not None
        if self.options.save:
            due = self.step % self.options.save == 0
        else:
            most = min(SECONDS_BETWEEN_SAVES, self.options.save_seconds) if ends else self.options.save_seconds
            due = self.out is not None and clock() - self.saved_at > most
        if self.world.size == 1:
            return stop, due
        if self.pending:  # to ask the others would be to wait for the GPU
            return False, bool(self.options.save) and due
        stop, due = self.world.agree(stop, due and (self.world.first or bool(self.options.save)))
        return stop, due

    def look(self, epoch: int, now: bool = False) -> None:
        """Check the numbers of the last steps, and tell their means now and then."""
        tell = self.step % self.told_every == 0 or self.step == self.total
        if len(self.pending) < STEPS_LOOKED_AT.get(self.device.type, 50) and not tell and not now:
            return
        first = self.step - len(self.pending)
        for offset, numbers in enumerate(self.pending):
            for name, value in numbers.items():
                if name == "finished":
                    self.stopped = "converged" if value else self.stopped
                    continue
                value = float(value)
                if not math.isfinite(value):
                    self.diverged(name, value, first + offset + 1)
                self.sums[name] = self.sums.get(name, 0.0) + value
            self.count += 1
        self.pending = []
        if tell or self.stopped == "converged":
            means = {name: total / self.count for name, total in self.sums.items()}
            self.audience.tell("stepped", self.step, epoch, means)
            self.sums, self.count = {}, 0

    def evaluate(self, epoch: int) -> None:
        stop = False
        watched = self.validation if self.validation is not None else self.test
        if self.world.first:
            with seeded(self.options.seed):  # whether one looks, and draws, must not change what is learnt
                scores = dict(self.learner.evaluate(watched)) if watched is not None else {}
                if scores:
                    self.audience.tell("evaluated", self.step, epoch, scores)
                    stop = self.remember(scores)
                if self.picture:
                    self.audience.tell("pictured", self.step, epoch, self.picture(self.shown()))
        if self.world.decided_by_first(stop):
            self.stopped = "patience"

    def remember(self, scores: dict[str, float]) -> bool:
        """Keep the best scores, and with patience their weights; whether patience is at its end."""
        if self.metric not in scores:
            raise ValueError(f"metric {self.metric!r} is not among the scores: {', '.join(scores)}")
        before = self.best["scores"].get(self.metric)
        if before is None or math.isnan(before) or self.sign * scores[self.metric] > self.sign * before:
            weights = copy.deepcopy(dict(self.shown().state_dict())) if self.options.patience else None
            self.best = {"scores": scores, "system": weights, "since": 0}
        else:
            self.best["since"] += 1
        return self.options.patience is not None and self.best["since"] >= self.options.patience

    def shown(self) -> Any:
        """The system that is evaluated: with the averaged weights if there are any."""
        averaged = getattr(self.learner, "averaged", None)
        return self.system if averaged is None else averaged.module

    def save(self) -> None:
        if self.out is None:
            return
        ranks = self.world.gather(torch.get_rng_state())
        if not self.world.first:
            return
        system = dict(self.system.state_dict()) if self.system is not None else {}
        for name, value in system.items():
            if isinstance(value, Tensor) and value.is_floating_point() and not bool(value.isfinite().all()):
                self.diverged(f"weight {name}", math.nan, self.step)
        loop = {"step": self.step, "sums": self.sums, "count": self.count, "best": self.best}
        loop |= {"seconds": self.seconds, "stopped": self.stopped}
        state = {
            "system": system,
            "learner": self.learner.state(),
            "loop": loop,
            "random": random_state(),
            "ranks": ranks,
            "versions": self.here,
        }
        path = checkpoint.save(self.out / "checkpoints", self.step, state, keep=self.options.keep)
        self.saved_at = clock()
        self.audience.tell("saved", self.step, path)

    def diverged(self, name: str, value: float, step: int) -> None:
        kept = None
        with contextlib.suppress(checkpoint.CheckpointError):
            kept = checkpoint.newest(self.out / "checkpoints") if self.out is not None else None
        where = f"step {step} (epoch {(step - 1) // self.per_epoch + 1})"
        cure = f"lower lr (now {self.options.lr:g})" + ("" if self.options.clip else " or set clip")
        rest = f"; the checkpoint of step {kept.step} is kept" if kept else ""
        raise Diverged(f"{name} became {value} at {where}: {cure}{rest}")

    # --- after ---

    def finish(self) -> Run:
        if self.options.patience and self.best["system"] is not None:
            self.system.load_state_dict(self.best["system"])
        elif hasattr(self.learner, "finish"):
            self.learner.finish()  # type: ignore[attr-defined]
        examples = (
            self.test if self.test is not None else self.validation if self.validation is not None else self.train
        )
        run = Run(self.system, steps=self.step, seconds=self.seconds, folder=self.out, stopped=self.stopped)
        run.epochs, run.best, run.messages = -(-self.step // self.per_epoch), self.best["scores"], self.messages
        if self.world.first:
            with seeded(self.options.seed):
                run.scores = dict(self._final_scores(examples))
            if self.out is not None and self.system is not None:
                weights = {"system": dict(self.system.state_dict())}
                checkpoint.save(self.out / "final", self.step, weights)
                words = ("scores", "best", "steps", "epochs", "seconds", "stopped")
                result = {word: getattr(run, word) for word in words}
                write_whole(self.out / "result.json", json.dumps(result, indent=2).encode())
        if isinstance(self.system, nn.Module):
            self.system.eval()
        self.audience.tell("finished", run)
        return run

    def _final_scores(self, examples: Examples) -> Mapping[str, float]:
        if isinstance(self.learner, GradientLearner):
            self.learner.averaged = None  # the system itself now holds what is kept
        return self.learner.evaluate(examples)


def _examples(name: str, given: Any, options: Options) -> Examples:
    if isinstance(given, Mapping):
        given = Examples(**given)
    elif not isinstance(given, Examples):
        given = Examples(**dict(zip(("x", "y", "z"), given, strict=False)))
    if len(given) == 0:
        raise ValueError(f"{name} must hold at least one example")
    for column, values in given.columns.items():
        if values.is_floating_point() and not bool(values.isfinite().all()):
            bad = int((~values.isfinite()).sum())
            raise ValueError(f"{name}.{column} must be finite, found {bad} values that are not: remove or impute them")
    return given.to(torch.float64) if options.precision == "float64" else given
