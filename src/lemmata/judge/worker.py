"""A worker process: one JSON task per line in, one JSON result per line out.

Lines of text on pipes, no pickle: a claim can hang, crash or print what it likes without harm to its parent.
"""

import dataclasses
import importlib
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import IO, Any

from lemmata.judge.fingerprint import PACKAGE, home
from lemmata.judge.verdict import Result

__all__ = ["perform"]


def perform(task: dict[str, Any]) -> Result:
    """Judge the claim that a task names."""
    from lemmata.judge.decorators import Claim
    from lemmata.judge.draw import seed_of
    from lemmata.judge.runner import judge, sealed_randomness
    from lemmata.judge.sharpness import sharpen

    path = Path(task["path"])
    try:
        with sealed_randomness(seed_of(path.stem, 0)):  # what a file does on import must not reach other files' claims
            module = _module(task["module"], path)
    except (Exception, SystemExit) as error:
        reason = f"{path} cannot be imported: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Result(task["id"], "error", reason=reason, seed=task["seed"])
    claim = getattr(module, task["function"], None)
    if not isinstance(claim, Claim) or claim.id != task["id"]:
        fault = f"{path} has no claim {task['id']!r} under the name {task['function']}: is the name used twice?"
        return Result(task["id"], "error", reason=fault, seed=task["seed"])
    result = judge(claim, task["seed"], task["cost"])
    if task["sharp"] and result.verdict == "holds" and task["cost"] != "long":
        lies = sharpen(claim, result.lies, task["seed"], task["cost"])
        result = dataclasses.replace(result, lies=lies)
    return result


def _module(name: str, path: Path) -> ModuleType:
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


def main() -> None:
    # What claims print or read must not touch the pipes on which tasks and results travel.
    tasks, results = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(tasks, lines), daemon=True).start()
    import lemmata.judge.runner  # noqa: F401  (torch takes seconds; be ready before the clock of a claim starts)

    print(json.dumps({"ready": True}), file=results, flush=True)
    while True:
        print(json.dumps(perform(json.loads(lines.get())).to_json()), file=results, flush=True)


def _listen(tasks: IO[str], lines: SimpleQueue[str]) -> None:
    """Pass tasks on. When the pipe ends the parent is gone, however it died: nobody waits for this process either."""
    for line in tasks:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
