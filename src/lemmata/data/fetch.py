"""Downloads that are there whole or not at all: HTTPS only, size and SHA-256 known beforehand, resumed where cut."""

import contextlib
import errno
import functools
import hashlib
import http.client
import os
import shutil
import ssl
import string
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Any

from lemmata.files import sync_folder

try:
    import fcntl
except ImportError:  # Windows: there a second process is kept apart only by the digest
    fcntl = None

__all__ = ["FetchError"]  # the rest is for the loaders of this folder

Progress = Callable[[int, int], object]

SCHEMES = ("https",)  # tests add http, for a server on this machine
REDIRECTS = 5
MOVED = (301, 302, 303, 307, 308)
ATTEMPTS = 4  # the first one and three more
BLOCK = 1 << 16


class FetchError(OSError):
    """A download that failed; its message is one line. What had come stays as NAME.part, unless it was wrong."""


@dataclass(frozen=True)
class Remote:
    """A file elsewhere, with what it must be.

    >>> Remote("https://example.org/set/train.gz", size=28881, sha256="3552").name
    'train.gz'
    """

    url: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """The last part of the address, under which the file is kept."""
        return urllib.parse.urlsplit(self.url).path.rsplit("/", 1)[-1]

    @property
    def host(self) -> str:
        """Who is asked first."""
        return urllib.parse.urlsplit(self.url).hostname or self.url


def fetch(remote: Remote, folder: Path, progress: Progress = lambda done, size: None, timeout: float = 30.0) -> Path:
    """The file in this folder, downloaded if it is not there yet, and always of the pinned size and SHA-256.

    What comes is kept in NAME.part. A cut connection is taken up again at once where it broke, up to three times and
    as long as each attempt brings something; later calls go on with the part too.
    """
    path = folder / remote.name
    if _is_whole(path, remote):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with _part_file(path) as part:
        _download_file(remote, part, progress, timeout)
        part.seek(0)
        found = _file_sha256(part)  # of the file, not of the stream: what counts is what will be read
        os.fsync(part.fileno())
        if fcntl is None:
            part.close()  # Windows moves and deletes only what is closed; elsewhere the lock is kept to the end
        if found != remote.sha256:
            Path(part.name).unlink()
            digests = f"{remote.sha256[:12]}... was expected, {found[:12]}... came"
            raise FetchError(f"{remote.name} from {remote.host} has the wrong SHA-256 ({digests}) and was deleted")
        os.replace(part.name, path)
        sync_folder(folder)
    return path


def megabytes(size: int) -> str:
    """A size as people say it.

    >>> megabytes(170052171), megabytes(1_649_000), megabytes(4542), megabytes(12)
    ('170 MB', '1.6 MB', '5 kB', '12 bytes')
    """
    if size < 1000:
        return f"{size} bytes"
    if size < 1e6:
        return f"{size / 1e3:.0f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e8 else f"{size / 1e6:,.0f} MB"


def _is_whole(path: Path, remote: Remote) -> bool:
    if not path.is_file() or path.stat().st_size != remote.size:
        return False
    with open(path, "rb") as file:
        return _file_sha256(file) == remote.sha256


def _file_sha256(file: IO[bytes] | FileIO) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


@contextlib.contextmanager
def _part_file(path: Path) -> Iterator[FileIO]:
    """NAME.part, or a part of our own, dropped on failure, while another process is writing to that one."""
    part = _lock_part(path.with_name(path.name + ".part"))
    if part is not None:
        with part:
            try:
                yield part
            except BaseException:
                if not part.closed and not part.seek(0, os.SEEK_END):
                    Path(part.name).unlink(missing_ok=True)  # nothing came, so nothing is left behind
                raise
        return
    handle, own = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".part")
    os.close(handle)
    try:
        with FileIO(own, "r+") as part:
            yield part
    finally:
        with contextlib.suppress(OSError):
            os.unlink(own)


def _lock_part(path: Path) -> FileIO | None:
    # Not "ab": that writes at the end wherever we stand. Unbuffered: a full disk is told by the write itself.
    part = FileIO(path, "r+", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o644))
    if fcntl is None:
        return part
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between our open and our lock, its writer may have finished and renamed it: then the lock is on the result.
        if os.path.samestat(os.fstat(part.fileno()), os.stat(path)):
            return part
    except OSError:
        pass
    part.close()
    return None


def _download_file(remote: Remote, part: FileIO, progress: Progress, timeout: float) -> None:
    if (have := part.seek(0, os.SEEK_END)) > remote.size:
        part.truncate(have := 0)
    free = shutil.disk_usage(Path(part.name).parent).free
    if free < remote.size - have:
        room = f"{megabytes(remote.size - have)} are needed in {Path(part.name).parent}, {megabytes(free)} are free"
        raise FetchError(f"the disk is too full for {remote.name}: {room}")
    trouble = ""
    for _ in range(ATTEMPTS):
        before = part.seek(0, os.SEEK_END)
        if before == remote.size:
            return
        trouble = _attempt_download(remote, part, progress, timeout)
        if part.tell() == remote.size:
            return
        if part.tell() <= before:
            break
    raise FetchError(f"{remote.name} from {remote.host}: {trouble}")


