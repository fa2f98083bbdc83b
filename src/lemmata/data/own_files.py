"""A user's own data as a data set: a CSV table, arrays in an .npz file, or a folder of images."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lemmata.data.array_file import read_arrays
from lemmata.data.examples import Dataset, Examples
from lemmata.data.image_folder import read_images
from lemmata.data.limits import open_regular
from lemmata.data.preparation import Blocks, Column, Preparation, class_name
from lemmata.data.tables import Table, has_decimal_comma, read_table

__all__ = ["FileChoices", "load_file"]

FEW = 20  # different integers that are taken for classes


@dataclass(frozen=True)
class FileChoices:
    """What can be chosen of data of one's own."""

    target: str = ""
    """Column of a table to be predicted, by name or number; by default the last."""
    exclude: tuple[str, ...] = ()
    """Columns of a table to be left out."""
    task: Literal["auto", "classification", "regression"] = "auto"
    """auto: classification for names and for few different integers, else regression."""
    test_fraction: float = 0.2
    """Fraction of the examples kept for the test."""
    image_size: int | None = None
    """Side in pixels of the squares that images are scaled and cut to; by default they must have one size."""


def load_file(
    data: "str | Path | Dataset",
    choices: FileChoices | None = None,
    seed: int = 0,
    max_memory: int | None = None,
) -> Dataset:
    r"""The examples of a file or folder in two parts, prepared for a network; extra `preparation` tells how.

    A table (.csv) has one row an example; an .npz file has arrays x and y; a folder has images (.png, .jpg, .pgm, .ppm)
    in one subfolder for each class. Means and scales are those of the training part; each class is split alike. What is
    a data set already is returned as it is. What a header or the categories of a table say to take more than
    `max_memory` bytes, by default half of the free memory, is refused before it takes any.

    Shapes:
        x: (examples, inputs) float32 of tables, else (examples, *shape); y: (examples,) int64 classes or float32 values
    """
    if isinstance(data, Dataset):
        return data
    choices, path = choices or FileChoices(), Path(data)
    if choices.task not in ("auto", "classification", "regression"):
        raise ValueError(f"task must be auto, classification or regression, got {choices.task!r}")
    if not isinstance(choices.test_fraction, int | float) or not 0 < choices.test_fraction < 1:
        raise ValueError(f"test_fraction must be between 0 and 1, got {choices.test_fraction!r}")
    if not path.exists():
        raise ValueError(f"there is no file or folder {path}")
    if path.is_dir():
        return _from_images(path, choices, seed, max_memory)
    if path.suffix.lower() == ".csv":
        return _from_table(read_table(path, max_memory), choices, seed, max_memory)
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, choices, seed, max_memory)
    raise ValueError(f"{path} must be a .csv or .npz file, or a folder of images")


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files of a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for file in files:
        with open_regular(file) as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        whole.update(f"{file.relative_to(path).as_posix()}\0{found}\n".encode())
    return whole.hexdigest()


def _from_table(table: Table, choices: FileChoices, seed: int, max_memory: int | None) -> Dataset:
    place = table.place(choices.target) if choices.target else len(table.names) - 1
    excluded = {table.place(name) for name in choices.exclude}
    inputs = [index for index in range(len(table.names)) if index != place and index not in excluded]
    if not inputs:
        raise ValueError(f"{table.path} has no column to learn from beside {table.names[place]}")
    numbers = table.numbers(place)
    column, y = _target_column(
        table.names[place], table.cells(place) if numbers is None else numbers, choices.task, table.path
    )
    train, test = _split_rows(y, column, choices.test_fraction, seed, table.path)
    columns = []
    for index in inputs:
        values = table.numbers(index)
        name = table.names[index]
        known = None if values is not None else tuple(table.categories(index))
        of_train = None if values is None else np.array(values)[train]
        columns.append(Column(name, categories=known) if of_train is None else Column.of(name, of_train))
    made = Preparation("table", tuple(columns), column, (sum(each.width for each in columns),))
    return _dataset_of_columns(table.path, made.rows(table, max_memory), y, made, train, test)


