"""How a user's table, arrays or pictures became numbers that a network takes: kept with a run, used for new ones."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lemmata.data.array_file import read_arrays
from lemmata.data.examples import Dataset, Examples
from lemmata.data.picture_folder import READERS, read_pictures
from lemmata.data.tables import Table, read_table

__all__ = ["Preparation"]


@dataclass(frozen=True)
class Column:
    """One column: numbers, of which the mean is taken away and by whose scale is divided; or categories."""

    name: str
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def of(cls, name: str, values: np.ndarray) -> "Column":
        """The mean and the standard deviation of numbers; equal ones are only moved to zero."""
        deviation = float(values.std())
        return cls(name, float(values.mean()), deviation if deviation > 1e-12 * np.abs(values).max() else 1.0)

    def prepare(self, values: np.ndarray) -> np.ndarray:
        return (values - self.mean) / self.scale

    @property
    def width(self) -> int:
        """Inputs of a network that the column takes: one for a number, one for each category."""
        return 1 if self.categories is None else len(self.categories)


@dataclass(frozen=True)
class Preparation:
    r"""What was measured on the training examples: names, means, scales and categories. It goes to JSON and back.

    `kind` is table, arrays or pictures. Numbers are standardised; a category becomes one input for each of its values,
    1 where it is the one (one-hot). A target of numbers is standardised too, and `value` undoes that.
    """

    kind: str
    columns: tuple[Column, ...]
    target: Column
    shape: tuple[int, ...]  # of the input of one example

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; none for a target of numbers."""
        return self.target.categories or ()

    def value(self, output: Tensor) -> Tensor:
        """What a network's output stands for, in the target's own numbers."""
        return output.double() * self.target.scale + self.target.mean

    # --- New examples ---

    def read(self, path: Path) -> Examples:
        """The examples of a file like the one that was learnt from; with targets `y`, if it has them."""
        if self.kind == "table":
            table = read_table(path)
            x = self.rows(table)
            told = self.target.name in table.names and (table.headed or len(table.names) > len(self.columns))
            y = self._targets_of(table) if told else None
            return Examples(x=x) if y is None else Examples(x=x, y=y)
        if path.is_dir() or path.suffix.lower() in READERS:
            pictures, names, _ = read_pictures(path)
            x = self.array(pictures, path)
            known = all(name in self.classes for name in names)
            return Examples(x=x, y=self.labels(names, "")) if known else Examples(x=x)
        arrays = read_arrays(path)
        x = self.array(arrays["x"], path)
        return Examples(x=x, y=self._targets(arrays["y"].tolist(), f"{path}: y")) if "y" in arrays else Examples(x=x)

    def rows(self, table: Table) -> Tensor:
        """The inputs of a table's rows, its columns found by name, or by their order where they have none."""
        absent = [column.name for column in self.columns if column.name not in table.names]
        if not absent:
            places = [table.names.index(column.name) for column in self.columns]
        elif table.headed:
            raise ValueError(f"{table.path} has no column {absent[0]!r}, which was learnt from: add it")
        elif len(table.names) == len(self.columns):
            places = list(range(len(table.names)))
        else:
            given = f"{len(table.names)} columns without names, {len(self.columns)} were learnt from"
            raise ValueError(f"{table.path} has {given}: {', '.join(column.name for column in self.columns)[:200]}")
        pairs = zip(self.columns, places, strict=True)
        blocks = [self._block(table, column, place) for column, place in pairs]
        return torch.from_numpy(np.concatenate(blocks, axis=1).astype(np.float32))

    def _block(self, table: Table, column: Column, place: int) -> np.ndarray:
        if column.categories is not None:
            numbers = self._known(table, column, place)
            return np.eye(len(column.categories))[numbers]
        values = table.numbers(place)
        if values is None:
            cell, line = table.rows[0][place], table.lines[0]
            raise ValueError(f"{table.path}, line {line}, column {column.name}: {cell!r} is no number")
        return column.prepare(np.array(values))[:, None]

    def _known(self, table: Table, column: Column, place: int) -> list[int]:
        known = column.categories or ()
        for cell, line in zip(table.cells(place), table.lines, strict=True):
            if cell not in known:
                told = ", ".join(known)[:200]
                raise ValueError(
                    f"{table.path}, line {line}, column {column.name}: {cell!r} is unknown, known are {told}"
                )
        return [known.index(cell) for cell in table.cells(place)]

    def array(self, x: np.ndarray, path: Path) -> Tensor:
        """Arrays or pictures as inputs; a single example, or flattened ones, are taken too."""
        if x.dtype.kind not in "fiub":
            raise ValueError(f"{path}: x must hold numbers, got {x.dtype}")
        x = x[None] if x.shape == self.shape else x
        if x.ndim < 2 or len(x) == 0 or x.shape[1:] not in (self.shape, (int(np.prod(self.shape)),)):
            wanted = " x ".join(map(str, self.shape))
            raise ValueError(f"{path}: examples must have the shape {wanted}, got an array of shape {x.shape}")
        flat = x.reshape(len(x), -1).astype(np.float64)
        if not np.isfinite(flat).all():
            raise ValueError(f"{path}: x must be finite, found {int((~np.isfinite(flat)).sum())} values that are not")
        means, scales = (np.array([getattr(column, name) for column in self.columns]) for name in ("mean", "scale"))
        return torch.from_numpy(((flat - means) / scales).astype(np.float32)).reshape(len(x), *self.shape)

    def _targets_of(self, table: Table) -> Tensor:
        place = table.names.index(self.target.name)
        if self.target.categories is None:
            return self._targets(table.numbers(place) or [], f"{table.path}: {self.target.name}")
        cells = table.cells(place)
        if all(_as_number(name) is not None for name in self.classes):  # 1 and 1.0 are one class
            cells = [class_name(cell) for cell in cells]
        return self.labels(cells, f"{table.path}: {self.target.name}")

    def _targets(self, values: Sequence[Any], where: str) -> Tensor:
        if self.target.categories is not None:
            return self.labels([class_name(value) for value in values], where)
        return torch.from_numpy(self.target.prepare(np.array(values, dtype=np.float64)).astype(np.float32))

    def labels(self, names: Sequence[str], where: str) -> Tensor:
        """Numbers of classes by their names."""
        unknown = next((name for name in names if name not in self.classes), None)
        if unknown is not None:
            raise ValueError(f"{where} {unknown!r} is no class that was learnt: {', '.join(self.classes)[:200]}")
        number = {name: index for index, name in enumerate(self.classes)}
        return torch.tensor([number[name] for name in names], dtype=torch.int64)

    # --- In the folder of a run ---

    def placeholder(self) -> Dataset:
        """A data set of one example of zeros, of the shapes and with the classes of the one that was learnt from."""
        y = torch.zeros(1, dtype=torch.int64 if self.classes else torch.float32)
        one = Examples(x=torch.zeros(1, *self.shape), y=y)
        return Dataset("yours", {"train": one, "test": one}, self.classes, {"preparation": self})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Any) -> "Preparation":
        """What `to_json` wrote; a ValueError for anything else."""
        try:
            columns = tuple(_column(each) for each in told["columns"])
            shape = tuple(int(size) for size in told["shape"])
            made = cls(str(told["kind"]), columns, _column(told["target"]), shape)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"its preparation is damaged ({type(error).__name__}: {error})"[:200]) from None
        if (
            made.kind not in ("table", "arrays", "pictures")
            or not columns
            or not all(0 < size < 2**31 for size in shape)
        ):
            raise ValueError("its preparation is damaged: kind, columns or shape cannot be")
        return made


def _column(told: Mapping[str, Any]) -> Column:
    categories = told["categories"]
    if categories is not None and not (categories and all(isinstance(name, str) for name in categories)):
        raise ValueError("categories must be names")
    mean, scale = float(told["mean"]), float(told["scale"])
    if not (np.isfinite([mean, scale]).all() and scale > 0):
        raise ValueError(f"mean {mean} and scale {scale} cannot be")
    return Column(str(told["name"]), mean, scale, None if categories is None else tuple(categories))


def class_name(value: Any) -> str:
    """The name of a class: 3 for the numbers 3 and 3.0, a text as it is."""
    number = _as_number(value)
    if number is not None and number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return str(value)


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
