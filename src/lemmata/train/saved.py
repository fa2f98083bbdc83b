"""Trained systems from the folders of their runs."""

import importlib
from pathlib import Path
from typing import Any

import torch

from lemmata import catalog
from lemmata.train import checkpoint
from lemmata.train.folder import read_record

__all__ = ["load_run", "restore_system"]


def load_run(folder: Path | str, device: str = "cpu") -> Any:
    """The trained system of a run: its class by the name of the system, its arguments from the record, its weights.

    Only systems of lemmata can be built from a name; for a class of your own, build it and call `restore_system`.
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
    restore_system(system, folder)
    return system.to(device).eval() if isinstance(system, torch.nn.Module) else system


def restore_system(system: Any, folder: Path | str) -> list[str]:
    """Give a system the weights of a run, finished or not; what was skipped on the way is returned as sentences."""
    folder = Path(folder)
    found, said = None, []
    for part in ("final", "checkpoints"):
        try:
            found = found or checkpoint.newest(folder / part)
        except checkpoint.CheckpointError as error:
            said.append(str(error))
    if found is None:
        raise ValueError("; ".join(said) or f"{folder} holds no checkpoint: train again")
    weights = found.state["system"]
    if isinstance(system, torch.nn.Module):
        dtypes = {value.dtype for value in weights.values() if torch.is_tensor(value) and value.is_floating_point()}
        system.to(dtypes.pop() if len(dtypes) == 1 else None)
    try:
        system.load_state_dict(weights)
    except (RuntimeError, KeyError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"the weights in {folder} do not fit {type(system).__name__}: {why}") from None
    return [*said, *found.messages]


def _tuples(value: Any) -> Any:
    """JSON knows lists only; arguments of a system are hashable, so tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
