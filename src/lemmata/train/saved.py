"""Trained systems from the folders of their runs."""

import importlib
import warnings
from pathlib import Path
from typing import Any

import torch

from lemmata import catalog
from lemmata.train import checkpoint
from lemmata.train.folder import read_record

__all__ = ["load_run", "restore_system"]


def load_run(folder: Path | str, device: str = "cpu") -> Any:
    """The trained system of a run: its class by the name of the system, its arguments from the record, its weights.

    Where the newest weights are damaged, older ones are used, and a warning says which. Only systems of lemmata can be
    built from a name; for a class of your own, build it and call `restore_system`.
    """
    record = read_record(Path(folder))
    entry = catalog.load().systems.get(str(record.get("built")))
    if entry is None:
        what = record.get("built") or record.get("class")
        raise ValueError(
            f"{folder} trained {what}, which is no system here: build it and call restore_system(it, folder)"
        )
    kind = getattr(importlib.import_module(entry.module), entry.name)
    try:
        system = kind(**{name: _tuples(value) for name, value in record.get("arguments", {}).items()})
    except (*checkpoint.BROKEN, MemoryError) as error:
        raise ValueError(f"{folder}/run.json does not fit {entry.name} ({_short(error)}): train again") from None
    if message := restore_system(system, folder):
        warnings.warn(message, stacklevel=2)  # where lemmata.load was called
    return system.to(device).eval() if isinstance(system, torch.nn.Module) else system


def restore_system(system: Any, folder: Path | str) -> str:
    """Give a system the weights of a run, finished or not.

    Returns one line if there is something to know of them: what newer had to be skipped, why, and what is used instead;
    or that they are not all finite. Else an empty one.
    """
    folder = Path(folder)
    found, skipped = None, []
    for part in ("final", "checkpoints"):
        try:
            found = found or checkpoint.newest(folder / part)
        except checkpoint.CheckpointError as error:
            skipped.append(str(error))
        if found is None and not skipped and (folder / "result.json").exists():  # what a run writes when it ends
            skipped.append(f"{folder / part} is empty, though the run has ended: restore it from a copy")
    if found is None:
        raise ValueError("; ".join(skipped) or f"{folder} holds no checkpoint: train again")
    skipped += found.messages
    used = f"step {found.step} of {found.path.parent}"
    try:
        weights = dict(found.state["system"])
        _take_over(system, weights)
    except checkpoint.BROKEN as error:
        raise ValueError(f"the weights in {folder} do not fit {type(system).__name__}: {_short(error)}") from None
    said = [*skipped, f"{used} is used instead"] if skipped else []
    later = max(checkpoint.steps_of(folder / "checkpoints"), default=0)
    if later > found.step and not skipped:
        said = [f"{used} is used, where the run ended once; it has gone on to step {later} since"]
    return "; ".join([*said, *_not_finite(weights, used)])


def _take_over(system: Any, weights: dict[str, Any]) -> None:
    if isinstance(system, torch.nn.Module):
        dtypes = {value.dtype for value in weights.values() if torch.is_tensor(value) and value.is_floating_point()}
        system.to(dtypes.pop() if len(dtypes) == 1 else None)
    system.load_state_dict(weights)


def _not_finite(weights: dict[str, Any], used: str) -> list[str]:
    for name, value in weights.items():
        if torch.is_tensor(value) and not bool(value.isfinite().all()):
            return [f"{name} in {used} holds values that are not finite: what the system says is worth nothing"]
    return []


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _tuples(value: Any) -> Any:
    """JSON knows lists only; arguments of a system are hashable, so tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
