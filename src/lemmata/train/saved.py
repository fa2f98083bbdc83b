"""Trained systems from the folders of their runs."""

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from lemmata import catalog
from lemmata.train import checkpoint
from lemmata.train.folder import read_record
from lemmata.train.recipe import tuples

__all__ = ["load_run", "restore_system"]


def load_run(folder: Path | str, device: str = "cpu", model: Any = None) -> Any:
    """The trained system of a run: its class by the name of the system, its arguments from the record, its weights.

    Where the newest weights are damaged, older ones are used, and a warning says which. Only systems of lemmata can be
    built from a name; a `model` of your own, built as it was for the training, is given the weights.
    """
    if model is None:
        model = build(folder)
    if message := restore_system(model, folder):
        warnings.warn(message, stacklevel=2)  # where lemmata.load was called
    return model.to(device).eval() if isinstance(model, torch.nn.Module) else model


def build(folder: Path | str) -> Any:
    """The system that a run trained, before its training."""
    record = read_record(Path(folder))
    entry = catalog.load().systems.get(str(record.get("built")))
    if entry is None:
        what = record.get("built") or record.get("class")
        cure = f"in Python, lemmata.load({str(folder)!r}, model={what}(...)) gives the weights to one that you build"
        raise ValueError(f"{folder} holds a {what}, which cannot be built from its record: {cure}")
    try:
        return rebuilt(entry, record.get("arguments", {}))
    except (*checkpoint.BROKEN, MemoryError) as error:
        raise ValueError(f"{folder}/run.json does not fit {entry.name} ({_short_error(error)}): train again") from None


def rebuilt(entry: catalog.SystemEntry, arguments: Mapping[str, Any], weights: Mapping[str, Any] | None = None) -> Any:
    """A system by its entry in the catalog, its arguments as JSON or Python has them, and its weights if there are any.

    Every run is used again by this function, whether its record comes from a folder or from memory.
    """
    system = catalog.marked(entry)(**{name: tuples(value) for name, value in arguments.items()})
    if weights is not None:
        system.load_state_dict(weights)
    return system


def told_arguments(system: Any) -> dict[str, Any] | None:
    """Arguments that build a system of lemmata again, from its config and its members; None if they cannot be told."""
    kind = type(system)
    if "__lemmata_system__" not in vars(kind) or not isinstance(system, torch.nn.Module):
        return None
    found = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        value = getattr(getattr(system, "config", None), name, getattr(system, name, system))
        if isinstance(parameter.default, bool) and (value is None or torch.is_tensor(value)):
            value = value is not None  # bias=True, and the bias itself under the same name
        if name not in ("device", "dtype"):
            found[name] = value
    if not all(map(_is_plain, found.values())):
        return None
    try:
        with torch.random.fork_rng(devices=[]):  # the training draws what it would have drawn
            twin = kind(**found)
    except checkpoint.BROKEN:
        return None
    shapes = [{name: value.shape for name, value in each.state_dict().items()} for each in (system, twin)]
    return found if shapes[0] == shapes[1] else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


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
        raise ValueError(f"the weights in {folder} do not fit {type(system).__name__}: {_short_error(error)}") from None
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


def _short_error(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
