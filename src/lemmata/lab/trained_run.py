"""A run folder back in hands: its record, the experiment it came from, and the system with its weights."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lemmata import catalog as catalogs
from lemmata.data.columns import inputs_and_target
from lemmata.data.examples import Examples
from lemmata.data.own_files import FileChoices, digest, load_file
from lemmata.data.preparation import Preparation
from lemmata.lab.recipe_choice import FAILURES, choose, defaults, one_sentence
from lemmata.lab.words import UserError
from lemmata.train.experiment import Experiment
from lemmata.train.folder import read_record
from lemmata.train.forms import likeliest_class
from lemmata.train.options import Options
from lemmata.train.recipe import Recipe, tuples
from lemmata.train.saved import build, restore_system
from lemmata.train.state_tree import BROKEN

OUTPUTS = 100_000  # classes that have no names are called by their numbers


@dataclass(frozen=True)
class Trained:
    """What a run left."""

    folder: Path
    record: dict[str, Any]
    experiment: Experiment
    system: Any

    @property
    def name(self) -> str:
        """What was trained, in a word."""
        return str(self.record.get("system") or self.record.get("built") or self.record.get("class"))

    def ready(self, examples: Examples) -> Examples:
        """Examples in the numbers the system was trained with."""
        return examples.to(torch.float64) if self.record.get("options", {}).get("precision") == "float64" else examples

    def parts(self) -> Mapping[str, Examples]:
        """The examples it was trained and tested on; those of a user's file, if that is still as it was."""
        name = str(self.record.get("data", ""))
        if not name:
            raise UserError("this run was made by fit, which keeps no examples: give --data NAME or a file")
        if self.experiment.preparation is None:
            return {"train": self.experiment.train, "test": self.experiment.test}
        path, config = Path(name), self.record["config"]
        if not path.exists() or digest(path) != self.record.get("notes", {}).get("sha256"):
            why = "has changed since" if path.exists() else "is no longer there"
            raise UserError(f"{name}, which this run learnt from, {why}: give --input FILE")
        chosen = {field.name: tuples(config[field.name]) for field in fields(FileChoices) if field.name in config}
        return load_file(path, FileChoices(**chosen), self.record["options"]["seed"]).parts


def restore(folder: Path) -> Trained:
    """The run of a folder; whatever is wrong with it is one sentence."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: give the folder of a run, such as runs/mlp-fashion-1")
    try:
        record = read_record(folder)
        experiment = _of_recipe(record) if "system" in record else _of_fit(folder, record)
        if message := restore_system(experiment.system, folder):
            print(f"lemmata: {message}", file=sys.stderr)
    except (UserError, *FAILURES) as error:
        said = error if isinstance(error, UserError) else one_sentence(error)
        where = "" if str(folder) in str(said) else f"{folder}: "
        raise UserError(f"{where}{said}") from error
    system = experiment.system
    return Trained(folder, record, experiment, system.eval() if isinstance(system, nn.Module) else system)


def _of_recipe(record: dict[str, Any]) -> Experiment:
    """What the recipe of a run returns again; of a user's own file, all that is needed is in the record."""
    entry, data = choose(catalogs.load(), str(record["system"]), str(record.get("data")))
    config, options = defaults(entry, record)
    kept = record.get("preparation")
    given = data if kept is None else Preparation.from_json(kept).placeholder()
    return Recipe.at(entry)(given, config, options)


def _of_fit(folder: Path, record: dict[str, Any]) -> Experiment:
    """A run that `fit` made by itself: the system, and the shapes it was given, say how it is used."""
    system = build(folder)
    shapes = record.get("shapes", {})
    try:
        columns = {name: torch.zeros(1, *shape, dtype=getattr(torch, kind)) for name, (shape, kind) in shapes.items()}
        inputs, target = inputs_and_target(Examples(**columns or {"x": torch.zeros(1, 0)}))
    except BROKEN as error:
        raise ValueError(f"run.json has bad shapes ({error}): restore it, or train again"[:300]) from None
    classes = target is not None and not target.is_floating_point()

    def predict(system: nn.Module, examples: Examples) -> dict[str, torch.Tensor]:
        output = system(examples.x)
        if not isinstance(output, torch.Tensor) or output.ndim > 2 or len(output) != len(examples):
            told = f"{type(system).__name__} answers with more than one row of numbers for an example"
            raise ValueError(f"{told}: use it in Python, lemmata.load({str(folder)!r})")
        output = output[:, None] if output.ndim == 1 else output
        if classes and output.shape[1] > 1:
            return likeliest_class(output.softmax(1))
        names = ["output"] if output.shape[1] == 1 else [f"output {k}" for k in range(output.shape[1])]
        return dict(zip(names, output.unbind(1), strict=True))

    like = Examples(x=inputs.get("x", next(iter(inputs.values()))))
    names = tuple(map(str, range(OUTPUTS))) if classes else ()
    return Experiment(system, record.get("arguments", {}), like, like, Options(), classes=names, predict=predict)