def _from_arrays(path: Path, choices: FileChoices, seed: int, max_memory: int | None) -> Dataset:
    arrays = read_arrays(path, max_memory=max_memory)
    if "y" not in arrays:
        raise ValueError(f"{path} has no array y to be predicted, only {', '.join(arrays)}")
    x, values = arrays["x"], arrays["y"]
    if x.ndim < 2 or values.shape != (len(x),):
        raise ValueError(f"{path}: x must be (examples, ...) and y (examples,), got {x.shape} and {values.shape}")
    if 0 in x.shape:
        raise ValueError(f"{path}: x must not be empty, got shape {x.shape}")
    column, y = _target_column("y", values.tolist(), choices.task, path)
    train, test = _split_rows(y, column, choices.test_fraction, seed, path)
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{path}: x must hold numbers, got {x.dtype}")
    if x.ndim == 2:
        columns = tuple(Column.of(f"x[{k}]", x[train, k].astype(np.float64)) for k in range(x.shape[1]))
    else:
        columns = (Column.of_blocks("x", Blocks(x, train)),)
    made = Preparation("arrays", columns, column, x.shape[1:])
    return _dataset_of_columns(path, made.array(x, path, max_memory), y, made, train, test)


def _from_images(path: Path, choices: FileChoices, seed: int, max_memory: int | None) -> Dataset:
    images, names, files = read_images(path, max_memory, choices.image_size)
    loose = next((file for file, name in zip(files, names, strict=True) if not name), None)
    if loose:
        raise ValueError(f"{loose} lies in no subfolder: make one for each class, named as the class")
    if choices.task == "regression":
        raise ValueError(f"{path} holds images of classes: task cannot be regression")
    column, y = _target_column("class", names, "classification", path)
    train, test = _split_rows(y, column, choices.test_fraction, seed, path)
    resized = choices.image_size is not None
    made = Preparation("pictures", (Column("grey", 0.0, 255.0),), column, images.shape[1:], resized)
    return _dataset_of_columns(path, made.array(images, path, max_memory), y, made, train, test)


def _target_column(name: str, values: Sequence[Any], task: str, path: Path) -> tuple[Column, np.ndarray]:
    """The target's column, and its raw values: numbers of classes, or real numbers."""
    real = all(isinstance(value, int | float) for value in values)
    if real and not np.isfinite(values).all():
        raise ValueError(f"{path}: {name} must be finite")
    different = set(values)
    whole = real and all(float(value).is_integer() for value in different)
    if task == "regression" and not real:
        raise ValueError(f"{path}: {name} holds names, such as {values[0]!r}: task cannot be regression")
    if task == "regression" or (task == "auto" and real and not (whole and len(different) <= FEW)):
        numbers = np.array(values, dtype=np.float64)
        if len(different) == 1:
            raise ValueError(f"{path}: {name} is {values[0]} everywhere: there is nothing to learn")
        return Column(name), numbers
    names = [class_name(value) for value in values]
    known = tuple(sorted(set(names), key=float)) if real else tuple(sorted(set(names)))
    if len(known) < 2:
        raise ValueError(f"{path}: {name} is {names[0]} everywhere: there is nothing to learn")
    if comma := next((each for each in known if not real and has_decimal_comma(each)), None):
        raise ValueError(f"{path}: {name} holds {comma}: write decimals with a point, as 1.5")
    if len(known) > len(values) / 2:
        raise ValueError(f"{path}: {name} has {len(known)} classes in {len(values)} examples: choose another target")
    number = {each: index for index, each in enumerate(known)}
    return Column(name, categories=known), np.array([number[each] for each in names])


def _split_rows(y: np.ndarray, column: Column, fraction: float, seed: int, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Positions for training and for the test, drawn by the seed; of each class its fraction, never all of it."""
    generator = np.random.default_rng(seed)
    groups = [np.arange(len(y))] if column.categories is None else [np.flatnonzero(y == k) for k in np.unique(y)]
    held = [generator.permutation(group)[: min(round(fraction * len(group)), len(group) - 1)] for group in groups]
    test = np.sort(np.concatenate(held))
    train = np.setdiff1d(np.arange(len(y)), test)
    if len(test) == 0 or len(train) < 2:
        raise ValueError(f"{path} has {len(y)} examples, too few for training and test: add some")
    return train, test


def _dataset_of_columns(
    path: Path, x: Tensor, y: np.ndarray, made: Preparation, train: np.ndarray, test: np.ndarray
) -> Dataset:
    if made.target.categories is None:
        made = replace(made, target=Column.of(made.target.name, y[train]))
        targets = torch.from_numpy(made.target.prepare(y))
    else:
        targets = torch.from_numpy(y.astype(np.int64))
    whole = Examples(x=x, y=targets)
    parts = {"train": whole[torch.from_numpy(train)], "test": whole[torch.from_numpy(test)]}
    return Dataset(path.stem, parts, made.classes, {"preparation": made, "digest": digest(path)})
