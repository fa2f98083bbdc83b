"""What a user's own file defines: FILE.py:NAME, imported once, and one line for each way that this can go wrong."""

import contextlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lemmata.catalog.search import did_you_mean
from lemmata.lab.words import UserError

_imported: dict[Path, ModuleType] = {}


def is_own_code(word: str) -> bool:
    """Whether a word names something in a Python file.

    >>> is_own_code("mine.py:net"), is_own_code("mine.py"), is_own_code("digits")
    (True, True, False)
    """
    return word.partition(":")[0].endswith(".py")


def from_file(word: str, wanted: str, fits: Callable[[Any], bool]) -> Any:
    """The value that FILE.py:NAME stands for; without a name, the only one in the file that fits."""
    file, _, name = word.partition(":")
    module = _import_file(Path(file))
    own = {key: value for key, value in vars(module).items() if not key.startswith("_") and fits(value)}
    if not name:
        if len(own) != 1:
            found = f"it has {', '.join(own)}" if own else "it has none"
            raise UserError(f"which {wanted} of {file}? {found}: write {file}:NAME")
        name = next(iter(own))
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            hint = did_you_mean(name, own) or f"; it has {', '.join(own)}" * bool(own)
            raise UserError(f"{file} has no {name!r}{hint}")
        value = getattr(value, part)
    return value


def made(value: Any, word: str) -> Any:
    """What a function or class returns when it is called without arguments."""
    try:
        return value()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UserError(f"{word} cannot be called without arguments: {_error_message(error)}") from error


def _import_file(path: Path) -> ModuleType:
    place = path.resolve()
    if place in _imported:
        return _imported[place]
    if not place.is_file():
        near = did_you_mean(path.name, [other.name for other in place.parent.glob("*.py")]) if path.name else ""
        raise UserError(f"there is no file {path}{near}")
    name = place.stem if place.stem.isidentifier() and place.stem not in sys.modules else f"audited_{place.stem}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} cannot be imported: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    if str(place.parent) not in sys.path:
        sys.path.insert(0, str(place.parent))  # what stands beside it can be imported, as python FILE.py does
    sys.modules[name] = module  # where dataclasses and the workers of a loader look for it
    try:
        with contextlib.chdir(os.getcwd()):  # a file that changes its folder must not move what is read after it
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise UserError(f"{path} cannot be imported: {_error_line(error, place)}{_error_message(error)}") from error
    _imported[place] = module
    return module


def _error_line(error: BaseException, place: Path) -> str:
    """The last line of the file that the error came through."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"line {error.lineno}: "
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == place]
    return f"line {lines[-1]}: " if lines else ""


def _error_message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return 'it ends the program: put what it does under if __name__ == "__main__":'
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(f"{type(error).__name__}: {said}".split())[:300]
