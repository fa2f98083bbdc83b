"""One bar on a terminal while `fit` is at work, and nothing anywhere else."""

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lemmata.train.watch import Watcher

if TYPE_CHECKING:
    from lemmata.train.run import Run

__all__ = []  # for fit

SECONDS_BETWEEN_DRAWINGS = 0.1  # more often than anybody can read would take time from the training


class Progress(Watcher):
    """Shows epoch, loss, the latest scores and the time that is left."""

    def __init__(self) -> None:
        self.drawn = -1e9
        self.told: dict[str, float] = {}

    def started(self, facts: Mapping[str, Any]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("epoch {task.fields[epoch]}"), BarColumn(30), TextColumn("{task.description}"))
        self.bar = Bar(*columns, TimeRemainingColumn(compact=True), console=Console(stderr=True), auto_refresh=False)
        self.epochs = facts["epochs"]
        self.task = self.bar.add_task("", total=facts["steps"], completed=facts["step"], epoch=f"1/{self.epochs}")
        self.bar.start()
        for message in facts["messages"]:
            self.bar.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self.told |= {name: value for name, value in numbers.items() if name != "lr"}
        if time.monotonic() - self.drawn > SECONDS_BETWEEN_DRAWINGS:
            self._draw_bar(step, epoch + 1)

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self.told |= {f"held-out {name}": value for name, value in scores.items()}
        self._draw_bar(step, epoch)

    def finished(self, run: "Run") -> None:
        self._draw_bar(run.steps, run.epochs)

    def _draw_bar(self, step: int, epoch: int) -> None:
        self.drawn = time.monotonic()
        line = "  ".join(f"{name} {value:.3g}" for name, value in self.told.items())
        self.bar.update(self.task, completed=step, description=line, epoch=f"{epoch}/{self.epochs}")
        self.bar.refresh()

    def closed(self) -> None:
        if bar := getattr(self, "bar", None):
            bar.stop()


def wanted(progress: bool | None) -> bool:
    """Whether to show a bar: as told, or else on a terminal."""
    return sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
