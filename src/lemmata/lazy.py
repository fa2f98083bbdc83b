"""Packages whose files are imported only when a name of theirs is first used, and what type checkers see of them.

`python -m lemmata.lazy` writes an `__init__.pyi` beside each such `__init__.py`, and that of the package itself, and
the parameters that constructors take from a Config (lemmata.signatures); `dev.py lint --fix` does the same.
"""

import ast
import difflib
import functools
import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import lemmata

__all__ = ["lazy", "missing_attribute", "package_stub", "provided", "provided_file", "public_names", "stub"]

HERE = Path(__file__).resolve().parent


@functools.cache
def public_names(folder: Path) -> dict[str, str]:
    """Public name -> file stem, for every file of a folder, from its literal `__all__`.

    Recipes are for `lemmata train`, which finds them by their marks: they are no names of the package.
    """
    names: dict[str, str] = {}
    for path in sorted(folder.glob("[!_]*.py")):
        if not path.stem.startswith("recipes"):
            names |= dict.fromkeys(_listed_names(path), path.stem)
    for room in rooms(folder):
        for name, home in public_names(folder / room).items():
            if name in names:
                raise ValueError(f"{name} is public in {names[name]} and in {room}.{home}: rename one")
            names[name] = f"{room}.{home}"
    return names


def rooms(folder: Path) -> list[str]:
    """The rooms of a chapter: folders in it that have their own statements."""
    return sorted(path.parent.name for path in folder.glob("*/statements.yaml"))


def provided_modules() -> list[str]:
    """The modules that lower rooms are given, as the package's own `__init__` lists them."""
    return list(vars(lemmata)["PROVIDED"].values())


def provided(name: str) -> Any:
    """A module that stands above the room that asks, by the name under which it is given."""
    return importlib.import_module(vars(lemmata)["PROVIDED"][name])


def provided_file(name: str) -> Path:
    """Where that module stands, without importing it."""
    return HERE.parent.joinpath(*vars(lemmata)["PROVIDED"][name].split(".")).with_suffix(".py")


def lazy(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package's `__init__`: its public names, found in its files.

    A public name may not equal its file's name: after `import package.name`, Python itself binds the file there.
    """
    folder = Path(file).parent

    def attribute(name: str) -> Any:
        names = public_names(folder)
        if name == "__all__":
            return sorted(names)
        if name not in names and name in rooms(folder):
            return importlib.import_module(f"{package}.{name}")
        if name not in names:
            raise missing_attribute(package, name, [*names, *rooms(folder)])
        return getattr(importlib.import_module(f"{package}.{names[name]}"), name)

    return attribute, lambda: sorted([*public_names(folder), *rooms(folder)])


def missing_attribute(package: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a package lacks, with the nearest ones it has, whatever their case."""
    by_lower_case = {other.lower(): other for other in known}
    begun = [other for other in sorted(by_lower_case) if other.startswith(name.lower())]  # PointNetClassifier
    near = (
        [name.lower()]
        if name.lower() in by_lower_case
        else begun or difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.75)
    )
    private = name.startswith("_")
    hint = f": did you mean {' or '.join(by_lower_case[other] for other in near[:3])}?" if near and not private else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{hint}", name=name)


def stub(package: str, folder: Path) -> str:
    """The `__init__.pyi` of a lazy package: every public name with its home, so that its type is known."""
    names = public_names(folder)
    ordered = sorted(names, key=lambda name: (names[name], name))
    lines = [f"from {package} import {room} as {room}" for room in rooms(folder)]
    lines += [f"from {package}.{names[name]} import {name} as {name}" for name in ordered]
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    told = '"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""'
    if not names:
        return f"{told}\n\n__all__ = []\n"
    return "\n".join([told, "", *lines, "", f"__all__ = [\n{listed}]\n"])


def package_stub(root: Path = HERE) -> str:
    """The `__init__.pyi` of lemmata itself: chapters and rooms as modules, and the names people use first."""
    names = vars(importlib.import_module(root.name))["FIRST_NAMES"]
    first = [f"from {root.name}.{home} import {name} as {word}" for word, (home, name) in names.items()]
    inner = sorted(path.parent.name for path in root.glob("*/__init__.py") if gives_names_lazily(path))
    lines = [f"from {root.name} import {package} as {package}" for package in inner]
    told = (
        '"""Made by `python3 dev.py lint --fix`: packages with something for users, and the names people use first."""'
    )
    return "\n".join([told, "", *lines, *sorted(first), "", "__version__: str", ""])


def lazy_packages(root: Path = HERE) -> dict[str, Path]:
    """Package name -> folder of every package of ours that gives its names lazily."""
    folders = [path.parent for path in sorted(root.rglob("__init__.py")) if gives_names_lazily(path)]
    return {".".join([root.name, *folder.relative_to(root).parts]): folder for folder in folders}


def gives_names_lazily(path: Path) -> bool:
    """Whether this `__init__.py` is that of a package whose names are found in its files."""
    return "= lazy(__name__" in path.read_text(encoding="utf-8")


def _listed_names(path: Path) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return ast.literal_eval(node.value)
    return []


if __name__ == "__main__":
    importlib.import_module("lemmata.signatures").write_signatures()
    for name, folder in lazy_packages().items():
        (folder / "__init__.pyi").write_text(stub(name, folder), encoding="utf-8")
    (HERE / "__init__.pyi").write_text(package_stub(), encoding="utf-8")
