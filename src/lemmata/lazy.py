"""Packages whose files are imported only when a name of theirs is first used, and what type checkers see of them.

`python -m lemmata.lazy` writes an `__init__.pyi` beside each such `__init__.py`; `dev.py lint --fix` does the same.
"""

import ast
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["lazy", "public_names", "stub"]

HERE = Path(__file__).resolve().parent


@functools.cache
def public_names(folder: Path) -> dict[str, str]:
    """Public name -> file stem, for every file of a folder, from its literal `__all__`.

    Recipes are for `lemmata train`, which finds them by their marks: they are no names of the package.
    """
    names: dict[str, str] = {}
    for path in sorted(folder.glob("[!_]*.py")):
        if not path.stem.startswith("recipes"):
            names |= dict.fromkeys(_listed(path), path.stem)
    for room in rooms(folder):
        for name, home in public_names(folder / room).items():
            if name in names:
                raise ValueError(f"{name} is public in {names[name]} and in {room}.{home}: rename one")
            names[name] = f"{room}.{home}"
    return names


def rooms(folder: Path) -> list[str]:
    """The rooms of a chapter: folders in it that have their own statements."""
    return sorted(path.parent.name for path in folder.glob("*/statements.yaml"))


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
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{names[name]}"), name)

    return attribute, lambda: sorted([*public_names(folder), *rooms(folder)])


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


def lazy_packages(root: Path = HERE) -> dict[str, Path]:
    """Package name -> folder of every package of ours that gives its names lazily."""
    found = sorted(root.rglob("__init__.py"))
    folders = [path.parent for path in found if "= lazy(__name__" in path.read_text(encoding="utf-8")]
    return {".".join([root.name, *folder.relative_to(root).parts]): folder for folder in folders}


def _listed(path: Path) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return ast.literal_eval(node.value)
    return []


if __name__ == "__main__":
    for name, folder in lazy_packages().items():
        (folder / "__init__.pyi").write_text(stub(name, folder), encoding="utf-8")
