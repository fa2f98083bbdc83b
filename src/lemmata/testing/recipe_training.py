"""Shared training by a recipe: as `lemmata train SYSTEM --data D` trains, on the CPU, once for all claims that ask."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lemmata import catalog
from lemmata.testing.trained import Training, plain, remembered
from lemmata.train.loop import run_experiment
from lemmata.train.recipe import Recipe, find_entry
from lemmata.train.saved import rebuilt

__all__ = []  # claims say `draw.trained`


def trained(system: str, settings: Mapping[str, Any], seed: int) -> Any:
    """A system as its recipe trains it; settings are `data` and fields of the recipe's config and options."""
    return remembered(lambda: _by_recipe(system, settings, seed), seed)


def _by_recipe(system: str, settings: Mapping[str, Any], seed: int) -> Training:
    known = catalog.load()
    chosen = {name: value for name, value in settings.items() if name != "data"}
    found = find_entry(known, system, str(settings.get("data", "")))
    if found is None:
        on = f" on {settings['data']!r}" if "data" in settings else ""
        raise ValueError(f"no recipe trains {system!r}{on}: known are {sorted({r.system for r in known.recipes})}")
    entry, data = found
    recipe = Recipe.at(entry)  # before the key is made: it is that of the code as loaded

    def train() -> dict[str, Any]:
        config, options = recipe.settings(**{"seed": seed} | chosen | {"device": "cpu"})
        experiment = recipe(data, config, options)
        weights = run_experiment(experiment).system.state_dict()
        built = type(experiment.system).__lemmata_system__["id"]
        return {"built": built, "arguments": dict(experiment.arguments), "weights": dict(weights)}

    def restore(state: dict[str, Any]) -> Any:
        return rebuilt(known.systems[state["built"]], state["arguments"], state["weights"])

    words = ("recipe", entry.module, entry.name, system, data, plain(chosen), seed)
    return Training((entry.path, Path(__file__).resolve()), words, train, restore)
