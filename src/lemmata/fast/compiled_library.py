"""C compiled once by the system's own compiler, checked, kept in the cache folder, and loaded.

No compiler, one that fails, a cache that cannot be written or that others may write, an instruction the processor
does not have: each means that there is no library, and says why. The caller then takes its plain path, and computes
the same: no claim can notice what goes wrong here, so the tests must.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lemmata.files import cache_folder, write_whole

__all__ = ["load_compiled"]

COMPILERS = ("cc", "gcc", "clang")
# Without -ffast-math: a NaN must stay one, and sums keep their order and roundings.
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=off", "-shared", "-fPIC")
TUNING = (("-march=native",), ())  # the second where a compiler does not know the first
CHECK = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).self_test() != 0)"
PATIENCE = 120.0  # seconds for a compiler on a very busy machine


def load_compiled(source: Path, defines: Sequence[str] = ()) -> tuple[ctypes.CDLL | None, str]:
    """The library made from a C file whose `int self_test(void)` returns 0; or None, and why there is none.

    Claims: rnn.scan
    """
    try:
        return _load(source, tuple(defines)), ""
    except _NoLibrary as missing:
        return None, str(missing)
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"{type(error).__name__}: {error}"


class _NoLibrary(Exception):
    pass


def _load(source: Path, defines: tuple[str, ...]) -> ctypes.CDLL:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None or os.name == "nt":
        raise _NoLibrary(f"no C compiler found: tried {', '.join(COMPILERS)}")
    folder = _private(cache_folder() / "compiled")
    text = source.read_bytes()
    said = {"compiler": compiler, "version": _version(compiler), "flags": (FLAGS, TUNING, defines), "cpu": _processor()}
    digest = hashlib.sha256(text + repr(said).encode()).hexdigest()
    path = folder / f"{source.stem}-{digest[:32]}.so"
    if not _whole(path):
        _keep(path, _compile(compiler, source, defines))
    return ctypes.CDLL(str(path))


def _compile(compiler: str, source: Path, defines: tuple[str, ...]) -> bytes:
    """The first library that compiles and passes its own test, in a process of its own: a bad one may crash."""
    problem = ""
    with tempfile.TemporaryDirectory(prefix="lemmata-") as folder:
        made = Path(folder) / "made.so"
        for tuning in TUNING:
            command = [compiler, *FLAGS, *tuning, *defines, str(source), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
            if done.returncode != 0:
                problem = f"{compiler} failed: {done.stderr.decode(errors='replace').strip()[:200]}"
                continue
            tested = [sys.executable, "-I", "-S", "-c", CHECK, str(made)]
            code = subprocess.run(tested, capture_output=True, timeout=PATIENCE).returncode
            if code == 0:
                return made.read_bytes()
            problem = f"what {compiler} made fails its test with exit code {code}"
    raise _NoLibrary(problem)


# --- The cache: others must not be able to put their code there, and half a file must not be run ---


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise _NoLibrary(f"{folder} belongs to somebody else")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _keep(path: Path, library: bytes) -> None:
    write_whole(_seal(path), hashlib.sha256(library).hexdigest().encode(), lasting=False)
    write_whole(path, library, lasting=False)


def _whole(path: Path) -> bool:
    """Whether the file is what was written: loading a part of a library kills the process."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest().encode() == _seal(path).read_bytes()
    except OSError:
        return False


def _seal(path: Path) -> Path:
    return path.with_suffix(".sha256")


# --- What decides which library fits ---


@functools.cache
def _version(compiler: str) -> bytes:
    return subprocess.run([compiler, "--version"], capture_output=True, timeout=PATIENCE, check=True).stdout


@functools.cache
def _processor() -> str:
    """What this processor can do: a home folder may be shared by different machines."""
    told = f"{sys.platform} {platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return told
    words = ("model name", "flags", "Features", "CPU part")
    return "\n".join([told, *dict.fromkeys(line for line in lines if line.startswith(words))])
