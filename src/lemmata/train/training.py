"""The one training loop: a reproducible order, evaluation, checkpoints, and a clean stop for every reason."""

import contextlib
import copy
import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.figure import Figure
from lemmata.files import write_whole
from lemmata.train import checkpoint
from lemmata.train.callbacks import Callback, TrainingState, ask
from lemmata.train.folder import alone_in, differing, open_folder, versions
from lemmata.train.gradient import GradientLearner
from lemmata.train.history import History
from lemmata.train.interrupt import Asked, asked_to_stop
from lemmata.train.learner import Learner
from lemmata.train.options import Options
from lemmata.train.processes import World
from lemmata.train.randomness import random_state, restore_random_state, seeded
from lemmata.train.run import Diverged, Run
from lemmata.train.run_position import checked_position
from lemmata.train.sources import Source, Taken, not_finite
from lemmata.train.watch import Album, Audience, Log, Watcher

__all__ = []  # for fit

SECONDS_BETWEEN_SAVES = 5.0  # at the ends of epochs, unless `save` counts steps; a small system's takes about 0.02 s
# A look at a number on a GPU waits for it, so there several steps are looked at together.
STEPS_LOOKED_AT = {"cpu": 1}
clock = time.monotonic  # decides when to save, never what is computed


class Training:
    """The state of a run on its way. Its life: resume, learn, finish."""

    def __init__(
        self,
        system: Any,
        learner: Learner,
        data: Source,
        held_out: "Mapping[str, Source | None]",
        options: Options,
        device: torch.device,
        world: World,
        out: Path | None,
    ):
        self.system, self.learner, self.options, self.device = system, learner, options, device
        self.world, self.out = world, out
        self.data, self.test, self.validation = data, held_out["test"], held_out["validation"]
        self.metric, self.sign = "loss", -1
        self.picture: Callable[[Any], Figure] | None = None
        self.total = total_steps(self.data, options)
        self.told_every = max(1, min((self.data.batches or 1000) // 10, 100))
        self.step, self.epoch, self.position, self.stopped = 0, 0, 0, "finished"
        self.pending: list[Mapping[str, Any]] = []  # numbers of steps that were not looked at yet
        self.sums: dict[str, float] = {}
        self.count = 0
        self.epoch_sums: dict[str, float] = {}
        self.epoch_count = 0
        self.taken: Taken | None = None
        self.best: dict[str, Any] = {"scores": {}, "system": None, "since": 0}
        self.scores: dict[str, float] = {}
        self.seconds, self.messages = 0.0, []
        self.on_step: Sequence[Callback] = ()
        self.on_epoch: Sequence[Callback] = ()
        self.history = History("test" if self.validation is None else "validation")
        self.audience = Audience()  # of several processes, one tells
        self.here = versions(device, world.size)

    # --- before ---

    def run(self, resume: bool, watchers: Sequence[Watcher], record: Mapping[str, Any]) -> Run:
        with contextlib.ExitStack() as stack:
            if self.out is not None and self.world.first:
                facts = {"class": type(self.system).__name__, **record}
                open_folder(self.out, facts, self.options, resume, self.here)
                stack.enter_context(alone_in(self.out))
            if self.out is not None and resume:
                self.resume(self.out)
            if self.world.first:
                files = [] if self.out is None else [Log(self.out / "log.jsonl"), Album(self.out / "pictures")]
                self.audience = Audience([self.history, *files, *watchers])
                stack.callback(self.audience.close)
            began = clock() - self.seconds
            facts = {"step": self.step, "steps": self.total, "epochs": self.options.epochs, "messages": self.messages}
            self.audience.tell("started", facts | {"epoch": self.epoch, **record})
            self.audience.heed()
            with asked_to_stop() as asked:
                self.learn(asked, began)
            self.seconds = clock() - began
            return self.finish()

    def resume(self, out: Path) -> None:
        """Go on from the newest sound checkpoint, and note what there is to say about it."""
        folder = out / "checkpoints"
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
        self.history.read(out / "log.jsonl", self.step)
        if changed:
            other = "from here on the bits may differ from those of an unbroken run"
            self.messages.append(f"step {self.step} was saved under other conditions ({changed}): {other}")

    def restore(self, state: Mapping[str, Any], loop: Mapping[str, Any]) -> None:
        if self.system is not None:
            self.system.load_state_dict(state["system"])
        self.learner.restore(state["learner"])
        self.step, self.epoch, self.position = loop["step"], loop["epoch"], loop["position"]
        self.sums, self.count = dict(loop["sums"]), loop["count"]
        self.epoch_sums, self.epoch_count = dict(loop["epoch_sums"]), loop["epoch_count"]
        self.best, self.seconds, self.stopped = dict(loop["best"]), loop["seconds"], loop["stopped"]
        self.data.check(self.step, self.epoch, self.position)
        patience = self.options.patience
        if patience and self.best["system"] is None:
            self.best = {"scores": {}, "system": None, "since": 0}  # the weights of those scores were not kept
        if self.stopped == "patience" and (patience is None or self.best["since"] < patience):
            self.stopped = "finished"  # there is more of it now
        if self.stopped == "callback" and not (self.on_step or self.on_epoch):
            self.stopped = "finished"  # nobody is left who wants to stop
        if not self.over() and (warning := self.data.restore(state["stream"], self.position)):
            self.messages.append(warning)
            warnings.warn(warning, stacklevel=5)  # where fit was called
        restore_random_state(state["random"])
        if self.world.rank < len(state["ranks"]):
            torch.set_rng_state(state["ranks"][self.world.rank])

    # --- on the way ---

    def learn(self, asked: Asked, began: float) -> None:
        self.saved_at = clock()
        while not self.over():
            epoch = self.epoch
            numbers, last = self.advance()
            self.pending.append(numbers)
            if self.on_step:
                self.consult(self.on_step, epoch, numbers)
            ends = last or self.over()
            self.look(epoch, now=ends)
            if ends or self.over():
                self.epoch_ends(epoch, numbers, last)
            stop, due = self.wishes(asked, ends or self.over())
            if (stop or due) and self.pending:  # what was not looked at would be lost with a kill
                self.look(epoch, now=True)
                if self.over():
                    self.epoch_ends(epoch, numbers, last)
            if stop or due or self.over():
                self.seconds = clock() - began
                self.save()
            if stop:
                if asked.signal is None:
                    self.audience.heed()
                self.audience.failure = None  # who closes a terminal closes the screen with it
                asked.obey()

    def over(self) -> bool:
        enough = self.epoch >= self.options.epochs or (self.options.steps or math.inf) <= self.step
        return enough or self.stopped != "finished"

    def advance(self) -> tuple[Mapping[str, Any], bool]:
        """One step on the batch of this place; whether it was the last of its epoch."""
        self.taken = taken = self.data.take(self.epoch, self.position)
        if self.position == 0:
            self.epoch_sums, self.epoch_count = {}, 0
        progress = min(self.step / self.total, 1.0) if self.total else self.epoch / self.options.epochs
        more = () if self.world.size == 1 else (taken.weight,)
        numbers = self.learner.step(taken.batch, progress, *more)
        self.step, self.position = self.step + 1, self.position + 1
        if taken.last:
            self.epoch, self.position = self.epoch + 1, 0
        return numbers, taken.last

    def consult(self, callbacks: Sequence[Callback], epoch: int, numbers: Mapping[str, Any]) -> None:
        """Ask the user's functions; one process asks, all obey."""
        optimizer = getattr(self.learner, "optimizer", None)
        place = (self.system, self.step, epoch + 1, self.options.epochs, numbers, self.scores, self.history)
        averaged = self.shown() is not self.system
        stop = self.world.first and ask(callbacks, TrainingState(*place, optimizer, self.total, averaged))
        if self.world.decided_by_first(stop):
            self.stopped = "callback"

    def epoch_ends(self, epoch: int, numbers: Mapping[str, Any], last: bool) -> None:
        """Tell the means of the epoch, evaluate if it is time, move the learning rate, ask the callbacks."""
        means = {name: total / self.epoch_count for name, total in self.epoch_sums.items()}
        self.audience.tell("epoch_ended", self.step, epoch, means)
        evaluated = self.over() or (epoch + 1) % self.options.evaluate == 0
        if evaluated:
            self.evaluate(epoch + 1)
        if last and isinstance(self.learner, GradientLearner):
            watched = self.validation or self.test
            score = means.get("loss") if watched is None else self.scores.get(self.metric) if evaluated else None
            self.learner.rates.epoch_ended(score)
        if last and self.on_epoch:
            self.consult(self.on_epoch, epoch, numbers)

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
        tell = self.step % self.told_every == 0 or self.over()
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
                    self.diverged(name, value, first + offset + 1, epoch)
                self.sums[name] = self.sums.get(name, 0.0) + value
                self.epoch_sums[name] = self.epoch_sums.get(name, 0.0) + value
            self.count, self.epoch_count = self.count + 1, self.epoch_count + 1
        self.pending = []
        if self.count and (tell or self.stopped == "converged"):
            means = {name: total / self.count for name, total in self.sums.items()}
            self.audience.tell("stepped", self.step, epoch, means)
            self.sums, self.count = {}, 0

    def evaluate(self, epoch: int) -> None:
        stop = False
        watched = self.validation or self.test
        if self.world.first:
            with seeded(self.options.seed):  # whether one looks, and draws, must not change what is learnt
                self.scores = self.score(watched) if watched is not None else {}
                if self.scores:
                    self.audience.tell("evaluated", self.step, epoch, self.scores)
                    stop = self.remember(self.scores)
                if self.picture:
                    self.audience.tell("pictured", self.step, epoch, self.picture(self.shown()))
        if self.world.decided_by_first(stop):
            self.stopped = "patience"

    def score(self, source: Source) -> dict[str, float]:
        """Means over all examples of a source, by what the learner measures on its batches."""
        parts = [(len(batch), dict(self.learner.evaluate(batch))) for batch in source.everything()]
        if not parts:
            raise ValueError("there is no batch to evaluate on: the stream is empty, or was gone through before")
        if len(parts) == 1:
            return parts[0][1]
        rows = sum(count for count, _ in parts)
        return {name: sum(count * found[name] for count, found in parts) / rows for name in parts[0][1]}

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
                self.diverged(f"weight {name}", math.nan, self.step, self.epoch - (self.position == 0))
        kept = ("step", "epoch", "position", "sums", "count", "epoch_sums", "epoch_count", "best", "seconds", "stopped")
        state = {
            "system": system,
            "learner": self.learner.state(),
            "loop": {name: getattr(self, name) for name in kept},
            "stream": self.data.state(),
            "random": random_state(),
            "ranks": ranks,
            "versions": self.here,
        }
        path = checkpoint.save(self.out / "checkpoints", self.step, state, keep=self.options.keep)
        self.saved_at = clock()
        self.audience.tell("saved", self.step, path)

    def diverged(self, name: str, value: float, step: int, epoch: int) -> None:
        kept = None
        with contextlib.suppress(checkpoint.CheckpointError):
            kept = checkpoint.newest(self.out / "checkpoints") if self.out is not None else None
        where = f"step {step} (epoch {epoch + 1})"
        lr = float(self.learner.rates.highest[0]) if isinstance(self.learner, GradientLearner) else self.options.lr
        cure = f"lower lr (now {lr:g})" + ("" if self.options.clip else " or set clip")
        if self.taken and (wrong := not_finite(self.taken.batch)):
            cure = f"the batch's {wrong}"
        elif step == 1 and name == "loss":
            cure = "no step was taken yet, so look at the scale of the inputs, and for log(0) and divisions by 0"
        rest = f"; the checkpoint of step {kept.step} is kept" if kept else ""
        raise Diverged(f"{name} became {value} at {where}: {cure}{rest}")

    # --- after ---

    def finish(self) -> Run:
        if self.options.patience and self.best["system"] is not None:
            self.system.load_state_dict(self.best["system"])
        elif hasattr(self.learner, "finish"):
            self.learner.finish()  # type: ignore[attr-defined]
        run = Run(self.system, steps=self.step, seconds=self.seconds, folder=self.out, stopped=self.stopped)
        run.epochs, run.best, run.messages = self.epoch + (self.position > 0), self.best["scores"], self.messages
        run.history = self.history
        if self.world.first:
            with seeded(self.options.seed):
                run.scores = self.final_scores()
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

    def final_scores(self) -> dict[str, float]:
        """On the test examples, else on the validation ones, else on those that were learnt from."""
        if isinstance(self.learner, GradientLearner):
            self.learner.averaged = None  # the system itself now holds what is kept
        source = self.test or self.validation or self.data
        if source.once:  # it is used up: what the last epoch measured on its way must do
            return {name: total / self.epoch_count for name, total in self.epoch_sums.items()}
        return self.score(source)


def total_steps(data: Source, options: Options) -> int | None:
    """Updates of the whole training, if they are known; a schedule must know them."""
    if data.batches is None and options.steps is None:
        if options.schedule != "constant" or options.warmup:
            raise ValueError("schedule and warmup must know when training ends, but data has no length: give steps")
        return None
    whole = [options.epochs * data.batches] if data.batches is not None else []
    return min([*whole, *([options.steps] if options.steps else [])])
