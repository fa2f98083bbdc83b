"""Deep learning's knowledge as software.

Every system of the course is a plain PyTorch component in a chapter package
(`lemmata.connectionism`, ...); every statement is a claim that `lemmata check` judges
together with lies it must reject. Importing this package imports nothing heavy.
"""

__version__ = "0.1.0"

# What people use first, by its home. The rest is found in its chapter: `lemmata.recurrent.LSTM`.
FIRST_NAMES = {"check": ("judge.checking", "check"), "fit": ("train.loop", "fit"), "load": ("train.saved", "load_run")}

# What a room is given that stands above it, by name: to import it would turn the order of the rooms round.
PROVIDED = {"training": "lemmata.testing.trained", "recipe_training": "lemmata.testing.recipe_training"}


def __getattr__(name):
    import importlib  # not before it is needed: by it comes torch

    if name in FIRST_NAMES:
        module, attribute = FIRST_NAMES[name]
        return getattr(importlib.import_module(f"lemmata.{module}"), attribute)
    if name in __dir__():
        return importlib.import_module(f"lemmata.{name}")
    from lemmata.lazy import missing_attribute

    raise missing_attribute("lemmata", name, __dir__())


def __dir__():
    """The packages that hold something for users, found on the disk, and the names above."""
    from pathlib import Path

    from lemmata.lazy import gives_names_lazily

    packages = {path.parent.name for path in Path(__file__).parent.glob("*/__init__.py") if gives_names_lazily(path)}
    return sorted({"__version__", *FIRST_NAMES, *packages})
