"""Sets too large for the package: where each comes from, how it is checked, and where it lies once it is here."""

import contextlib
import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from lemmata.data.archives import ArchiveError, gunzip, members
from lemmata.data.cache import cached_path
from lemmata.data.examples import Dataset, Examples
from lemmata.data.fetch import FetchError, Progress, Remote, fetch, megabytes
from lemmata.files import write_whole

__all__ = []  # for the loaders of this folder; users meet only the data sets

Arrays = dict[str, np.ndarray]
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Content:
    """A file that a set is made of, by its SHA-256, and the exact names under which archives hold it.

    A place that ends in .gz is unpacked first, unless the content itself is called so: the digest is that of the
    content, so it does not matter who packed it and how.
    """

    name: str
    size: int
    sha256: str
    places: tuple[str, ...] = ()

    def take(self, found: Files) -> bytes | None:
        """The content if it is among these members, or an ArchiveError if it is another than it should be."""
        place = next((place for place in (self.name, *self.places) if place in found), None)
        if place is None:
            return None
        content = found[place]
        if place.endswith(".gz") and place != self.name:
            content = gunzip(content, self.size, place)
        if len(content) != self.size:
            raise ArchiveError(f"{place} has {len(content):,} bytes where {self.name} has {self.size:,}")
        if (digest := hashlib.sha256(content).hexdigest()) != self.sha256:
            digests = f"SHA-256 {digest[:12]}..., not {self.sha256[:12]}..."
            raise ArchiveError(f"{place} is not the {self.name} that is known: {digests}")
        return content


@dataclass(frozen=True)
class Form:
    """One way in which a set is handed around.

    `decode` turns the contents, which are checked by then, into arrays. Where people made something else of them (an
    npz, pictures), `others` names its members with the most bytes each may have, and `rebuild` gives the contents back.
    """

    contents: tuple[Content, ...]
    decode: Callable[[Files], Arrays]
    others: Mapping[str, int] = field(default_factory=dict)
    rebuild: Callable[[Files], Files] | None = None

    def limits(self) -> dict[str, int]:
        """The most bytes that each member may have."""
        if self.rebuild:
            return dict(self.others)
        places = {place: content for content in self.contents for place in (content.name, *content.places)}
        # gzip makes a file that it cannot shorten longer, but by no more than this.
        return {place: c.size + (c.size // 1000 + 1024) * (place != c.name) for place, c in places.items()}

    def arrays(self, found: Files) -> Arrays | None:
        """The decoded set, or None if these members do not make one."""
        if self.rebuild:
            if not self.others.keys() <= found.keys():
                return None
            found = self.rebuild(found)
        taken = {content.name: content.take(found) for content in self.contents}
        files = {name: content for name, content in taken.items() if content is not None}
        return self.decode(files) if len(files) == len(taken) else None


@dataclass(frozen=True)
class Source:
    """Everything about how a set gets here: its official files, the packages that hold it, and its forms."""

    name: str
    remotes: tuple[Remote, ...]
    packages: str  # what is known to hold the set, in words, with the commands that bring it
    forms: tuple[Form, ...]
    packs: bool = True  # photographs hardly get shorter when packed, but ten times slower to read

    @property
    def size(self) -> int:
        """The bytes of a download."""
        return sum(remote.size for remote in self.remotes)

    def ways(self) -> str:
        """How to get the set, in words."""
        fetched = f"`lemmata data {self.name} --fetch` ({megabytes(self.size)}) or " if self.remotes else ""
        return f"{fetched}`lemmata data {self.name} --from FILE` ({self.packages})"


def cached_arrays(source: Source, may_fetch: bool = False) -> Arrays:
    """The arrays of a set from the cache; fetched first where that is allowed, since a download is never a surprise."""
    path = cached_path(source.name)
    if not path.is_file():
        if not may_fetch:
            raise FileNotFoundError(f"the data set {source.name} is not here yet: {source.ways()}")
        fetch_source(source)
    try:
        with (
            open(path, "rb") as file,
            np.load(file, allow_pickle=False) as stored,
        ):  # np.load(path) leaks what is damaged
            return dict(stored)
    except (ValueError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged; this makes it again: {source.ways()}") from error


def pictures(source: Source, may_fetch: bool, classes: tuple[str, ...]) -> Dataset:
    """A set of images that are kept as bytes."""
    arrays = cached_arrays(source, may_fetch)
    parts = {
        part: Examples(
            x=torch.from_numpy(arrays[f"x_{part}"]).float().div_(255), y=torch.from_numpy(arrays[f"y_{part}"]).long()
        )
        for part in ("train", "test")
    }
    return Dataset(source.name, parts, classes)


def fetch_source(source: Source, progress: Progress = lambda done, size: None) -> Path:
    """Download the official files of a set, check them, and keep the set in the cache."""
    if not source.remotes:
        raise FetchError(f"{source.name} has no official file with a known digest, only {source.ways()}")
    kept = cached_path(source.name)
    folder = kept.with_suffix(".parts")
    try:
        paths = _download_files(source, folder, progress)
        keep_from(source, paths)
        for path in paths:
            path.unlink(missing_ok=True)  # another process may have been as quick
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # unless a part is in it, for the next time
    return kept


def _download_files(source: Source, folder: Path, progress: Progress) -> list[Path]:
    paths, before = [], 0
    for remote in source.remotes:
        start = before  # bound now: each file counts on from where the last one ended
        try:
            paths.append(fetch(remote, folder, lambda done, size, start=start: progress(start + done, source.size)))
        except FetchError as error:
            instead = f"give what you have: `lemmata data {source.name} --from FILE` ({source.packages})"
            what = f"{source.name} ({megabytes(source.size)}, into {folder}) could not be fetched"
            raise FetchError(f"{what}: {error}; try again, or {instead}") from error
        before += remote.size
    return paths


def keep_from(source: Source, paths: Sequence[Path]) -> Path:
    """Read a set from archives, files or folders that are here, check it, and keep it in the cache."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
    arrays = _read_files(source, paths)
    stored, kept = io.BytesIO(), cached_path(source.name)
    (np.savez_compressed if source.packs else np.savez)(stored, **arrays)  # type: ignore[arg-type]
    try:
        write_whole(kept, stored.getvalue())
    except OSError as error:
        raise OSError(f"{source.name} could not be kept as {kept}: {error.strerror or error}") from error
    return kept


def _read_files(source: Source, paths: Sequence[Path]) -> Arrays:
    found = dict(_find_files(source, paths))
    for form in source.forms:
        try:
            arrays = form.arrays(found)
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
            if isinstance(error, ArchiveError):
                raise
            raise ArchiveError(f"{source.name} cannot be read from this: {' '.join(str(error).split())}") from error
        if arrays is not None:
            return arrays
    missing = next(content.name for content in source.forms[0].contents if content.take(found) is None)
    given = ", ".join(path.name for path in paths)
    raise ArchiveError(f"{given} holds no {missing}, so no {source.name}; known to hold it: {source.packages}")


def _find_files(source: Source, paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    limits = {name: limit for form in source.forms for name, limit in form.limits().items()}
    by_size = {content.size: content.name for form in source.forms for content in form.contents}
    for path in paths:
        if path.is_file() and (name := by_size.get(path.stat().st_size)):
            yield name, path.read_bytes()  # whatever it is called by now
        else:
            yield from members(path, limits.get)
