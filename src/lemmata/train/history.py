"""What a training run measured on its way, by step and by epoch, as tables of plain numbers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lemmata.train.watch import Watcher

__all__ = ["History"]


class History(Watcher):
    r"""The numbers of a run: `epochs` and `steps` are lists of dicts, so `pandas.DataFrame(run.history.epochs)` works.

    A row of `epochs` has the means over its steps (loss, lr, metrics) and, under names that begin with `validation_`
    or `test_`, what was evaluated at its end. A row of `steps` has the means since the row before. `history["loss"]`
    is a column of `epochs`; print the history to see it as a table.

    >>> history = History("validation")
    >>> history.epoch_ended(4, 0, {"loss": 0.5, "lr": 0.1}); history.evaluated(4, 1, {"loss": 0.75})
    >>> print(history)
    epoch  step  loss   lr  validation_loss
        1     4   0.5  0.1             0.75
    >>> history["validation_loss"]
    [0.75]
    """

    def __init__(self, evaluated_on: str = "test"):
        self.steps: list[dict[str, Any]] = []
        self.epochs: list[dict[str, Any]] = []
        self.prefix = evaluated_on

    def read(self, log: Path, step: int) -> None:
        """Take over what the log of a run says of the steps until one; lines that a crash has cut are left out."""
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else ():
            try:
                event = json.loads(line)
                place = event.pop("event"), event.pop("step"), event.pop("epoch")
                numbers = {str(name): float(value) for name, value in event.items()}
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue
            if type(place[1]) is int and type(place[2]) is int and 0 < place[1] <= step:
                self._note_event(*place, numbers)

    def _note_event(self, event: str, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        told = {"step": self.stepped, "epoch": self.epoch_ended, "evaluation": self.evaluated}.get(event)
        if told:
            told(step, epoch, numbers)

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self.steps.append({"step": step, "epoch": epoch + 1, **numbers})

    def epoch_ended(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        row = self._epoch_row(epoch + 1)
        row.clear()  # an epoch that was cut short, and then gone on with, counts as a whole
        row.update({"epoch": epoch + 1, "step": step, **numbers})

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self._epoch_row(epoch).update({f"{self.prefix}_{name}": value for name, value in scores.items()})

    def _epoch_row(self, epoch: int) -> dict[str, Any]:
        if not self.epochs or self.epochs[-1]["epoch"] != epoch:
            self.epochs.append({"epoch": epoch})
        return self.epochs[-1]

    @property
    def names(self) -> list[str]:
        """The columns of `epochs`."""
        return list(dict.fromkeys(name for row in self.epochs for name in row))

    def __getitem__(self, name: str) -> list[Any]:
        """One column of `epochs`; None where an epoch has no such number."""
        if name not in self.names:
            raise KeyError(f"no column {name!r} among {', '.join(self.names)}")
        return [row.get(name) for row in self.epochs]

    def __len__(self) -> int:
        return len(self.epochs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.epochs)

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Both tables, for `json.dumps`."""
        return {"epochs": self.epochs, "steps": self.steps}

    def __str__(self) -> str:
        lines = [self.names, *([_table_cell(row.get(name)) for name in self.names] for row in self.epochs)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines)

    def __repr__(self) -> str:
        return f"History({len(self.epochs)} epochs of {', '.join(self.names) or 'nothing yet'})"


def _table_cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
