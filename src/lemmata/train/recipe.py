"""A recipe as an object: which system on which data, with which config and options, gives which experiment.

Nothing here imports torch or a chapter before a recipe is asked for.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lemmata.catalog import Catalog, RecipeEntry, marked
from lemmata.marks import recipe_for, usual_settings

if TYPE_CHECKING:
    from lemmata.train.experiment import Experiment

__all__ = ["Recipe"]

OWN = "file"  # in a recipe's mark: it learns from a user's own data


@dataclass(frozen=True)
class Recipe:
    """A marked function as it is for one of its systems.

    >>> from lemmata.feedforward.recipes import classify_points
    >>> recipe = Recipe.of(classify_points)
    >>> recipe.system, recipe.data, recipe.settings(widths=(8,), epochs=2)[1].epochs
    ('mlp', ('moons', 'rings', 'spirals', 'xor'), 2)
    """

    system: str
    data: tuple[str, ...]  # names of data sets, the usual one first
    function: Callable[..., "Experiment"]

    @classmethod
    def of(cls, function: "Callable[..., Experiment] | Recipe", system: str = "") -> "Recipe":
        """Of a function that was marked; for the first of its systems, unless another is named."""
        if isinstance(function, Recipe):
            return function
        mark = function.__lemmata_recipe__  # type: ignore[attr-defined]
        return cls(system or mark["systems"][0], tuple(mark["data"].split()), function)

    @classmethod
    def at(cls, entry: RecipeEntry) -> "Recipe":
        """Of an entry of the catalog; this imports its chapter, and torch."""
        return cls(entry.system, tuple(entry.data.split()), marked(entry))

    @property
    def usual(self) -> tuple[Any, Any]:
        """The config and the options of the recipe's own."""
        return usual_settings(self.function, self.system)

    @property
    def sentence(self) -> str:
        """What it does."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())

    @property
    def names_its_system(self) -> bool:
        """Whether the function is one for several systems, and is told which."""
        return "system" in inspect.signature(self.function).parameters

    def settings(self, **chosen: Any) -> tuple[Any, Any]:
        """The config and the options with some of their fields replaced, whichever has them."""
        config, options = self.usual
        of_config, of_options = ({f.name: chosen[f.name] for f in dataclasses.fields(part) if f.name in chosen}
                                 for part in (config, options))  # fmt: skip
        if unknown := chosen.keys() - of_config.keys() - of_options.keys():
            raise TypeError(f"the recipe {self.function.__name__} has no setting {', '.join(sorted(unknown))}")
        return dataclasses.replace(config, **of_config), dataclasses.replace(options, **of_options)

    def recorded(self, record: Mapping[str, Any]) -> tuple[Any, Any]:
        """The config and the options that the record of a run has; a ValueError says which of them cannot be."""
        found = []
        for name, usual in zip(("config", "options"), self.usual, strict=True):
            hints = typing.get_type_hints(type(usual))
            kept = {key: tuples(value) for key, value in record.get(name, {}).items() if key in hints}
            try:
                for key, value in kept.items():
                    if not _fits_annotation(value, hints[key]):
                        raise TypeError(f"{key} cannot be {value!r}"[:120])
                found.append(dataclasses.replace(usual, **kept))
            except (TypeError, ValueError) as error:
                raise ValueError(f"run.json has bad {name} ({error}): restore it, or train again") from None
        return found[0], found[1]

    def __call__(self, data: Any = "", config: Any = None, options: Any = None) -> "Experiment":
        """The experiment; whatever is not given is the recipe's own."""
        usual = self.usual
        return recipe_for(self.function, self.system)(
            data or self.data[0],
            config=usual[0] if config is None else config,
            options=usual[1] if options is None else options,
        )


def entries_of(catalog: Catalog, system: str) -> list[RecipeEntry]:
    """The recipes of a system, as the catalog lists them."""
    return [entry for entry in catalog.recipes if entry.system == system]


def find_entry(catalog: Catalog, system: str, data: str = "") -> tuple[RecipeEntry, str] | None:
    """The recipe that trains a system on a named data set, and the data set; the usual one if none is named."""
    for entry in entries_of(catalog, system):
        names = entry.data.split()
        if names != [OWN] and (not data or data in names):
            return entry, data or names[0]
    return None


def tuples(value: Any) -> Any:
    """JSON knows lists only; configs and arguments of systems hold tuples."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def _fits_annotation(value: Any, hint: Any) -> bool:
    """Whether a value from JSON is one that a field with this annotation can have."""
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits_annotation(value, arm) for arm in arms)
    if origin is typing.Literal:
        return value in arms
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits_annotation(item, arms[0]) for item in value)
    if hint in (int, float):  # True is no number here, and an integer may stand for a float
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True
