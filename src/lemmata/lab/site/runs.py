"""The runs that were trained from the page: folders below the cache, read without importing torch."""

import contextlib
import functools
import io
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from lemmata.figure import Figure, Line, Points
from lemmata.files import cache_folder
from lemmata.lab.site.reading import plain_file, read_json, read_lines
from lemmata.lab.words import count, score, seconds

__all__ = ["Trained", "find_run", "list_runs", "new_run", "packed_checkpoint"]

NAME = re.compile(r"[a-z0-9_]+-[a-z0-9_]+-[0-9]{1,9}")
PICTURE = re.compile(r"step-[0-9]{1,15}")
# Bytes that are read of one file. A log is read from its end: of 40,000 steps the curve is whole.
MOST_OF_RECORD, MOST_OF_PICTURE, MOST_OF_LOG, LATEST = 1 << 20, 4 << 20, 4 << 20, 1 << 16
LARGEST = 10**15
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
            latest = _events_of("evaluation", read_lines(self.folder / "log.jsonl", LATEST))
            return _score_text(latest[-1], self.metric) if latest else ""
        scores = self.result.get("scores")
        return _score_text(scores, self.metric) if isinstance(scores, dict) else ""

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
        names = [path.stem for path in (self.folder / "pictures").glob("step-*.json")]
        return sorted(int(name[5:]) for name in names if PICTURE.fullmatch(name))

    def picture(self, step: int) -> Figure | None:
        """The picture of a step, if there is one that can be read."""
        return _read_figure(self.folder / "pictures" / f"step-{step:08d}.json")

    @functools.cached_property
    def log(self) -> list[dict[str, Any]]:
        """What the log holds, in order."""
        return read_lines(self.folder / "log.jsonl", MOST_OF_LOG)

    def curves(self) -> list[Figure]:
        """Loss, and the score that counts, as training went on; then what the trained system left to be seen."""
        steps, evaluations = _events_of("step", self.log), _events_of("evaluation", self.log)
        names = dict.fromkeys(["loss", self.metric])
        left = sorted(self.folder.glob("figure-*.json"))
        found = [*(_run_curve(name, steps, evaluations) for name in names), *map(_read_figure, left)]
        return [figure for figure in found if figure]


def _read_figure(path: Path) -> Figure | None:
    """The figure of a file, if there is one that can be read."""
    found = read_json(path, MOST_OF_PICTURE)
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Figure.from_json(found) if found else None
    return None


def list_runs(system: str = "") -> list[Trained]:
    """Every run, or those of one system, the newest first."""
    found = [run for name in _run_names() if (run := _read_run(name)) and system in ("", run.record.get("system"))]
    return sorted(found, key=lambda run: str(run.record.get("started", "")), reverse=True)


def find_run(name: str) -> Trained | None:
    """The run of this name; only names that the folder lists are looked at."""
    return _read_run(name) if name in _run_names() else None


def new_run(system: str, data: str) -> str:
    """A name that no run has, taken at once by making its folder."""
    _runs_folder().mkdir(parents=True, exist_ok=True)
    _runs_folder().chmod(0o700)  # weights and pictures are the user's own, whatever the umask
    stem = f"{system}-{data}"
    number = max((int(name.rpartition("-")[2]) for name in _run_names() if name.rpartition("-")[0] == stem), default=0)
    while True:
        number += 1
        with contextlib.suppress(FileExistsError):
            os.mkdir(_runs_folder() / f"{stem}-{number}")
            return f"{stem}-{number}"


def packed_checkpoint(run: Trained) -> Iterator[bytes]:
    """What `lemmata.load` needs as a zip, piece by piece: the record, the result, the weights."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for path in [run.folder / "run.json", run.folder / "result.json", *run.weights]:
            with contextlib.ExitStack() as stack:
                try:
                    content, size = stack.enter_context(plain_file(path))
                except OSError:  # a training that goes on removes old checkpoints
                    continue
                if path.parent == run.folder and size > MOST_OF_RECORD:
                    continue
                name = f"{run.name}/{path.relative_to(run.folder).as_posix()}"
                entry = stack.enter_context(archive.open(name, "w", force_zip64=True))
                while piece := content.read(1 << 20):
                    entry.write(piece)
                    yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """Where a zip is written that nobody keeps."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self.pieces.append(bytes(piece))
        return len(piece)

    def taken(self) -> bytes:
        taken, self.pieces = b"".join(self.pieces), []
        return taken


def _runs_folder() -> Path:
    return cache_folder() / "runs"


def _run_names() -> list[str]:
    try:
        return [name for name in os.listdir(_runs_folder()) if NAME.fullmatch(name)]
    except OSError:
        return []


def _read_run(name: str) -> Trained | None:
    folder = _runs_folder() / name
    record = read_json(folder / "run.json", MOST_OF_RECORD)
    if record is None or not all(isinstance(record.get(key), str) for key in ("system", "data")):
        return None
    return Trained(name, folder, record, read_json(folder / "result.json", MOST_OF_RECORD))


def _events_of(event: str, log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in log if entry.get("event") == event]


def _score_text(found: dict[str, Any], metric: str) -> str:
    names = sorted(found, key=lambda name: name != metric)
    known = [name for name in names if isinstance(found[name], float)]
    at = f" at step {found['step']:,}" if isinstance(found.get("step"), int) else ""
    return ", ".join(score(name, found[name]) for name in known) + at


def _run_curve(name: str, steps: list[dict[str, Any]], evaluations: list[dict[str, Any]]) -> Figure | None:
    marks: list[Line | Points] = []
    train, test = _thin_series(_number_series(steps, name)), _number_series(evaluations, name)
    if name == "loss" and train:
        marks.append(Line([x for x, _ in train], [y for _, y in train], "while training"))
    if test:
        x, y, label = [x for x, _ in test], [y for _, y in test], "on test examples"
        marks += [Line(x, y, label), Points(x, y, label)]
    return Figure(f"{name.capitalize()} as training went on", "step", name, marks) if marks else None


def _number_series(entries: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    pairs = [(entry.get("step"), entry.get(name)) for entry in entries]
    return [
        (step, value) for step, value in pairs if isinstance(step, int) and _is_drawable(step) and _is_drawable(value)
    ]


def _is_drawable(value: Any) -> TypeGuard[float]:
    """JSON knows integers of any length; no picture does."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST)


def _thin_series(series: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Means of neighbours, so that a curve has no more points than can be seen."""
    size = -(-len(series) // MOST_POINTS) or 1
    groups = [series[k : k + size] for k in range(0, len(series), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]
