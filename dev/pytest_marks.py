"""Marks that no test writes itself: `slow` by measurement, `browser` by folder, `rounding` by what a test depends on.

`slow` stands in tests/slow.txt, which `python3 dev.py slow` writes. Files in which no chosen mark can be are not even
imported, nor are modules without an example: to import all of them costs a minute.
"""

import inspect
from pathlib import Path

import pytest

from installation import HERE
from lemmata.catalog import CHAPTERS
from slow import function_id, listed

HOMES = (HERE / "tests", HERE / "src" / "lemmata")
BROWSER = HERE / "tests" / "lab" / "site" / "browser"

# An instruction set changes the last bits of what these folders compute; all others, machinery, compute little ...
NUMERIC = (*CHAPTERS, "certificates", "certified", "fast", "measure", "lab/site/test_lab_work.py")
# ... except in files of trainings, whose scores have a wide margin, and in tests of bad input and of compilers, which
# call or ask for one of these.
TRAININGS = ("test_recipes", "recipes")
NOT_NUMERIC = {"raises", "compile", "export", "fullgraph", "unchecked", "run_experiment", "subprocess"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file need not be read; None leaves the question to others."""
    wanted = config.option.markexpr
    if collection_path.suffix != ".py" or collection_path.name == "__init__.py":
        without = BROWSER in (collection_path, *collection_path.parents) and "not browser" in wanted
        return without or None
    claims = config.getoption("lemmata", False) or config.getoption("lemmata_all", False)  # items without an example
    if not claims and is_ours(collection_path) and is_without_tests(collection_path):
        return True
    return (wanted.startswith("rounding") and not is_numeric(collection_path)) or None


def is_ours(path: Path) -> bool:
    return any(home in path.parents for home in HOMES)


def is_without_tests(path: Path) -> bool:
    """Whether a file is a module without an example, or a script that a test starts in a child."""
    return not path.name.startswith("test_") and ">>>" not in path.read_text(encoding="utf-8")


def is_numeric(path: Path) -> bool:
    """Whether tests or examples of a file may depend on the last bit."""
    if path.name.startswith(TRAININGS):
        return False
    homes = [path.relative_to(base).as_posix() for base in HOMES if base in path.parents]
    return any(home == folder or home.startswith(f"{folder}/") for home in homes for folder in NUMERIC)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = listed()
    for item in items:
        if function_id(item.nodeid) in slow:
            item.add_marker("slow")
        if BROWSER in item.path.parents:
            item.add_marker("browser")
        elif is_rounding(item):
            item.add_marker("rounding")


def is_rounding(item: pytest.Item) -> bool:
    """Whether a test may depend on the last bit, for all that its file and its code say."""
    if not is_numeric(item.path):
        return False
    code = getattr(inspect.unwrap(getattr(item, "function", is_rounding)), "__code__", None)
    names = {*code.co_names, *code.co_varnames, *getattr(item, "fixturenames", ())} if code else set()
    return names.isdisjoint(NOT_NUMERIC) and "compile" not in item.name
