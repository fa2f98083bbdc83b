"""Who looks on while a system trains: the log, TensorBoard, and whatever a user adds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lemmata.figure import Figure
from lemmata.files import write_whole

if TYPE_CHECKING:
    from lemmata.train.loop import Run

__all__ = ["TensorBoard", "Watcher"]


class Watcher:
    """Told what happens in a training run; override what interests you. Only the first of several processes tells."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """Training begins, or goes on, at facts["step"] of facts["steps"]."""

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        """Now and then: means over the steps since the last such call."""

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        """Scores on examples that are not learnt from."""

    def pictured(self, step: int, epoch: int, figure: Figure) -> None:
        """A picture of what the system can do by now."""

    def saved(self, step: int, path: Path) -> None:
        """A checkpoint is complete."""

    def finished(self, run: "Run") -> None:
        """Training is over, for the reason run.stopped."""

    def closed(self) -> None:
        """The last call, after success, error or interruption alike: let go of files and screens."""


class Log(Watcher):
    """One JSON object a line in log.jsonl, flushed line by line; resuming cuts what came after the checkpoint."""

    def __init__(self, path: Path):
        self.path = path
        self.file: IO[str] | None = None

    def started(self, facts: Mapping[str, Any]) -> None:
        kept = (
            [line for line in self._lines() if json.loads(line).get("step", 0) <= facts["step"]]
            if facts["step"]
            else []
        )
        write_whole(self.path, "".join(kept).encode())
        self.file = self.path.open("a", encoding="utf-8", buffering=1)

    def _lines(self) -> list[str]:
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True) if self.path.exists() else []
        return [line for line in lines if _is_json(line)]  # a crash may have cut the last one

    def _write(self, event: str, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        if self.file:
            self.file.write(json.dumps({"event": event, "step": step, "epoch": epoch, **numbers}) + "\n")

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self._write("step", step, epoch, numbers)

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self._write("evaluation", step, epoch, scores)

    def closed(self) -> None:
        if self.file:
            self.file.close()


class Album(Watcher):
    """Keeps every picture as data in a folder: figures are drawn by whoever shows them."""

    def __init__(self, folder: Path):
        self.folder = folder

    def pictured(self, step: int, epoch: int, figure: Figure) -> None:
        write_whole(self.folder / f"step-{step:08d}.json", json.dumps(figure.to_json()).encode(), lasting=False)


class TensorBoard(Watcher):
    """Writes losses and scores as TensorBoard reads them; needs the package tensorboard."""

    def __init__(self, folder: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ValueError("tensorboard is not installed: pip install tensorboard") from None
        self.writer = SummaryWriter(str(folder))

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(f"train/{name}", value, step)

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        for name, value in scores.items():
            self.writer.add_scalar(f"evaluation/{name}", value, step)

    def closed(self) -> None:
        self.writer.close()


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
