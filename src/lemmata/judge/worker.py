"""A worker of the judge: one claim per task. What it answers is worth nothing without what it had loaded: see `engine`.

python -P judge/loaded.py lemmata.judge.worker
"""

import dataclasses
import functools
import importlib
import importlib.util
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lemmata.judge.fingerprint import PACKAGE, home
from lemmata.judge.opened_files import digests, watch
from lemmata.judge.verdict import Result
from lemmata.lazy import provided_modules
from lemmata.workers import descendants, serve

__all__ = ["perform"]


def perform(task: dict[str, Any]) -> Result:
    """Judge the claim that a task names."""
    return _perform_claim(task)[0]


def _perform_claim(task: dict[str, Any], look: Callable[[], Any] = lambda: None) -> tuple[Result, Any]:
    """The result, and what `look` saw between the import of the file and the judging."""
    from lemmata.judge.decorators import Claim
    from lemmata.judge.draw import seed_of
    from lemmata.judge.runner import judge, sealed_randomness
    from lemmata.judge.sharpness import sharpen

    path = Path(task["path"])
    try:
        with sealed_randomness(seed_of(path.stem, 0)):  # what a file does on import must not reach other files' claims
            module = _import_claim_file(task["module"], path)
    except (Exception, SystemExit) as error:
        reason = f"{path} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Result(task["id"], "error", reason=reason, seed=task["seed"]), look()
    claim = getattr(module, task["function"], None)
    if not isinstance(claim, Claim) or claim.id != task["id"]:
        fault = f"{path} has no claim {task['id']!r} under the name {task['function']}: is the name used twice?"
        return Result(task["id"], "error", reason=fault, seed=task["seed"]), look()
    _warm_imports(module)
    seen = look()
    result = judge(claim, task["seed"], task["cost"], twice=task["twice"], truth_only=task["truth_only"])
    if task["sharp"] and result.verdict == "holds" and task["cost"] != "long":
        lies = sharpen(claim, result.lies, task["seed"], task["cost"])
        result = dataclasses.replace(result, lies=lies)
    return result, seen


def _warm_imports(module: ModuleType) -> None:
    """Import what the first use of torch.optim or torch.func would, for a second: the time of a claim is its own."""
    if "torch._dynamo" in sys.modules:
        return
    chapters = [m for name, m in sys.modules.items() if re.match(r"lemmata\.(?!judge|train)\w+\.", name)]
    files = {getattr(other, "__file__", None) for other in (module, *chapters)}
    if any(re.search(r"torch\.(optim|func)\b|torch import func\b", _file_text(file)) for file in files if file):
        importlib.import_module("torch._dynamo")


@functools.cache
def _file_text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def _import_claim_file(name: str, path: Path) -> ModuleType:
    """Ours, or a file in a package, by its name; any other file by its path, with its folder on the import path."""
    if PACKAGE in path.parents:
        return importlib.import_module(name)
    root = home(path)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if root != path.parent:
        module = importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
        if module.__file__ and path.samefile(module.__file__):  # else another package has this one's name
            return module
    unique = f"{path.stem} of {path.parent}"  # a user's random.py is not Python's, nor that of the next folder
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = sys.modules[unique] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


# --- What a claim leaves behind ---

# Whose functions every verdict rests on; the judge's own modules besides.
SHARED = ("builtins", "math", "random", "numpy", "torch", "torch.linalg", "torch.nn", "torch.nn.functional")


def _global_state() -> dict[str, Any]:
    """What the next claim would find changed if this one changed it: functions, classes, settings, threads.

    Identities only, a millisecond or two in all. It cannot see everything (an array overwritten in place, a C
    library's setting): it is there for accidents. Files that are not ours have workers of their own, whatever it sees.
    """
    names = {*SHARED, *provided_modules(), *(name for name in sys.modules if name.startswith("lemmata.judge."))}
    spaces = {name: vars(sys.modules[name]) for name in names if name in sys.modules}
    for base in reversed(sys.modules["torch"].Tensor.__mro__):  # a new name there may hide an old one
        spaces["torch.Tensor"] = spaces.get("torch.Tensor", {}) | vars(base)
    state = {f"{space}.{name}": v for space, found in spaces.items() for name, v in found.items() if callable(v)}
    settings = {"os.environ": dict(os.environ), "sys.path": list(sys.path), "the current folder": os.getcwd()}
    return state | settings | {"numpy.geterr": sys.modules["numpy"].geterr(), "a thread": set(threading.enumerate())}


def _changed_state(before: dict[str, Any]) -> str:
    """The first thing that is not as it was, or nothing. What is new is no change: modules are imported late."""
    after = _global_state()
    for name, value in before.items():
        if callable(value) and after.get(name) is not value:
            return name
        if not callable(value) and after[name] != value:
            return name
    return ""


# --- The process ---


def main(loaded: dict[str, str]) -> None:
    """Answer tasks until nobody asks."""
    watch()
    serve(functools.partial(_answer_task, loaded), functools.partial(_ready_message, loaded))


def _ready_message(loaded: dict[str, str]) -> dict[str, Any]:
    import lemmata.judge.runner  # noqa: F401  (torch takes seconds; be ready before the clock of a claim starts)

    return {"loaded": loaded}


def _answer_task(loaded: dict[str, str], task: dict[str, Any]) -> dict[str, Any]:
    import torch

    result, before = _perform_claim(task, _global_state)
    try:
        json.dumps(result.to_json(), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"its evidence cannot be written as JSON: {error}"
        result = Result(task["id"], "error", reason=reason, seed=task["seed"])
    others = [pid for pid in descendants(os.getppid()) if pid != os.getpid()]  # below our keeper, where there is one
    left = _changed_state(before) or ("a process" if others else "")
    known = {"id": task["id"], "seed": task["seed"], "loaded": loaded, "left": left}
    known["opened"] = digests(Path(task["path"]), loaded)
    return known | {"result": result.to_json(), "capability": torch.backends.cpu.get_cpu_capability()}
