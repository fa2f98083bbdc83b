"""Tables in CSV files: columns of numbers or of categories, by name; faults are told by line and column."""

import csv
import difflib
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path

from lemmata.data.limits import read_regular

__all__ = ["Table", "read_table"]

MISSING = ("", "na", "n/a", "nan", "null", "?")
MOST = 1000  # different texts that a column of categories may have
CELL = 5  # bytes in memory for each of the file, at least: a cell of one digit takes two there, and eight here
NEARLY_ALL = 0.9  # a column with this fraction of numbers is one of numbers with a slip


@dataclass(frozen=True)
class Table:
    """The cells of a CSV file; `lines` are the line numbers of its rows."""

    path: Path
    names: tuple[str, ...]
    headed: bool  # whether the names stood in the file
    rows: list[list[str]]
    lines: list[int]

    def place(self, name: str) -> int:
        """The number of a column of this name, or of this number counted from 1."""
        if name in self.names:
            return self.names.index(name)
        if name.isdigit() and 1 <= int(name) <= len(self.names):
            return int(name) - 1
        near = difflib.get_close_matches(name, self.names, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.names)[:200]}"
        raise ValueError(f"{self.path} has no column {name!r}: {hint}")

    def cells(self, place: int) -> list[str]:
        """All cells of a column; a missing one is refused."""
        column = [row[place].strip() for row in self.rows]
        empty = [line for line, cell in zip(self.lines, column, strict=True) if cell.lower() in MISSING]
        if empty:
            where = ", ".join(map(str, empty[:5])) + (", ..." if len(empty) > 5 else "")
            lines = f"line {where}" if len(empty) == 1 else f"lines {where}"
            name = self.names[place]
            raise ValueError(
                f"{self.path}, {lines}: {name} is missing; fill it in, remove the lines, or exclude {name}"
            )
        return column

    def numbers(self, place: int) -> list[float] | None:
        """A column as numbers; None if it is one of categories."""
        column = self.cells(place)
        wrong = [index for index, cell in enumerate(column) if not is_number(cell)]
        if len(wrong) > (1 - NEARLY_ALL) * len(column):
            return None
        if wrong:
            cell, where = column[wrong[0]], f"{self.path}, line {self.lines[wrong[0]]}, column {self.names[place]}"
            comma = " (write 1.5 for 1,5)" if has_decimal_comma(cell) else ""
            raise ValueError(f"{where}: {cell!r} is no finite number, as the others are: correct it{comma}")
        return [float(cell) for cell in column]

    def categories(self, place: int) -> list[str]:
        """The different texts of a column, in the order of the alphabet."""
        column = self.cells(place)
        found = sorted(set(column))
        name = self.names[place]
        if any(map(has_decimal_comma, found)):
            where = next(line for line, cell in zip(self.lines, column, strict=True) if has_decimal_comma(cell))
            raise ValueError(f"{self.path}, line {where}, column {name}: write decimals with a point, as 1.5")
        if len(found) > MOST or (len(found) > 20 and len(found) > len(column) / 2):
            told = f"{len(found)} different texts in {len(column)} rows"
            raise ValueError(f"{self.path}: column {name} holds {told}, too many to be categories; exclude {name}")
        return found


def read_table(path: Path, max_memory: int | None = None) -> Table:
    """A CSV file, with or without a first line of names, its cells parted by commas, semicolons or tabs.

    A file whose cells would take more than `max_memory` bytes, by default half of the free memory, is refused.
    """
    try:
        text = read_regular(path, max_memory, CELL).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 (byte {error.start}): save it as CSV UTF-8") from None
    if "\0" in text:
        raise ValueError(f"{path} is no CSV file: it holds bytes that are no text")
    first = next((line for line in io.StringIO(text, newline="") if line.strip()), "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    rows, lines = [], []
    known: dict[str, str] = {}  # the same text in many cells is kept once
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([known.setdefault(cell, cell) for cell in row])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    if not rows:
        raise ValueError(f"{path} is empty")
    headed = not any(is_number(cell) for cell in rows[0])
    names = tuple(cell.strip() for cell in rows[0]) if headed else tuple(f"column {k + 1}" for k in range(len(rows[0])))
    if headed:
        _check_names(path, names)
        del rows[0], lines[0]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise ValueError(f"{path}, line {line}: it has {len(row)} cells, not {len(names)} as the first line")
    if not rows:
        raise ValueError(f"{path} has names but no rows")
    return Table(path, names, headed, rows, lines)


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if not name:
            raise ValueError(f"{path}, line 1: column {place + 1} has no name")
        if name in seen:
            raise ValueError(f"{path}, line 1: two columns are called {name}: rename one")
        seen.add(name)


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number, as Python writes it."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def has_decimal_comma(cell: str) -> bool:
    """Whether a cell is a number as half of the world writes it: 1,5."""
    return re.fullmatch(r"-?\d+,\d+", cell) is not None
