"""Examples and data sets: columns of tensors that share their first axis, and the parts they are split into."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor
from torch.utils.data._utils.collate import default_collate_fn_map  # where torch's own documentation points

__all__ = ["Dataset", "Example", "Examples"]

ORDER = ("train", "validation", "test")


class Example:
    r"""One example: its values by name, as `example.x` or `example["x"]`, and in order, as `x, y = example`.

    >>> example = Examples(x=torch.arange(6.0).reshape(3, 2), y=torch.tensor([0, 1, 0]))[1]
    >>> example.x, example["y"]
    (tensor([2., 3.]), tensor(1))
    """

    def __init__(self, columns: dict[str, Tensor]):
        self.columns = columns

    def __getattr__(self, name: str) -> Tensor:
        return _column_of(self, name, AttributeError)

    def __getitem__(self, name: str) -> Tensor:
        return _column_of(self, name, KeyError)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.columns.values())

    def __repr__(self) -> str:
        return f"Example({_column_shapes(self)})"


class Examples:
    r"""Tensors with the same number of rows, one row an example: `x` the inputs, `y` the targets, or any other names.

    Indexing with a slice, a tensor of positions or a mask gives the chosen examples: that is a batch. A position gives
    one example, a name its column. torch's DataLoader takes examples as a data set, and its batches are examples again.

    >>> examples = Examples(x=torch.arange(6.0).reshape(3, 2), y=torch.tensor([0, 1, 0]))
    >>> len(examples), examples[1:]["y"], examples[torch.tensor([2, 0])].x
    (3, tensor([1, 0]), tensor([[4., 5.],
            [0., 1.]]))
    >>> next(iter(torch.utils.data.DataLoader(examples, batch_size=2)))
    Examples(x=(2, 2), y=(2,))
    """

    def __init__(self, **columns: Tensor):
        for name, column in columns.items():
            if not isinstance(column, Tensor) or column.ndim == 0:
                got = type(column).__name__ if not isinstance(column, Tensor) else "a single number"
                raise TypeError(f"{name} must be a tensor with one row an example, got {got}")
            if hasattr(Examples, name) or name == "columns":
                raise ValueError(f"{name!r} cannot name a column, for examples have a member of that name: rename it")
        lengths = {name: len(column) for name, column in columns.items()}
        if not columns or len(set(lengths.values())) != 1:
            raise ValueError(f"columns must be one or more of equal length, got {lengths or 'none'}")
        self.columns: dict[str, Tensor] = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getattr__(self, name: str) -> Tensor:
        return _column_of(self, name, AttributeError)

    @overload
    def __getitem__(self, which: str) -> Tensor: ...
    @overload
    def __getitem__(self, which: int) -> Example: ...
    @overload
    def __getitem__(self, which: Tensor | slice | Sequence[int]) -> "Examples": ...
    def __getitem__(self, which: Any) -> "Tensor | Example | Examples":
        # index_select is several times quicker than column[which] for the few rows of a batch
        if isinstance(which, Tensor) and which.dtype is torch.int64 and which.ndim:
            return self._map_columns(lambda column: column.index_select(0, which))
        if isinstance(which, str):
            return _column_of(self, which, KeyError)
        if isinstance(which, int | np.integer) or (isinstance(which, Tensor) and not which.ndim):
            return Example({name: column[int(which)] for name, column in self.columns.items()})
        return self._map_columns(lambda column: column[which])

    def __iter__(self) -> Iterator[Tensor]:
        """The columns in order, so that `x, y = examples` reads as it should."""
        return iter(self.columns.values())

    def to(self, *place: Any, **options: Any) -> "Examples":
        """On a device or in a dtype; integers (labels, tokens) change their device only."""
        return self._map_columns(lambda column: moved(column, *place, **options))

    def pin_memory(self) -> "Examples":
        """In memory that a GPU can read by itself; a DataLoader with pin_memory=True asks for it."""
        return self._map_columns(Tensor.pin_memory)

    def _map_columns(self, change: Callable[[Tensor], Tensor]) -> "Examples":
        # Without the checks of __init__: this runs once a batch.
        new = object.__new__(Examples)
        new.columns = {name: change(column) for name, column in self.columns.items()}
        return new

    def __repr__(self) -> str:
        return f"Examples({_column_shapes(self)})"


def _column_of(of: Example | Examples, name: str, missing: type[Exception]) -> Tensor:
    try:
        return of.__dict__["columns"][name]
    except KeyError:
        raise missing(f"no column {name!r} among {', '.join(of.__dict__.get('columns', ()))}") from None


def _column_shapes(of: Example | Examples) -> str:
    return ", ".join(f"{name}={tuple(column.shape)}" for name, column in of.columns.items())


def _collate_examples(examples: Sequence[Example], *, collate_fn_map: Any = None) -> Examples:
    """Examples that a DataLoader took one by one as the batch they form."""
    return Examples(**{name: torch.stack([one.columns[name] for one in examples]) for name in examples[0].columns})


default_collate_fn_map[Example] = _collate_examples


def moved(tensor: Tensor, *place: Any, **options: Any) -> Tensor:
    """`tensor.to(...)`, which never turns integers into others: 2049 does not survive a visit to float16."""
    if tensor.is_floating_point():
        return tensor.to(*place, **options)
    device = torch.empty(0, device=tensor.device).to(*place, **options).device
    return tensor.to(device, non_blocking=options.get("non_blocking", False))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set in its parts: most have `train` and `test`, some `train` and `validation`, a few only `train`.

    `classes` names the targets of a classification; `extra` holds what fits nowhere else, such as a vocabulary.

    >>> from lemmata.data import load
    >>> digits = load("digits")
    >>> digits.train, digits.test, digits.classes[:3]
    (Examples(x=(1438, 8, 8), y=(1438,)), Examples(x=(359, 8, 8), y=(359,)), ('0', '1', '2'))
    """

    name: str
    parts: Mapping[str, Examples]
    classes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def train(self) -> Examples:
        """What may be learnt from."""
        return self._part_named("train")

    @property
    def validation(self) -> Examples:
        """What choices may be made by."""
        return self._part_named("validation")

    @property
    def test(self) -> Examples:
        """What is kept for the final number."""
        return self._part_named("test")

    @property
    def everything(self) -> Examples:
        """All parts together, in the order train, validation, test."""
        order = sorted(self.parts, key=lambda part: ORDER.index(part) if part in ORDER else len(ORDER))
        shapes = [{name: column.shape[1:] for name, column in part.columns.items()} for part in self.parts.values()]
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError(f"the parts of {self.name} differ in shape: take {', '.join(order)} one by one")
        names = shapes[0]
        return Examples(**{name: torch.cat([self.parts[part].columns[name] for part in order]) for name in names})

    def to(self, *place: Any, **options: Any) -> "Dataset":
        """The same parts on a device or in a dtype."""
        return replace(self, parts={name: part.to(*place, **options) for name, part in self.parts.items()})

    def _part_named(self, name: str) -> Examples:
        if name not in self.parts:
            raise AttributeError(f"{self.name} has no {name} part, only {', '.join(self.parts)}")
        return self.parts[name]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={part!r}" for name, part in self.parts.items())
        return f"{type(self).__name__}({self.name!r}, {parts})"