def _attempt_download(remote: Remote, part: FileIO, progress: Progress, timeout: float) -> str:
    """Go on where the part ends; what stopped us, if something that may pass did."""
    try:
        with _ask_server(remote, part, timeout) as answer:
            while block := answer.read1(BLOCK):  # read would wait for all of it, and lose it when cut
                _keep_block(remote, part, block)
                progress(part.tell(), remote.size)
        return _cut_message(remote, part)
    except FetchError:
        raise
    except (ConnectionError, http.client.IncompleteRead):
        return _cut_message(remote, part)
    except urllib.error.HTTPError as error:
        error.close()
        return f"the server answered {error.code} {error.reason}"
    except TimeoutError:
        return f"nothing came for {timeout:g} s"
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: an address that is none
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return f"no answer within {timeout:g} s"
        return f"no connection ({getattr(reason, 'strerror', None) or reason or type(error).__name__})"


def _cut_message(remote: Remote, part: FileIO) -> str:
    return f"the connection was cut after {megabytes(part.tell())} of {megabytes(remote.size)}"


def _ask_server(remote: Remote, part: FileIO, timeout: float) -> Any:
    """The server's answer, with the part cut back to where the answer starts."""
    try:
        answer = _open_url(remote.url, part.tell(), timeout)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not part.tell():
            raise
        error.close()
        _restart_part(part)
        answer = _open_url(remote.url, 0, timeout)
    start, size = _answer_range(answer)
    if size not in (None, remote.size):
        answer.close()
        changed = f"{size:,} bytes, not the {remote.size:,} it had, so it has changed there"
        raise FetchError(f"{remote.name} from {remote.host} is refused: the server offers {changed}")
    if start != part.tell():  # most often a server that knows no ranges and starts again
        _restart_part(part)
    if start != part.tell():
        answer.close()
        raise FetchError(f"{remote.name} from {remote.host} is refused: the server sent a range nobody asked for")
    return answer


def _open_url(url: str, start: int, timeout: float) -> Any:
    headers = {"Accept-Encoding": "identity", "User-Agent": "lemmata"} | ({"Range": f"bytes={start}-"} if start else {})
    asked = url
    for _ in range(1 + REDIRECTS):
        if urllib.parse.urlsplit(url).scheme not in SCHEMES:
            via = f", where {asked} redirects," if url != asked else ""
            raise FetchError(f"{url}{via} is refused: only {SCHEMES[0]} is fetched")
        try:
            return _download_opener().open(urllib.request.Request(url, headers=headers), timeout=timeout)
        except urllib.error.HTTPError as error:
            if error.code not in MOVED or not error.headers.get("Location"):
                raise
            error.close()
            url = urllib.parse.urljoin(url, urllib.parse.quote(error.headers["Location"], safe=string.punctuation))
    raise FetchError(f"{asked} is refused: more than {REDIRECTS} redirects")


def _answer_range(answer: Any) -> tuple[int, int | None]:
    """Where an answer starts and how long the whole file is, as far as the server says."""
    if answer.status != http.client.PARTIAL_CONTENT:
        length = answer.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else None
    unit, _, rest = answer.headers.get("Content-Range", "").partition(" ")
    span, _, size = rest.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or not start.isdecimal():
        return -1, None
    return int(start), int(size) if size.isdecimal() else None


def _restart_part(part: FileIO) -> None:
    part.seek(0)
    part.truncate()


def _keep_block(remote: Remote, part: FileIO, block: bytes) -> None:
    if part.tell() + len(block) > remote.size:
        _restart_part(part)
        raise FetchError(f"{remote.name} from {remote.host} is refused: longer than its {remote.size:,} bytes")
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[part.write(rest) :]
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else error.strerror or str(error)
        kept = f"{megabytes(part.tell())} of {megabytes(remote.size)} are kept as {part.name}"
        raise FetchError(f"{remote.name} could not be written: {why}; {kept}") from error


@functools.cache  # reading the certificates takes a while
def _download_opener() -> urllib.request.OpenerDirector:
    """Only what a download needs: urllib's own opener would also read file: and ftp:, and follow any redirect."""
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler())
    opener.add_handler(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
    opener.add_handler(urllib.request.HTTPHandler())  # for a proxy; addresses are checked against SCHEMES before
    opener.add_handler(urllib.request.HTTPDefaultErrorHandler())
    opener.add_handler(urllib.request.HTTPErrorProcessor())
    opener.add_handler(urllib.request.UnknownHandler())
    return opener
