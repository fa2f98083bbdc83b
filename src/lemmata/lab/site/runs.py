"""The runs that were trained from the page: folders below the cache, read without importing torch."""

import contextlib
import json
import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lemmata.figure import Figure, Line, Points
from lemmata.files import cache_folder
from lemmata.lab.cli.live import score
from lemmata.lab.cli.terminal import count, seconds

__all__ = ["Trained", "find_run", "list_runs", "new_run", "pack_checkpoint"]

NAME = re.compile(r"[a-z0-9_]+-[a-z0-9_]+-[0-9]{1,9}")
MOST_POINTS = 300  # of a curve; more than the pixels it is drawn on would only blur it


@dataclass(frozen=True)
class Trained:
    """One run: what its record says, and its result once there is one."""

    name: str
    folder: Path
    record: dict[str, Any]
    result: dict[str, Any] | None

    @property
    def metric(self) -> str:
        return str(self.record.get("metric", "loss"))

    @property
    def told(self) -> str:
        """Its scores on the test examples, the one that counts first; of a run that was stopped, the latest."""
        if self.result is None:
            return _scores(self.log("evaluation")[-1], self.metric) if self.log("evaluation") else ""
        scores = self.result.get("scores")
        return _scores(scores, self.metric) if isinstance(scores, dict) else ""

    @property
    def command(self) -> str:
        return str(self.record.get("command", ""))

    @property
    def began(self) -> str:
        return str(self.record.get("started", "")).replace("T", " ")[:16]

    @property
    def length(self) -> str:
        """How long the whole training was."""
        epochs, took = (self.result or {}).get("epochs"), (self.result or {}).get("seconds")
        told = [count(epochs, "epoch")] if isinstance(epochs, int) else []
        return ", ".join(told + ([seconds(took)] if isinstance(took, float) else []))

    @property
    def weights(self) -> list[Path]:
        """The files of the final weights, else of the newest checkpoints; none if nothing was saved."""
        final, kept = (sorted((self.folder / name).glob("step-*")) for name in ("final", "checkpoints"))
        found = final or kept
        return found if any(path.suffix == ".json" for path in found) else []

    @property
    def can_go_on(self) -> bool:
        return self.result is None and bool(self.weights)

    @property
    def pictures(self) -> list[int]:
        """The steps of which there is a picture."""
        return sorted(int(path.stem[5:]) for path in (self.folder / "pictures").glob("step-*.json"))

    def picture(self, step: int) -> Figure | None:
        """The picture of a step, if there is one that can be read."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return Figure.from_json(json.loads((self.folder / "pictures" / f"step-{step:08d}.json").read_bytes()))
        return None

    def log(self, event: str) -> list[dict[str, Any]]:
        """What the log holds of one kind of event, in order."""
        found = []
        with contextlib.suppress(OSError):
            for line in (self.folder / "log.jsonl").read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # a crash may have cut the last one
                    found.append(json.loads(line))
        return [entry for entry in found if isinstance(entry, dict) and entry.get("event") == event]

    def curves(self) -> list[Figure]:
        """Loss, and the score that counts, as training went on."""
        steps, evaluations = self.log("step"), self.log("evaluation")
        names = dict.fromkeys(["loss", self.metric])
        return [figure for name in names if (figure := _curve(name, steps, evaluations))]


def list_runs(system: str = "") -> list[Trained]:
    """Every run, or those of one system, the newest first."""
    found = [run for name in _names() if (run := _read(name)) and system in ("", run.record.get("system"))]
    return sorted(found, key=lambda run: str(run.record.get("started", "")), reverse=True)


def find_run(name: str) -> Trained | None:
    """The run of this name; only names that the folder lists are looked at."""
    return _read(name) if name in _names() else None


def new_run(system: str, data: str) -> str:
    """A name that no run has, taken at once by making its folder."""
    _root().mkdir(parents=True, exist_ok=True)
    stem = f"{system}-{data}"
    number = max((int(name.rpartition("-")[2]) for name in _names() if name.rpartition("-")[0] == stem), default=0)
    while True:
        number += 1
        with contextlib.suppress(FileExistsError):
            os.mkdir(_root() / f"{stem}-{number}")
            return f"{stem}-{number}"


def pack_checkpoint(run: Trained, file: IO[bytes]) -> None:
    """Write what `lemmata.load` needs as a zip: the record, the result, the weights."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in [run.folder / "run.json", run.folder / "result.json", *run.weights]:
            with contextlib.suppress(FileNotFoundError):  # a training that goes on removes old checkpoints
                archive.write(path, f"{run.name}/{path.relative_to(run.folder).as_posix()}")


def _root() -> Path:
    return cache_folder() / "runs"


def _names() -> list[str]:
    try:
        return [name for name in os.listdir(_root()) if NAME.fullmatch(name)]
    except OSError:
        return []


def _read(name: str) -> Trained | None:
    folder = _root() / name
    record = _object(folder / "run.json")
    if record is None or not all(isinstance(record.get(key), str) for key in ("system", "data")):
        return None
    return Trained(name, folder, record, _object(folder / "result.json"))


def _object(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _scores(found: dict[str, Any], metric: str) -> str:
    names = sorted(found, key=lambda name: name != metric)
    known = [name for name in names if isinstance(found[name], float)]
    at = f" at step {found['step']:,}" if isinstance(found.get("step"), int) else ""
    return ", ".join(score(name, found[name]) for name in known) + at


def _curve(name: str, steps: list[dict[str, Any]], evaluations: list[dict[str, Any]]) -> Figure | None:
    marks: list[Line | Points] = []
    train, test = _thinned(_series(steps, name)), _series(evaluations, name)
    if name == "loss" and train:
        marks.append(Line([x for x, _ in train], [y for _, y in train], "while training"))
    if test:
        x, y, label = [x for x, _ in test], [y for _, y in test], "on test examples"
        marks += [Line(x, y, label), Points(x, y, label)]
    return Figure(f"{name.capitalize()} as training went on", "step", name, marks) if marks else None


def _series(entries: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    numbers = [(entry.get("step"), entry.get(name)) for entry in entries]
    return [(step, value) for step, value in numbers if isinstance(step, int) and isinstance(value, int | float)]


def _thinned(series: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Means of neighbours, so that a curve has no more points than can be seen."""
    size = -(-len(series) // MOST_POINTS) or 1
    groups = [series[k : k + size] for k in range(0, len(series), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]
