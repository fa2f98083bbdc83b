"""From the words `system` and `data` to a recipe with its choices, on the command line or in the record of a run."""

import dataclasses
import re
from pathlib import Path
from typing import Any

from lemmata.catalog import Catalog, RecipeEntry
from lemmata.catalog.search import did_you_mean
from lemmata.lab.words import UserError
from lemmata.train.recipe import OWN, Recipe, entries_of, find_entry


def with_depth(catalog: Catalog, words: list[str]) -> list[str]:
    """The words after `train`: resnet18 is resnet --depth 18, and deepsets is deep_sets."""
    known = {entry.system: entry for entry in catalog.recipes}
    if words[0] in known:
        return words
    joined = [system for system in known if system.replace("_", "") == words[0]]
    name = re.fullmatch(r"([a-z]+)(\d+)", words[0])
    if len(joined) == 1 or name is None or name[1] not in known:
        return [*joined, *words[1:]] if len(joined) == 1 else words
    config, _ = Recipe.at(known[name[1]]).usual
    return [name[1], "--depth", name[2], *words[1:]] if hasattr(config, "depth") else words


def choose(catalog: Catalog, system: str, data: str) -> tuple[RecipeEntry, str]:
    """The recipe that trains a system on a data set or a file, and these data; the usual ones if none are named."""
    recipes = entries_of(catalog, system)
    if not recipes:
        known = {entry.system for entry in catalog.recipes}
        what = "cannot be trained" if system in catalog.systems else f"is unknown{did_you_mean(system, known)}"
        raise UserError(f"system {system!r} {what}; lemmata train lists what can be trained")
    known = data_of(catalog, system)
    own = next((entry for entry in recipes if entry.data == OWN), None)
    if own and data not in known and is_path(data):
        return own, data
    if found := find_entry(catalog, system, data):
        return found
    files = ", or a .csv or .npz file or a folder of images of yours" if own else ""
    if is_path(data) and not own:
        raise UserError(f"{system} does not learn from files of one's own: use --data {' or '.join(known)}")
    raise UserError(f"{system} is not trained on {data!r}: use --data {' or '.join(known)}{files}")


def is_path(data: str) -> bool:
    """Whether what stands after --data is the user's own, rather than the name of a data set."""
    return bool(data) and (Path(data).suffix.lower() in (".csv", ".npz") or "/" in data or Path(data).is_dir())


def data_of(catalog: Catalog, system: str) -> list[str]:
    """The data sets a system can be trained on, the usual one first."""
    return [name for entry in entries_of(catalog, system) for name in entry.data.split() if name != OWN]


def takes_files(catalog: Catalog, system: str) -> bool:
    """Whether a system can be trained on a user's own data."""
    return any(entry.data == OWN for entry in entries_of(catalog, system))


def defaults(entry: RecipeEntry, record: dict[str, Any]) -> tuple[Any, Any]:
    """The recipe's config and options; of a run to go on with, the ones it has."""
    try:
        return Recipe.at(entry).recorded(record)
    except ValueError as error:
        raise UserError(str(error)) from None


# --- What went wrong ---

FAILURES = (ValueError, TypeError, RuntimeError, MemoryError, OverflowError)
OF_MEMORY = ("allocate", "out of memory", "overflow", "too large", "too big")  # in the words of torch, numpy and Python


def one_sentence(error: BaseException) -> UserError:
    """What a user can mend of an error that came while a system was built, trained or used; others are raised again."""
    text = " ".join(str(error).partition("Exception raised from")[0].split())
    if isinstance(error, MemoryError) or any(sign in text.lower() for sign in OF_MEMORY):
        asked = re.search(r"allocate ([\d.]+ \w+)", text)
        how_much = f" ({asked[1]} at once)" if asked else ""
        return UserError(f"there is not enough memory for these sizes{how_much}: choose smaller ones")
    if isinstance(error, ValueError | TypeError):
        return UserError(text)
    raise error


def record_of(entry: RecipeEntry, data: str, config: Any, experiment: Any) -> dict[str, Any]:
    """What the folder of a run remembers beside its options, so that whoever finds it can go on with it and use it."""
    return {
        "system": entry.system,
        "built": type(experiment.system).__lemmata_system__["id"],
        "recipe": f"{entry.module}.{entry.name}",
        "data": data,
        "metric": experiment.metric,
        "classes": list(experiment.classes),
        "config": dataclasses.asdict(config),
        "arguments": dict(experiment.arguments),
        "notes": dict(experiment.notes),
        **({"preparation": experiment.preparation.to_json()} if experiment.preparation else {}),
    }
