"""C compiled once by the system's own compiler, checked, kept in the cache folder, and loaded.

No compiler, one that fails or hangs, an instruction the processor does not have: each means that there is no library,
and says why. The caller then takes its plain path, and computes the same: no claim can notice what goes wrong here, so
the tests must. A cache that others may write, or that cannot be written, is not used: the library is then made for this
process alone. What failed is not tried again until the compiler, the source or the processor is another.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lemmata.fast.compiled_cache import is_whole, keep_library, kept_folder, own_folder, read_own, write_own
from lemmata.files import cache_folder

__all__ = ["load_compiled"]

COMPILERS = ("cc", "gcc", "clang")
# Without -ffast-math: a NaN must stay one, and sums keep their order and roundings.
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=off", "-shared", "-fPIC")
TUNING = (("-march=native",), ())  # the second where a compiler does not know the first
CHECK = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).self_test() != 0)"
PATIENCE = 120.0  # seconds for a compiler on a very busy machine
# What a compiler says when the machine, not the source, is to blame: the next process may have more luck.
PASSING = ("No space left", "Killed", "memory", "temporarily unavailable", "quota")


def load_compiled(source: Path, defines: Sequence[str] = ()) -> tuple[ctypes.CDLL | None, str]:
    """The library made from a C file whose `int self_test(void)` returns 0; or None, and why there is none.

    Claims: rnn.scan
    """
    if not isinstance(source, Path):
        raise TypeError(f"source must be a Path to a C file, got {type(source).__name__}: use Path(source)")
    if not isinstance(defines, tuple | list) or not all(isinstance(each, str) for each in defines):
        raise TypeError(f"defines must be words for the compiler, such as ['-DREAL=float'], got {defines!r}")
    try:
        return _load_library(source, tuple(defines)), ""
    except _NoLibrary as missing:
        return None, str(missing)
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"{type(error).__name__}: {error}"


class _NoLibrary(Exception):
    pass


class _Hung(_NoLibrary):
    pass


def _load_library(source: Path, defines: tuple[str, ...]) -> ctypes.CDLL:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None or os.name == "nt":
        raise _NoLibrary(f"no C compiler found: tried {', '.join(COMPILERS)}")
    kept, text = kept_folder(cache_folder()), source.read_bytes()
    who = {
        "compiler": compiler,
        "file": _compiler_identity(compiler),
        "cpu": _processor_features(),
        "flags": (FLAGS, TUNING),
    }
    digest = hashlib.sha256(text + repr(who | {"defines": defines}).encode()).hexdigest()
    name = f"{source.stem}-{digest[:32]}"
    if kept and is_whole(kept / f"{name}.so"):
        return ctypes.CDLL(str(kept / f"{name}.so"))
    for failure in (f"{name}.failed", _hung_name(who)):
        _raise_remembered(kept, failure)
    try:
        library = _compile_library(compiler, source, defines)
    except _NoLibrary as problem:
        _remember_problem(kept, _hung_name(who) if isinstance(problem, _Hung) else f"{name}.failed", str(problem))
        raise
    return ctypes.CDLL(str(_store_library(library, kept, f"{name}.so")))


def _store_library(library: bytes, kept: Path | None, name: str) -> Path:
    """Where the library now lies: in the cache, or in this process's own folder if the cache does not take it."""
    for folder in (kept, own_folder()):
        try:
            if folder:
                keep_library(folder / name, library)
                return folder / name
        except OSError:  # a full or read-only disk, or a folder of that name
            if folder is not kept:
                raise
    raise _NoLibrary("there is no folder to write to")


def _compile_library(compiler: str, source: Path, defines: tuple[str, ...]) -> bytes:
    """The first library that compiles and passes its own test, in a process of its own: a bad one may crash."""
    problem = ""
    with tempfile.TemporaryDirectory(prefix="lemmata-") as folder:
        made = Path(folder) / "made.so"
        for tuning in TUNING:
            command = [compiler, *FLAGS, *tuning, *defines, str(source), "-o", str(made)]
            code, said = _finish_command(command, Path(folder), compiler)
            if code != 0:
                problem = f"{compiler} failed: {said[:200] or f'exit code {code}'}"
                continue
            tested = [sys.executable, "-I", "-S", "-c", CHECK, str(made)]
            code, _ = _finish_command(tested, Path(folder), f"the test of what {compiler} made")
            if code == 0:
                return made.read_bytes()
            problem = f"what {compiler} made fails its test with exit code {code}"
    raise _NoLibrary(problem)


def _finish_command(command: list[str], folder: Path, name: str) -> tuple[int, str]:
    """The exit code of a command and what it said; it is ended with all that it started if it takes too long."""
    with open(folder / "said", "w+b") as said:  # a pipe would be waited for as long as a grandchild holds it
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            code = process.wait(PATIENCE)
        except BaseException as stopped:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise _Hung(f"{name} did not end within {PATIENCE:g} seconds") from None
            raise
        said.seek(0)
        return code, said.read(1000).decode(errors="replace").strip()


# --- Failures: a compiler that hangs costs its time once, one that fails is not asked again ---

_failures: dict[str, str] = {}  # where there is no folder to remember them in


def _raise_remembered(kept: Path | None, name: str) -> None:
    told = read_own(kept / name) if kept else None
    if told is not None:
        raise _NoLibrary(f"{told.decode(errors='replace')} (remembered: remove {kept / name} to try again)")  # type: ignore[operator]
    if name in _failures:
        raise _NoLibrary(_failures[name])


def _remember_problem(kept: Path | None, name: str, problem: str) -> None:
    _failures[name] = problem
    if kept and not any(word in problem for word in PASSING):
        with contextlib.suppress(OSError):  # remembered by this process alone
            write_own(kept / name, problem.encode())


def _hung_name(who: dict[str, object]) -> str:
    """All libraries of one compiler share it: each one would wait as long."""
    return f"compiler-{hashlib.sha256(repr(who).encode()).hexdigest()[:32]}.failed"


# --- What decides which library fits ---


def _compiler_identity(compiler: str) -> tuple[str, int, int]:
    """Which file it is, and whether it is the same as before: asking one that hangs for its version would hang too."""
    found = os.stat(compiler)
    return os.path.realpath(compiler), found.st_size, found.st_mtime_ns


@functools.cache
def _processor_features() -> str:
    """What this processor can do: a home folder may be shared by different machines."""
    told = f"{sys.platform} {platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return told
    words = ("model name", "flags", "Features", "CPU part")
    return "\n".join([told, *dict.fromkeys(line for line in lines if line.startswith(words))])
