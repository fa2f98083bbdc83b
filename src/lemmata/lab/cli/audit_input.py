"""From the words after `lemmata audit` to a model, its data, its loss and how it is trained."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file as load_weights
from torch import nn

from lemmata.data.array_file import read_arrays
from lemmata.data.columns import is_array
from lemmata.data.own_files import FileChoices, load_file
from lemmata.data.registry import load
from lemmata.lab.cli.own_code import from_file, is_own_code, made
from lemmata.lab.recipe_choice import is_path
from lemmata.lab.words import UserError

PARTS = ("x_train", "y_train", "x_test", "y_test")


def read_model(word: str, weights: Path | None, device: str) -> nn.Module:
    """The module that FILE.py:NAME is or returns, with its weights, on its device."""
    if not is_own_code(word):
        raise UserError(f"the model must be FILE.py:NAME or the folder of a run, got {word!r}")
    value = from_file(word, "model", _gives_model)
    model = value if isinstance(value, nn.Module) else made(value, word) if callable(value) else value
    if not isinstance(model, nn.Module):
        raise UserError(f"{word} must be a torch module or a function that returns one, got {type(model).__name__}")
    if weights is not None:
        _load_state(model, weights)
        model.eval()  # weights that were kept are those of a finished model
    return _place_model(model, device)


def read_data(word: str, target: str = "") -> tuple[Any, Any]:
    """What --data stands for, and the test part it brings, if it does."""
    if is_own_code(word):
        value = from_file(word, "data", _gives_data)
        return _train_and_test(made(value, word) if callable(value) and not is_array(value) else value)
    try:
        if Path(word).suffix.lower() in (".npz", ".npy"):
            return _read_arrays(Path(word))
        found = load_file(word, FileChoices(target=target)) if is_path(word) else load(word)
    except ValueError as error:
        raise UserError(str(error)) from None
    return _train_and_test(found)


def read_loss(word: str) -> Any:
    """A loss by its name, or a function of (outputs, targets) in a file."""
    if not is_own_code(word):
        return word or None
    return from_file(word, "loss", callable)


def read_forward(word: str) -> Any:
    """A function of (model, batch) in a file, which returns the model's outputs for the input columns by name."""
    if not word:
        return None
    if not is_own_code(word):
        raise UserError(f"--forward must be FILE.py:NAME, a function of (model, batch), got {word!r}")
    return from_file(word, "function", callable)


def _gives_model(value: Any) -> bool:
    return isinstance(value, nn.Module) or (isinstance(value, type) and issubclass(value, nn.Module))


def _gives_data(value: Any) -> bool:
    kinds = (torch.utils.data.DataLoader, torch.utils.data.Dataset)
    return isinstance(value, kinds) or (isinstance(value, tuple | dict) and len(value) > 0)


def _train_and_test(value: Any) -> tuple[Any, Any]:
    """Training and test part: a data set's own, a dict with train and test, or two things that are no columns."""
    parts = getattr(value, "parts", value)
    if isinstance(parts, dict) and "train" in parts:
        return parts["train"], parts.get("test", parts.get("validation"))
    if isinstance(value, tuple) and len(value) == 2 and not any(is_array(part) for part in value):
        return value[0], value[1]
    return value, None


def _read_arrays(path: Path) -> tuple[Any, Any]:
    """Arrays as they are: the model takes them so, and nothing is scaled."""
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    try:
        found = read_arrays(path, PARTS)
    except ValueError:
        found = read_arrays(path)
        found = {"x_train": found["x"], **({"y_train": found["y"]} if "y" in found else {})}
    test = _input_and_target(found, "test") if "x_test" in found else None
    return _input_and_target(found, "train"), test


def _input_and_target(found: dict[str, np.ndarray], part: str) -> Any:
    x, y = found[f"x_{part}"], found.get(f"y_{part}")
    return x if y is None else (x, y)


def _load_state(model: nn.Module, path: Path) -> None:
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    if path.suffix != ".safetensors":
        cure = "safetensors.torch.save_file(model.state_dict(), 'weights.safetensors') writes one"
        raise UserError(f"--weights must be a .safetensors file, which runs no code, got {path.name}: {cure}")
    try:
        model.load_state_dict(load_weights(path))
    except (SafetensorError, RuntimeError, OSError) as error:
        told = " ".join(str(error).split())[:300]
        raise UserError(f"{path} does not fit the model: {told}") from None


def _place_model(model: nn.Module, device: str) -> nn.Module:
    if not device:
        return model
    try:
        return model.to(torch.device(device))
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {device}: {' '.join(str(error).split())[:200]}") from None
