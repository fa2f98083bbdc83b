"""What a process has loaded: the digest of every source as it was compiled, ours and the user's.

`python -P loaded.py MODULE` watches before anything of lemmata is imported, then calls the `main` of that module with
what it sees. Python runs a program that is named by its path from its source, so this file too is the one on the disk.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from typing import Any

__all__ = []  # the machinery's own

PACKAGE = Path(__file__).resolve().parents[1]
INSIDE = f"{PACKAGE}{os.sep}"
FOLDERS = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
LIBRARIES = tuple(f"{folder}{os.sep}" for path in FOLDERS for folder in {path, os.path.realpath(path)})


def installed(path: str) -> bool:
    """Whether a file is of Python or of an installed package: those are known by their versions, all but our own."""
    library = path.startswith(LIBRARIES) or not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))
    return library and not (PACKAGE.name in path and os.path.realpath(path).startswith(INSIDE))


def place(path: str | Path) -> str:
    """Where a file is, in words that two machines share: a file of ours from the package on, any other in full."""
    path = os.path.realpath(path)
    return path.removeprefix(INSIDE).replace(os.sep, "/") if path.startswith(INSIDE) else path


def watch() -> dict[str, str]:
    """From now on, note the digest of every file that is loaded as code and is not installed, under its place.

    Such a file is always compiled from its source: bytecode stands for a source of the same time and length, which
    need not be the same source.
    """
    loaded: dict[str, str] = {}

    def note(path: str, data: bytes) -> None:
        digest, where = hashlib.sha256(data).hexdigest(), place(path)
        if loaded.setdefault(where, digest) != digest:
            loaded[where] = "loaded twice, as different code"

    def get_code(self: SourceFileLoader, fullname: str) -> Any:
        path = self.get_filename(fullname)
        if installed(path):
            return from_source_or_bytecode(self, fullname)
        data = self.get_data(path)
        note(path, data)
        return self.source_to_code(data, path)

    def noted(load: Callable[..., Any]) -> Callable[..., Any]:
        """What has no source is noted too: nobody else looks at it."""

        def loading(self: Any, given: Any) -> Any:
            if not installed(self.path):
                note(self.path, Path(self.path).read_bytes())
            return load(self, given)

        return loading

    from_source_or_bytecode = SourceFileLoader.get_code
    SourceFileLoader.get_code = get_code  # pyright: ignore[reportAttributeAccessIssue]
    SourcelessFileLoader.get_code = noted(SourcelessFileLoader.get_code)
    ExtensionFileLoader.exec_module = noted(ExtensionFileLoader.exec_module)
    note(__file__, Path(__file__).read_bytes())
    return loaded


def main(module: str) -> None:
    """Call the `main` of a module of this very package, though another one may be installed."""
    spec = importlib.util.find_spec(PACKAGE.name)
    if spec is None or place(spec.origin or "") != "__init__.py":
        sys.path.insert(0, str(PACKAGE.parent))
    loaded = watch()
    importlib.import_module(module).main(loaded)


if __name__ == "__main__":
    main(sys.argv[1])
