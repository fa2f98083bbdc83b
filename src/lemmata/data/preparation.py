"""How a user's table, arrays or pictures became numbers that a network takes: kept with a run, used for new ones."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lemmata.data.array_file import read_arrays
from lemmata.data.examples import Dataset, Examples
from lemmata.data.image_folder import SUFFIXES, read_images
from lemmata.data.limits import check_memory
from lemmata.data.tables import Table, read_table

__all__ = ["Preparation"]

MODEST = 1e-100  # numbers whose squares neither overflow nor vanish, however many are added
BLOCK = 1 << 18  # values that are widened at a time


@dataclass(frozen=True)
class Column:
    """One column: numbers, of which the mean is taken away and by whose scale is divided; or categories."""

    name: str
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def of(cls, name: str, values: np.ndarray) -> "Column":
        """The mean and the standard deviation of numbers; equal ones are only moved to zero.

        Measured in units of a power of two near the largest, which rounds nothing: sums and squares of numbers like
        1e308 would overflow, squares of numbers like 1e-200 vanish.
        """
        return cls.of_blocks(name, [values])

    @classmethod
    def of_blocks(cls, name: str, blocks: Iterable[np.ndarray]) -> "Column":
        """The same for numbers that come in blocks, which are gone through three times."""
        largest = float(max(np.abs(block).max() for block in blocks))
        unit = 2.0 ** int(np.frexp(largest)[1] - 1) if 0 < largest < np.inf else 1.0
        unit = 1.0 if MODEST < unit < 1 / MODEST else unit
        count = sum(block.size for block in blocks)
        with np.errstate(invalid="ignore"):  # infinite values are refused elsewhere
            mean = sum(float((block / unit).sum()) for block in blocks) / count
            deviation = math.sqrt(sum(float(((block / unit - mean) ** 2).sum()) for block in blocks) / count)
        return cls(name, mean * unit, deviation * unit if deviation > 1e-12 * largest / unit else 1.0)

    def prepare(self, values: np.ndarray) -> np.ndarray:
        """Standardised numbers in single precision, as networks take them."""
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            # A difference of numbers near the largest overflows; of their halves it does not.
            part = 0.5 if max(abs(self.mean), np.abs(values).max(initial=0.0)) > 1e307 else 1.0
            found = ((values * part - self.mean * part) / (self.scale * part)).astype(np.float32)
        if not np.isfinite(found).all():
            far = values[~np.isfinite(found)].flat[0]
            told = f"{far:g} is too far from the mean {self.mean:g} and the scale {self.scale:g} of what was learnt"
            raise ValueError(f"column {self.name}: {told}: correct or exclude it")
        return found

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
    resized: bool = False  # whether images were brought to this shape

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
        if path.is_dir() or path.suffix.lower() in SUFFIXES:
            side = self.shape[-1] if self.resized else None
            images, names, _ = read_images(path, side=side, colour=len(self.shape) == 3)
            x = self.array(images, path)
            known = all(name in self.classes for name in names)
            return Examples(x=x, y=self.labels(names, "")) if known else Examples(x=x)
        arrays = read_arrays(path)
        x = self.array(arrays["x"], path)
        return (
            Examples(x=x, y=self._prepare_targets(arrays["y"].tolist(), f"{path}: y"))
            if "y" in arrays
            else Examples(x=x)
        )

    def rows(self, table: Table, max_memory: int | None = None) -> Tensor:
        """The inputs of a table's rows, its columns found by name, or by their order where they have none."""
        place = {name: number for number, name in reversed([*enumerate(table.names)])}
        absent = [column.name for column in self.columns if column.name not in place]
        if not absent:
            places = [place[column.name] for column in self.columns]
        elif table.headed:
            raise ValueError(f"{table.path} has no column {absent[0]!r}, which was learnt from: add it")
        elif len(table.names) == len(self.columns):
            places = list(range(len(table.names)))
        else:
            given = f"{len(table.names)} columns without names, {len(self.columns)} were learnt from"
            raise ValueError(f"{table.path} has {given}: {', '.join(column.name for column in self.columns)[:200]}")
        widths = [column.width for column in self.columns]
        wanted = f"{table.path}: {len(table.rows)} rows of {sum(widths)} inputs, one for each number or category,"
        # Inputs of 32 bits, and once more when they are divided into training and test.
        check_memory(wanted, 8 * len(table.rows) * sum(widths), max_memory)
        inputs = np.zeros((len(table.rows), sum(widths)), np.float32)
        begin = 0
        for column, number in zip(self.columns, places, strict=True):
            self._fill_inputs(inputs[:, begin : begin + column.width], table, column, number)
            begin += column.width
        return torch.from_numpy(inputs)

    def _fill_inputs(self, inputs: np.ndarray, table: Table, column: Column, place: int) -> None:
        """The inputs of one column, in the room they have."""
        if column.categories is not None:
            inputs[np.arange(len(inputs)), self._known_categories(table, column, place)] = 1
            return
        values = table.numbers(place)
        if values is None:
            cell, line = table.rows[0][place], table.lines[0]
            raise ValueError(f"{table.path}, line {line}, column {column.name}: {cell!r} is no number")
        inputs[:, 0] = _told_where(table.path, column, np.array(values))

    def _known_categories(self, table: Table, column: Column, place: int) -> list[int]:
        known = {name: number for number, name in enumerate(column.categories or ())}
        cells = table.cells(place)
        for cell, line in zip(cells, table.lines, strict=True):
            if cell not in known:
                told = ", ".join(known)[:200]
                raise ValueError(
                    f"{table.path}, line {line}, column {column.name}: {cell!r} is unknown, known are {told}"
                )
        return [known[cell] for cell in cells]

    def array(self, x: np.ndarray, path: Path, max_memory: int | None = None) -> Tensor:
        """Arrays or pictures as inputs; a single example, or flattened ones, are taken too."""
        if x.dtype.kind not in "fiub":
            raise ValueError(f"{path}: x must hold numbers, got {x.dtype}")
        x = x[None] if x.shape == self.shape else x
        if x.ndim < 2 or len(x) == 0 or x.shape[1:] not in (self.shape, (int(np.prod(self.shape)),)):
            wanted = " x ".join(map(str, self.shape))
            raise ValueError(f"{path}: examples must have the shape {wanted}, got an array of shape {x.shape}")
        check_memory(f"{path}: {x.size} values in single precision", x.nbytes + 8 * x.size, max_memory)
        flat = x.reshape(len(x), -1)
        infinite = sum(int((~np.isfinite(flat[some])).sum()) for some in row_blocks(flat))
        if infinite:
            raise ValueError(f"{path}: x must be finite, found {infinite} values that are not")
        inputs = np.empty(flat.shape, np.float32)
        for some in row_blocks(flat):
            wide = flat[some].astype(np.float64)
            if len(self.columns) == 1:
                inputs[some] = _told_where(path, self.columns[0], wide)
            else:
                inputs[some] = self._prepare_columns(wide, path)
        return torch.from_numpy(inputs).reshape(len(x), *self.shape)

    def _prepare_columns(self, values: np.ndarray, path: Path) -> np.ndarray:
        """All columns of some rows at once, one by one where a number is out of the ordinary."""
        means, scales = (np.array([getattr(column, name) for column in self.columns]) for name in ("mean", "scale"))
        with np.errstate(over="ignore", invalid="ignore"):
            found = ((values - means) / scales).astype(np.float32)
        if np.isfinite(found).all():
            return found
        return np.stack(
            [_told_where(path, column, each) for column, each in zip(self.columns, values.T, strict=True)], 1
        )

    def _targets_of(self, table: Table) -> Tensor:
        place = table.names.index(self.target.name)
        if self.target.categories is None:
            return self._prepare_targets(table.numbers(place) or [], f"{table.path}: {self.target.name}")
        cells = table.cells(place)
        if all(_as_number(name) is not None for name in self.classes):  # 1 and 1.0 are one class
            cells = [class_name(cell) for cell in cells]
        return self.labels(cells, f"{table.path}: {self.target.name}")

    def _prepare_targets(self, values: Sequence[Any], where: str) -> Tensor:
        if self.target.categories is not None:
            return self.labels([class_name(value) for value in values], where)
        return torch.from_numpy(self.target.prepare(np.array(values, dtype=np.float64)))

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
            columns = tuple(_column_from_record(each) for each in told["columns"])
            shape = tuple(int(size) for size in told["shape"])
            made = cls(
                str(told["kind"]),
                columns,
                _column_from_record(told["target"]),
                shape,
                told.get("resized", False) is True,
            )
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"its preparation is damaged ({type(error).__name__}: {error})"[:200]) from None
        if (
            made.kind not in ("table", "arrays", "pictures")
            or not columns
            or not all(0 < size < 2**31 for size in shape)
        ):
            raise ValueError("its preparation is damaged: kind, columns or shape cannot be")
        return made


def row_blocks(x: np.ndarray) -> Iterator[slice]:
    """Rows of an array, some at a time, so that copies of them stay small."""
    step = max(1, BLOCK * len(x) // max(1, x.size))
    return (slice(first, first + step) for first in range(0, len(x), step))


@dataclass(frozen=True)
class Blocks:
    """Some rows of an array in double precision, block by block, as often as one likes."""

    x: np.ndarray
    rows: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        for some in row_blocks(self.x):
            if len(these := self.rows[some]):
                yield self.x[these].astype(np.float64)


def _told_where(path: Path, column: Column, values: np.ndarray) -> np.ndarray:
    try:
        return column.prepare(values)
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from None


def _column_from_record(told: Mapping[str, Any]) -> Column:
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
