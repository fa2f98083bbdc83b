"""Shared training: what truths, lies and claims need trained is trained once and then remembered.

A training is known by everything that decides its bits: the code of the recipe or the functions with all they import,
the settings, the seed, the versions and instructions it computes with. It runs sealed off from the claim that asks, and
leaves its weights in the cache folder. The chapters and the loop are found by name when they are needed: the judge
itself stands below them.
"""

import contextlib
import contextvars
import copy
import dataclasses
import functools
import hashlib
import importlib
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

from lemmata import catalog
from lemmata.files import cache_folder
from lemmata.judge.draw import seed_of
from lemmata.judge.fingerprint import PACKAGE, closure, versions
from lemmata.judge.sealed import sealed_randomness
from lemmata.marks import recipe_for, usual_settings

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = []  # claims say `draw.trained`

LOOP, LOOP_MODULE = PACKAGE / "train" / "loop.py", "lemmata.train.loop"
LARGEST = 256 * 2**20  # bytes of all trainings that are kept; those asked for longest ago go first
IN_MEMORY = 8
BEGAN = time.time_ns()

# Set where a truth is run once more to see whether it gives the same bits: a training must show that it does, too.
anew: contextvars.ContextVar[bool] = contextvars.ContextVar("anew", default=False)
_memory: dict[str, Any] = {}


@dataclass(frozen=True)
class Training:
    """One training before it is asked for: what decides it, how it is done, and how its weights make a system."""

    files: tuple[Path, ...]
    words: tuple[Any, ...]
    train: Callable[[], Any]
    restore: Callable[[Any], Any]


def trained(what: Any, teach: Callable[..., Any] | None, settings: Mapping[str, Any], seed: int) -> Any:
    """A system of one's own, with the weights that this training gives; see `Draw.trained`."""
    by_name = isinstance(what, str)
    if by_name == (teach is not None):
        raise TypeError("trained takes the name of a system that has a recipe, or two functions: build and teach")
    with _as_at_the_start(seed):
        training = _by_recipe(what, settings, seed) if by_name else _by_functions(what, teach, settings, seed)
        system = training.restore(copy.deepcopy(_weights(training)))
    return system.eval() if isinstance(system, torch.nn.Module) else system


@contextlib.contextmanager
def _as_at_the_start(seed: int) -> Iterator[None]:
    """The same state whoever asks: a claim may compute in float64 or without gradients, its trainings must not."""
    with sealed_randomness(seed), torch.inference_mode(False), torch.enable_grad():
        torch.set_default_dtype(torch.float32)
        if torch.get_default_device().type != "cpu":
            torch.set_default_device(None)
        yield


# --- Two ways to train ---


def _by_recipe(system: str, settings: Mapping[str, Any], seed: int) -> Training:
    """As `lemmata train SYSTEM --data D` does, on the CPU; settings are the recipe's config and options."""
    known = catalog.load()
    data = str(settings.get("data", ""))
    found = [r for r in known.recipes if r.system == system and (not data or data in r.data.split())]
    if not found:
        trainable = sorted({r.system for r in known.recipes})
        raise ValueError(f"no recipe trains {system!r}{f' on {data!r}' if data else ''}: known are {trainable}")
    entry, data = found[0], data or found[0].data.split()[0]
    chosen = {name: value for name, value in settings.items() if name != "data"}

    # Before the key is made: it is that of the code as loaded.
    recipe = recipe_for(getattr(importlib.import_module(entry.module), entry.name), system)
    loop = importlib.import_module(LOOP_MODULE)

    def train() -> dict[str, Any]:
        config, options = usual_settings(recipe, system)
        of_config, of_options = _known(config, chosen), _known(options, chosen)
        if unknown := chosen.keys() - of_config.keys() - of_options.keys():
            raise TypeError(f"the recipe {entry.name} has no setting {', '.join(sorted(unknown))}")
        options = dataclasses.replace(options, **{"seed": seed} | of_options | {"device": "cpu"})
        experiment = recipe(data, dataclasses.replace(config, **of_config), options)
        weights = loop.run_experiment(experiment).system.state_dict()
        built = type(experiment.system).__lemmata_system__["id"]
        return {"built": built, "arguments": dict(experiment.arguments), "weights": dict(weights)}

    def restore(state: dict[str, Any]) -> Any:
        entry = known.systems[state["built"]]
        made = getattr(importlib.import_module(entry.module), entry.name)(**state["arguments"])
        made.load_state_dict(state["weights"])
        return made

    words = ("recipe", entry.module, entry.name, system, data, _plain(chosen), seed)
    return Training((entry.path, LOOP), words, train, restore)


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
    return Training((_file(build), _file(teach)), ("functions", *names, _plain(settings), seed), train, made)


