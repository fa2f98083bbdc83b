"""Shared training: what truths, lies and claims need trained is trained once and then remembered.

A training is known by everything that decides its bits: the code of the recipe or the functions with all they import,
the settings, the seed, the versions and instructions it computes with. It runs sealed off from the claim that asks, and
leaves its weights in the cache folder. The judge, which stands below all that trains, is given this file by the table
`PROVIDED` of lemmata/__init__.py.
"""

import contextlib
import copy
import functools
import hashlib
import inspect
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import torch

from lemmata.files import cache_folder
from lemmata.judge.draw import anew, seed_of
from lemmata.judge.fingerprint import closure, versions
from lemmata.judge.opened_files import read_since, watch
from lemmata.judge.sealed_randomness import sealed_randomness
from lemmata.train import checkpoint

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = []  # claims say `draw.trained`

LARGEST = 256 * 2**20  # bytes of all trainings that are kept; those asked for longest ago go first
IN_MEMORY = 8
BEGAN = time.time_ns()

_memory: dict[str, Any] = {}


@dataclass(frozen=True)
class Training:
    """One training before it is asked for: what decides it, how it is done, and how its weights make a system."""

    files: tuple[Path, ...]
    words: tuple[Any, ...]
    train: Callable[[], Any]
    restore: Callable[[Any], Any]


def trained(build: Any, teach: Any, settings: Mapping[str, Any], seed: int) -> Any:
    """A system of one's own, made by `build` and trained by `teach`; see `Draw.trained`."""
    return remembered(lambda: _by_functions(build, teach, settings, seed), seed)


def remembered(prepare: Callable[[], Training], seed: int) -> Any:
    """A system of one's own, with the weights that a training gives."""
    with _as_at_the_start(seed):
        training = prepare()
        system = training.restore(copy.deepcopy(_training_weights(training)))
    return system.eval() if isinstance(system, torch.nn.Module) else system


@contextlib.contextmanager
def _as_at_the_start(seed: int) -> Iterator[None]:
    """The same state whoever asks: a claim may compute in float64 or without gradients, its trainings must not."""
    with sealed_randomness(seed), torch.inference_mode(False), torch.enable_grad():
        torch.set_default_dtype(torch.float32)
        if torch.get_default_device().type != "cpu":
            torch.set_default_device(None)
        yield


def _by_functions(build: Any, teach: Any, settings: Mapping[str, Any], seed: int) -> Training:
    """`build(...)` makes a module, `teach(module, generator, ...)` trains it; each gets the settings that it names."""
    taken = {function: _named_by(function, settings) for function in (build, teach)}
    if unknown := settings.keys() - {name for names in taken.values() for name in names}:
        raise TypeError(f"neither {build.__name__} nor {teach.__name__} takes {', '.join(sorted(unknown))}")

    def made(state: dict[str, Any] | None) -> Any:
        torch.manual_seed(seed)
        module = build(**taken[build])
        if state is not None:
            module.load_state_dict(state)
        return module

    def train() -> dict[str, Any]:
        module = made(None)
        teach(module, torch.Generator().manual_seed(seed_of("trained", seed)), **taken[teach])
        return dict(module.state_dict())

    names = [f"{function.__module__}.{function.__qualname__}" for function in (build, teach)]
    return Training(
        (_file_of_function(build), _file_of_function(teach)), ("functions", *names, plain(settings), seed), train, made
    )


def _named_by(function: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    if "<" in getattr(function, "__qualname__", "<"):
        raise TypeError(
            f"trained takes functions and classes of a file, got {function!r}: what else it holds is unknown"
        )
    return {name: settings[name] for name in inspect.signature(function).parameters if name in settings}


def _file_of_function(function: Any) -> Path:
    return Path(sys.modules[function.__module__].__file__ or "").resolve()


def plain(settings: Mapping[str, Any]) -> str:
    """Settings as part of a key."""
    try:
        return json.dumps(dict(settings), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise TypeError(f"settings of a training must be plain numbers, words and tuples, got {settings}") from None


# --- Remembering ---


def _training_weights(training: Training) -> Any:
    if anew.get():
        return training.train()
    key, lasting = _training_key(training)
    if key not in _memory:
        _memory[key] = _kept_weights(training, key) if lasting else copy.deepcopy(training.train())
        while len(_memory) > IN_MEMORY:
            del _memory[next(iter(_memory))]
    return _memory[key]


def _training_key(training: Training) -> tuple[str, bool]:
    """The name of a training, and whether its weights may be kept: not if the code at work is not that on the disk.

    A mutant's is not, nor that of a file which was written to since this process began.
    """
    odd = _odd_loaders()
    digests, lasting = [], True
    for file in sorted({file for path in training.files for file in closure(path)}):
        changed = file.stat().st_ctime_ns
        digest = _changed_digest(file, changed)
        loaded = hashlib.sha256(odd[str(file)].get_data(str(file))).hexdigest() if str(file) in odd else digest
        lasting &= loaded == digest and changed < BEGAN
        digests.append((file.name, loaded))
    parts = [training.words, digests, versions(), torch.backends.cpu.get_cpu_capability()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest(), lasting


@functools.cache
def _changed_digest(file: Path, changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _odd_loaders() -> dict[str, Any]:
    """Who loaded a file that Python did not load in its usual way: it has the source as it was loaded."""
    found = {}
    for module in list(sys.modules.values()):
        loader, file = getattr(module, "__loader__", None), getattr(module, "__file__", None)
        if file and hasattr(loader, "get_data") and type(loader) is not SourceFileLoader:
            found[os.path.realpath(file)] = loader
    return found


def _kept_weights(training: Training, key: str) -> Any:
    """The weights from the cache folder, where they are put if nobody did; two who ask at once wait in line.

    A folder that cannot be written costs the memory, not the verdict.
    """
    folder, state = cache_folder() / "trained" / key, None
    with contextlib.ExitStack() as line:
        with contextlib.suppress(OSError):
            line.enter_context(_in_line(folder.with_suffix(".lock")))
            state = _read_weights(folder)
        if state is None:
            watch()
            count = len(read_since())
            state = copy.deepcopy(training.train())
            known = {file for path in training.files for file in closure(path)}
            data = [path for path in read_since(count) if Path(path).resolve() not in known]
            # What was imported on the way is that of the disk too; data of the claim's own is in no key.
            if not data and _training_key(training) == (key, True):
                with contextlib.suppress(OSError):
                    checkpoint.save(folder, 0, state)
                    _make_room(folder.parent)
    return state


def _read_weights(folder: Path) -> Any:
    try:
        found = checkpoint.newest(folder)
    except checkpoint.CheckpointError:
        aside = folder.with_suffix(".damaged")
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(folder, aside)
        return None
    if found is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(folder)  # the last to go
    return found.state


@contextlib.contextmanager
def _in_line(path: Path) -> Iterator[None]:
    """One process at a time. Without locks both train, and both find the same bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # who waits for this one has it open; who comes later finds the weights
        os.close(handle)


def _make_room(root: Path) -> None:
    """Remove what was asked for longest ago until the rest is small enough."""
    folders = sorted((entry for entry in root.iterdir() if entry.is_dir()), key=lambda f: f.stat().st_mtime_ns)
    sizes = {folder: sum(file.stat().st_size for file in folder.iterdir()) for folder in folders}
    for folder in folders[:-1]:
        if sum(sizes.values()) <= LARGEST:
            return
        shutil.rmtree(folder, ignore_errors=True)
        del sizes[folder]
