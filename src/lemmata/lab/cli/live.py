"""A training run on the screen while it goes on: one bar on a terminal, plain lines elsewhere, pictures as SVG."""

import contextlib
import json
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lemmata.figure import Figure, Line
from lemmata.files import write_whole
from lemmata.lab.figures.svg import svg
from lemmata.lab.words import score, seconds
from lemmata.train.watch import Watcher

# Drawing more often than anybody can read would take time from the training.
SECONDS_BETWEEN_DRAWINGS = 0.1
SECONDS_BETWEEN_LINES = 30.0
SECONDS_BEFORE_ESTIMATE = 3.0  # the first steps allocate and compile: they say little about the rest
LONG = 60.0  # seconds: whoever waits longer is told beforehand


class Live(Watcher):
    """Shows where a run is and keeps its scores; between `started` and `close` it owns the line at the bottom."""

    def __init__(self, screen: Console, metric: str, quiet: bool = False) -> None:
        self.screen, self.metric, self.quiet = screen, metric, quiet
        self.headline, self.uses = "", []
        self.write: Callable[[], str] | None = None  # what the system writes by now
        self.bar: Progress | None = None
        self.told: dict[str, float] = {}
        self.drawn = self.lined = -1e9
        self.tenth = 0
        self.estimate_due = True

    def started(self, facts: Mapping[str, Any]) -> None:
        self.first, self.total, self.epochs = facts["step"], facts["steps"], facts["epochs"]
        self.began = self.lined = time.monotonic()
        for message in facts["messages"]:
            print(f"lemmata: {message}", file=sys.stderr)
        if not self.quiet:
            place = f"step {self.first:,} of {self.total:,} (epoch {facts['epoch'] + 1:,} of {self.epochs:,})"
            going_on = f"going on at {place}:"
            how = "training" if not self.first else going_on if self.first < self.total else "finished already:"
            self.screen.print(f"{how} {self.headline}", soft_wrap=True)
        if self.screen.is_terminal and not self.quiet:
            columns = (TextColumn("epoch {task.fields[epoch]}"), BarColumn(30), TextColumn("{task.description}"))
            columns += (TimeRemainingColumn(compact=True), TextColumn("[dim]left"))
            self.bar = Progress(*columns, console=self.screen, transient=True, auto_refresh=False)
            self.task = self.bar.add_task("", total=self.total, completed=self.first, epoch=f"0/{self.epochs}")
            self.bar.start()

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self.told |= {"loss": numbers["loss"]} if "loss" in numbers else {}
        now = time.monotonic()
        if self.bar and now - self.drawn > SECONDS_BETWEEN_DRAWINGS:
            self.drawn = now
            rate = f"{(step - self.first) / max(now - self.began, 1e-9):,.0f} steps/s"
            line = "  ".join([*(score(*told) for told in self.told.items()), f"[dim]{rate}[/]"])
            self.bar.update(self.task, completed=step, description=line, epoch=f"{epoch + 1}/{self.epochs}")
            self.bar.refresh()

        if self.estimate_due and now - self.began > SECONDS_BEFORE_ESTIMATE:
            self.estimate_due = False
            left = (now - self.began) * (self.total - step) / max(step - self.first, 1)
            if left > LONG and not self.quiet:
                self.screen.print(
                    f"[dim]about {seconds(left)} to go; Ctrl-C stops, --resume goes on[/]", soft_wrap=True
                )

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self.told |= {self.metric: scores[self.metric]}
        now, tenth = time.monotonic(), 10 * step // self.total
        if self.quiet or not (tenth > self.tenth or now - self.lined > SECONDS_BETWEEN_LINES):
            return
        if not self.screen.is_terminal:
            told = "  ".join(score(*told) for told in self.told.items())
            self.screen.print(f"epoch {epoch}/{self.epochs}  {told}  {seconds(now - self.began)}", soft_wrap=True)
        if self.write:
            text = textwrap.indent(self.write(), "  ")
            self.screen.print(f"\n{text}\n", style="dim", markup=False, highlight=False, soft_wrap=True)
        self.tenth, self.lined = tenth, now

    def close(self) -> None:
        if self.bar:
            with contextlib.suppress(OSError):  # the terminal may be gone
                self.bar.stop()
            self.bar = None


def curve(log: Path, metric: str) -> Figure | None:
    """The score at each evaluation of a run, also of its parts before it was resumed; None if there are few."""
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    points = [(event["epoch"], event[metric]) for event in events if event["event"] == "evaluation" and metric in event]
    if len(points) < 3:
        return None
    epochs, scores = zip(*points, strict=True)
    return Figure(f"{metric} on the way", "epoch", "", [Line(epochs, scores)])


class Drawn(Watcher):
    """Draws every picture as SVG beside its data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pictured(self, step: int, epoch: int, figure: Figure) -> None:
        write_whole(self.folder / f"step-{step:08d}.svg", svg(figure).encode(), lasting=False)


def draw_figures(folder: Path) -> list[Path]:
    """The figures that a trained system left in its run's folder, `figure-NAME.json`, as SVG beside them."""
    drawn = []
    for path in sorted(folder.glob("figure-*.json")):
        figure = Figure.from_json(json.loads(path.read_text(encoding="utf-8")))
        write_whole(path.with_suffix(".svg"), svg(figure).encode(), lasting=False)
        drawn.append(path.with_suffix(".svg"))
    return drawn
