"""Deep learning's knowledge as software.

Every system of the course is a plain PyTorch component in a chapter package
(`lemmata.connectionism`, ...); every statement is a claim that `lemmata check` judges
together with lies it must reject. Importing this package imports nothing heavy.
"""

__version__ = "0.1.0"

# What people use first, by its home. The rest is found in its chapter: `lemmata.recurrent.LSTM`.
_HOMES = {"check": ("judge.checking", "check"), "fit": ("train.loop", "fit"), "load": ("train.saved", "load_run")}


def __getattr__(name):
    import importlib  # not before it is needed: by it comes torch

    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(f"lemmata.{module}"), attribute)
    if name in __dir__():
        return importlib.import_module(f"lemmata.{name}")
    raise AttributeError(f"module 'lemmata' has no attribute {name!r}")


def __dir__():
    """The packages that hold something for users, found on the disk, and the names above."""
    import os

    inside = os.scandir(os.path.dirname(__file__))
    packages = {e.name for e in inside if e.is_dir() and os.path.exists(os.path.join(e.path, "__init__.pyi"))}
    return sorted({"__version__", *_HOMES, *packages})
