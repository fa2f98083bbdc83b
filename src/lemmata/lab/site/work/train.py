"""The job "train": one run of a recipe, told step by step. SIGTERM ends it after its step, checkpoint written."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lemmata import catalog
from lemmata.figure import Figure
from lemmata.files import cache_folder
from lemmata.lab.recipe_choice import choose, defaults, record_of
from lemmata.lab.site.work.recipe import settings, words
from lemmata.lab.words import score
from lemmata.train.folder import read_record
from lemmata.train.loop import run_experiment
from lemmata.train.recipe import Recipe
from lemmata.train.watch import Watcher

SECONDS_BETWEEN_STEPS = 0.1  # more often than this no eye follows; evaluations, pictures and the last step are all told


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Train `system` on `data` with the values `chosen` in the folder `run`, or go on with the run that is there."""
    folder = cache_folder() / "runs" / parameters["run"]
    resume = parameters["resume"]
    record = read_record(folder) if resume else parameters
    entry, data = choose(catalog.load(), record["system"], record["data"])
    usual = defaults(entry, {})
    config, options = defaults(entry, record) if resume else settings(usual, parameters["chosen"])
    # The run's record keeps the command that does the same, not the one that started this process.
    sys.argv = ["lemmata", "train", entry.system, "--data", data, *words(usual, (config, options))]
    try:
        experiment = Recipe.at(entry)(data, config, options)
        record = record_of(entry, data, config, experiment)
        watchers = [Telling(folder, tell)]
        done = run_experiment(experiment, out=folder, resume=resume, watchers=watchers, record=record)
    finally:
        with suppress(OSError):
            folder.rmdir()  # only while it is empty: nothing was trained
    facts = ("scores", "best", "steps", "epochs", "seconds", "stopped", "messages")
    return {"run": folder.name} | {name: getattr(done, name) for name in facts}


class Telling(Watcher):
    """Passes on what happens in a run."""

    def __init__(self, folder: Path, tell: Callable[[dict[str, Any]], None]) -> None:
        self.folder, self.tell = folder, tell
        self.last, self.steps, self.metric = -1e9, 0, "loss"
        self.said: dict[str, float] = {}  # the latest loss and score

    def started(self, facts: Mapping[str, Any]) -> None:
        self.steps, self.metric = facts["steps"], facts["metric"]
        told = {name: facts[name] for name in ("step", "steps", "epochs")}
        self.tell({"event": "started", "run": self.folder.name, **told})

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        now = time.monotonic()
        if now - self.last > SECONDS_BETWEEN_STEPS or step == self.steps:
            self.last = now
            self.said |= {"loss": numbers["loss"]} if "loss" in numbers else {}
            self._tell_event("step", step, epoch, numbers)

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self.said |= {self.metric: scores[self.metric]} if self.metric in scores else {}
        self._tell_event("evaluation", step, epoch, scores)

    def pictured(self, step: int, epoch: int, figure: Figure) -> None:
        self.tell({"event": "picture", "step": step, "epoch": epoch})  # it lies in the run's folder by now

    def saved(self, step: int, path: Path) -> None:
        self.tell({"event": "saved", "step": step})

    def _tell_event(self, event: str, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        told = ", ".join(score(name, value) for name, value in self.said.items())
        self.tell({"event": event, "step": step, "epoch": epoch, "numbers": dict(numbers), "told": told})
