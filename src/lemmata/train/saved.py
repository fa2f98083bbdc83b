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
    except TypeError as error:
        raise ValueError(f"{folder}/run.json does not fit {entry.name} ({error}): train again") from None
    if message := restore_system(system, folder):
        warnings.warn(message, stacklevel=2)  # where lemmata.load was called
    return system.to(device).eval() if isinstance(system, torch.nn.Module) else system


def restore_system(system: Any, folder: Path | str) -> str:
    """Give a system the weights of a run, finished or not.

    Returns one line if something newer had to be skipped (what, why, and what is used instead), else an empty one.
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
    weights = found.state["system"]
    if isinstance(system, torch.nn.Module):
        dtypes = {value.dtype for value in weights.values() if torch.is_tensor(value) and value.is_floating_point()}
        system.to(dtypes.pop() if len(dtypes) == 1 else None)
    try:
        system.load_state_dict(weights)
    except (RuntimeError, KeyError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"the weights in {folder} do not fit {type(system).__name__}: {why}") from None
    return "; ".join([*skipped, f"step {found.step} of {found.path.parent} is used instead"]) if skipped else ""


def _tuples(value: Any) -> Any:
    """JSON knows lists only; arguments of a system are hashable, so tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