def _named_by(function: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    if "<" in getattr(function, "__qualname__", "<"):
        raise TypeError(
            f"trained takes functions and classes of a file, got {function!r}: what else it holds is unknown"
        )
    return {name: settings[name] for name in inspect.signature(function).parameters if name in settings}


def _file(function: Any) -> Path:
    return Path(sys.modules[function.__module__].__file__ or "").resolve()


def _known(usual: Any, chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: chosen[field.name] for field in dataclasses.fields(usual) if field.name in chosen}


def _plain(settings: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(settings), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise TypeError(f"settings of a training must be plain numbers, words and tuples, got {settings}") from None


# --- Remembering ---


def _weights(training: Training) -> Any:
    if anew.get():
        return training.train()
    key, lasting = _key(training)
    if key not in _memory:
        _memory[key] = _kept(training, key) if lasting else copy.deepcopy(training.train())
        while len(_memory) > IN_MEMORY:
            del _memory[next(iter(_memory))]
    return _memory[key]


def _key(training: Training) -> tuple[str, bool]:
    """The name of a training, and whether its weights may be kept: not if the code at work is not that on the disk.

    A mutant's is not, nor that of a file which was written to since this process began.
    """
    odd = _odd_loaders()
    digests, lasting = [], True
    for file in sorted({file for path in training.files for file in closure(path)}):
        changed = file.stat().st_ctime_ns
        digest = _digest(file, changed)
        loaded = hashlib.sha256(odd[str(file)].get_data(str(file))).hexdigest() if str(file) in odd else digest
        lasting &= loaded == digest and changed < BEGAN
        digests.append((file.name, loaded))
    parts = [training.words, digests, versions(), torch.backends.cpu.get_cpu_capability()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest(), lasting


@functools.cache
def _digest(file: Path, changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _odd_loaders() -> dict[str, Any]:
    """Who loaded a file that Python did not load in its usual way: it has the source as it was loaded."""
    found = {}
    for module in list(sys.modules.values()):
        loader, file = getattr(module, "__loader__", None), getattr(module, "__file__", None)
        if file and hasattr(loader, "get_data") and type(loader) is not SourceFileLoader:
            found[os.path.realpath(file)] = loader
    return found


def _kept(training: Training, key: str) -> Any:
    """The weights from the cache folder, where they are put if nobody did; two who ask at once wait in line.

    A folder that cannot be written costs the memory, not the verdict.
    """
    folder, state = cache_folder() / "trained" / key, None
    with contextlib.ExitStack() as line:
        with contextlib.suppress(OSError):
            line.enter_context(_in_line(folder.with_suffix(".lock")))
            state = _read(folder)
        if state is None:
            state = copy.deepcopy(training.train())
            if _key(training) == (key, True):  # what was imported on the way is that of the disk too
                with contextlib.suppress(OSError):
                    importlib.import_module("lemmata.train.checkpoint").save(folder, 0, state)
                    _make_room(folder.parent)
    return state


def _read(folder: Path) -> Any:
    checkpoint = importlib.import_module("lemmata.train.checkpoint")
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
