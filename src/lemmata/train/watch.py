"""Who looks on while a system trains: the log, TensorBoard, and whatever a user adds."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lemmata.figure import Figure
from lemmata.files import write_whole

if TYPE_CHECKING:
    from lemmata.train.run import Run

__all__ = ["TensorBoard", "Watcher"]


class Watcher:
    """Told what happens in a training run; override what interests you. Only the first of several processes tells."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """Training begins, or goes on, at facts["step"] of facts["steps"]."""

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        """Now and then: means over the steps since the last such call."""

    def epoch_ended(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        """Means over the steps of an epoch, or over those of its beginning where training ends inside it."""

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


class Audience:
    """All watchers of a run. If one fails, such as a screen that is gone, nothing that was learnt is lost: it waits."""

    def __init__(self, watchers: Sequence[Watcher] = ()):
        self.watchers = watchers
        self.failure: Exception | None = None  # the first one, until it is heeded

    def tell(self, event: str, *facts: Any) -> None:
        for watcher in self.watchers:
            try:
                getattr(watcher, event)(*facts)
            except Exception as error:
                self.failure = self.failure or error

    def heed(self) -> None:
        """Raise the failure that was waiting, if there is one: the step is done and saved."""
        failure, self.failure = self.failure, None
        if failure:
            raise failure

    def close(self) -> None:
        self.tell("closed")
        self.heed()


class Log(Watcher):
    """One JSON object a line in log.jsonl, flushed line by line; resuming cuts what came after the checkpoint."""

    def __init__(self, path: Path):
        self.path = path
        self.file: IO[str] | None = None

    def started(self, facts: Mapping[str, Any]) -> None:
        lines = (
            self.path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if facts["step"] else []
        )
        kept = [line for line in lines if 0 <= _step_of(line) <= facts["step"]]
        write_whole(self.path, "".join(kept).encode())
        self.file = self.path.open("a", encoding="utf-8", buffering=1)

    def _write_event(self, event: str, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        if self.file:
            self.file.write(json.dumps({"event": event, "step": step, "epoch": epoch, **numbers}) + "\n")

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self._write_event("step", step, epoch, numbers)

    def epoch_ended(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self._write_event("epoch", step, epoch, numbers)

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self._write_event("evaluation", step, epoch, scores)

    def closed(self) -> None:
        if self.file:
            self.file.close()


class Album(Watcher):
    """Keeps every picture as data in a folder: figures are drawn by whoever shows them."""

    def __init__(self, folder: Path):
        self.folder = folder

    def pictured(self, step: int, epoch: int, figure: Figure) -> None:
        write_whole(self.folder / f"step-{step:08d}.json", json.dumps(figure.to_json()).encode(), lasting=False)


class Keeper(Watcher):
    """Puts files that a trained system makes, such as a sound, into the folder of the run when it is over."""

    def __init__(self, files: Callable[[Any], Mapping[str, bytes]]):
        self.files = files

    def finished(self, run: "Run") -> None:
        if run.folder is not None:
            for name, content in self.files(run.system).items():
                write_whole(run.folder / name, content)


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


def _step_of(line: str) -> int:
    """The step a line of the log tells of; -1 if it is none, as a crash may have cut the last one."""
    try:
        step = json.loads(line)["step"]
        return step if type(step) is int else -1
    except (ValueError, LookupError, TypeError, RecursionError):
        return -1
