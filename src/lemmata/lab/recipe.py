"""From the words `system` and `data` to a recipe with its choices, on the command line or in the record of a run."""

import dataclasses
import importlib
import re
import types
import typing
from pathlib import Path
from typing import Any

from lemmata.catalog import Catalog, RecipeEntry
from lemmata.catalog.search import did_you_mean
from lemmata.lab.words import UserError
from lemmata.marks import recipe_for, usual_settings


def with_depth(catalog: Catalog, words: list[str]) -> list[str]:
    """The words after `train`: resnet18 is resnet --depth 18, and deepsets is deep_sets."""
    known = {entry.system: entry for entry in catalog.recipes}
    if words[0] in known:
        return words
    joined = [system for system in known if system.replace("_", "") == words[0]]
    name = re.fullmatch(r"([a-z]+)(\d+)", words[0])
    if len(joined) == 1 or name is None or name[1] not in known:
        return [*joined, *words[1:]] if len(joined) == 1 else words
    entry = known[name[1]]
    config = usual_settings(getattr(importlib.import_module(entry.module), entry.name), entry.system)[0]
    return [name[1], "--depth", name[2], *words[1:]] if hasattr(config, "depth") else words


def choose(catalog: Catalog, system: str, data: str) -> tuple[RecipeEntry, str]:
    """The recipe that trains a system on a data set, and the data set; the usual one if none is named."""
    recipes = [entry for entry in catalog.recipes if entry.system == system]
    if not recipes:
        known = {entry.system for entry in catalog.recipes}
        what = "cannot be trained" if system in catalog.systems else f"is unknown{did_you_mean(system, known)}"
        raise UserError(f"system {system!r} {what}; lemmata train lists what can be trained")
    known = data_of(catalog, system)
    own = next((entry for entry in recipes if entry.data == OWN), None)
    if own and data not in known and is_path(data):
        return own, data
    for entry in recipes:
        if entry is not own and (not data or data in entry.data.split()):
            return entry, data or entry.data.split()[0]
    files = ", or a .csv or .npz file or a folder of pictures of yours" if own else ""
    if is_path(data) and not own:
        raise UserError(f"{system} does not learn from files of one's own: use --data {' or '.join(known)}")
    raise UserError(f"{system} is not trained on {data!r}: use --data {' or '.join(known)}{files}")


OWN = "file"  # in a recipe's mark: it learns from a user's own data


def is_path(data: str) -> bool:
    """Whether what stands after --data is the user's own, rather than the name of a data set."""
    return bool(data) and (Path(data).suffix.lower() in (".csv", ".npz") or "/" in data or Path(data).is_dir())


def data_of(catalog: Catalog, system: str) -> list[str]:
    """The data sets a system can be trained on, the usual one first."""
    found = [name for entry in catalog.recipes if entry.system == system for name in entry.data.split()]
    return [name for name in found if name != OWN]


def takes_files(catalog: Catalog, system: str) -> bool:
    """Whether a system can be trained on a user's own data."""
    return any(entry.system == system and entry.data == OWN for entry in catalog.recipes)


def recipe_of(entry: RecipeEntry) -> Any:
    """The recipe itself; this imports its chapter, and torch."""
    return recipe_for(getattr(importlib.import_module(entry.module), entry.name), entry.system)


def defaults(entry: RecipeEntry, record: dict[str, Any]) -> tuple[Any, Any]:
    """The recipe's config and options; of a run to go on with, the ones it has."""
    found = []
    for name, usual in zip(("config", "options"), usual_settings(recipe_of(entry), entry.system), strict=True):
        hints = typing.get_type_hints(type(usual))
        kept = {key: tuples(value) for key, value in record.get(name, {}).items() if key in hints}
        try:
            for key, value in kept.items():
                if not _fits(value, hints[key]):
                    raise TypeError(f"{key} cannot be {value!r}"[:120])
            found.append(dataclasses.replace(usual, **kept))
        except (TypeError, ValueError) as error:
            raise UserError(f"run.json has bad {name} ({error}): restore it, or train again") from None
    return found[0], found[1]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from JSON is one that a field with this annotation can have."""
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, arm) for arm in arms)
    if origin is typing.Literal:
        return value in arms
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, arms[0]) for item in value)
    if hint in (int, float):  # True is no number here, and a whole one may stand for a float
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


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


def tuples(value: Any) -> Any:
    """JSON knows lists only; configs hold tuples."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value
