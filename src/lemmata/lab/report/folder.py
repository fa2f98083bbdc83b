"""The folder of a report: it takes its name when it is whole, and takes the place of an earlier report only."""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import lemmata
from lemmata.files import DRAFT, sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["NotOurs", "refuse_others", "try_folder", "write_folder"]

LIST = "report.json"  # what the report wrote, so that the next one knows what it may replace


class NotOurs(Exception):
    """Why a folder may not be replaced: one line that names the fix."""


def refuse_others(folder: Path) -> None:
    """Raise `NotOurs` unless the folder is absent, empty, or a report to which nobody added anything."""
    if folder == Path.cwd() or folder in Path.cwd().parents:
        raise NotOurs("the report replaces its folder as a whole: name one that you do not stand in")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotOurs(f"{folder} is a file: name a folder")
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()}
    if foreign := sorted(found - _listed_files(folder)):
        raise NotOurs(f"{folder} holds {foreign[0]}, which no report wrote: name another folder, or an empty one")


def try_folder(folder: Path) -> None:
    """Raise OSError where no report could be written, before minutes are spent on its contents."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _draft_folder(folder):
        pass


def write_folder(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    """Write all files beside the folder, then give them its name; the size of the whole in bytes.

    Whatever ends this early, under the name stands the earlier report, or for one moment nothing, never a part.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_dead(folder)
    with _draft_folder(folder) as draft:
        names, size = [], 0
        for name, content in files:
            place = draft / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            names.append(name)
            size += len(content)
        told = {"written by": f"lemmata report {lemmata.__version__}", "files": sorted([*names, LIST])}
        (draft / LIST).write_text(json.dumps(told, indent=1), encoding="utf-8")
        refuse_others(folder)  # again: writing took a while
        if folder.exists():
            with _draft_folder(folder) as old:
                old.rmdir()
                folder.rename(old)
                draft.rename(folder)
        else:
            draft.rename(folder)
    sync_folder(folder.parent)
    return size


def _listed_files(folder: Path) -> set[str]:
    try:
        return set(json.loads((folder / LIST).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


@contextlib.contextmanager
def _draft_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder beside the wanted one, gone at the end unless it was renamed; locked while its writer lives."""
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}{DRAFT}")
    draft.mkdir()
    lock = _lock_folder(draft)
    try:
        yield draft
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(draft, ignore_errors=True)


def _remove_dead(folder: Path) -> None:
    """Remove what killed writers left: nobody holds a lock on it."""
    for draft in folder.parent.glob(f".{folder.name}.*{DRAFT}") if fcntl else ():
        if draft.is_dir() and not draft.is_symlink() and (lock := _lock_folder(draft)) is not None:
            shutil.rmtree(draft, ignore_errors=True)
            os.close(lock)


def _lock_folder(folder: Path) -> int | None:
    """A lock that ends with its process; None where somebody holds it, or where there are no locks."""
    if not fcntl:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
