"""Packages whose files are imported only when a name of theirs is first used."""

import ast
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["lazy", "public_names"]


@functools.cache
def public_names(folder: Path) -> dict[str, str]:
    """Public name -> file stem, for every file of a folder, from its literal `__all__`."""
    names: dict[str, str] = {}
    for path in sorted(folder.glob("[!_]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
            if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
                names |= dict.fromkeys(ast.literal_eval(node.value), path.stem)
    return names


def lazy(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package's `__init__`: its public names, found in its files.

    A public name may not equal its file's name: after `import package.name`, Python itself binds the file there.
    """
    folder = Path(file).parent

    def attribute(name: str) -> Any:
        names = public_names(folder)
        if name == "__all__":
            return sorted(names)
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{names[name]}"), name)

    return attribute, lambda: sorted(public_names(folder))
