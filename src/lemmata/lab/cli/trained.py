"""A run folder back in hands: its record, the experiment it came from, and the system with its weights."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lemmata import catalog as catalogs
from lemmata.data.examples import Examples
from lemmata.lab.recipe import FAILURES, choose, defaults, one_sentence, recipe_of
from lemmata.lab.words import UserError
from lemmata.train.experiment import Experiment
from lemmata.train.folder import read_record
from lemmata.train.saved import restore_system


@dataclass(frozen=True)
class Trained:
    """What a run left."""

    folder: Path
    record: dict[str, Any]
    experiment: Experiment
    system: Any

    def ready(self, examples: Examples) -> Examples:
        """Examples in the numbers the system was trained with."""
        return examples.to(torch.float64) if self.record.get("options", {}).get("precision") == "float64" else examples


def restore(folder: Path) -> Trained:
    """The run of a folder; whatever is wrong with it is one sentence."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: give the folder of a run, such as runs/mlp-fashion-1")
    try:
        record = read_record(folder)
        entry, data = choose(catalogs.load(), str(record.get("system")), str(record.get("data")))
        config, options = defaults(entry, record)
        experiment = recipe_of(entry)(data, config=config, options=options)
        if message := restore_system(experiment.system, folder):
            print(f"lemmata: {message}", file=sys.stderr)
    except (UserError, *FAILURES) as error:
        said = error if isinstance(error, UserError) else one_sentence(error)
        where = "" if str(folder) in str(said) else f"{folder}: "
        raise UserError(f"{where}{said}") from error
    system = experiment.system
    return Trained(folder, record, experiment, system.eval() if isinstance(system, nn.Module) else system)
