"""`lemmata audit`: what theory says about a network of one's own, or about a run of `lemmata train`."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.words import UserError

if TYPE_CHECKING:  # help must not import torch
    from collections.abc import Callable

    from lemmata.audit import AuditReport

START = 120.0  # seconds for a process to start and import torch, on a busy machine
READING = 60.0  # seconds, or the budget where that is more, in which a user's files are imported and data are read
GRACE = 5.0  # seconds beyond 1.2 of the budget before a process that does not answer is ended


@dataclass(frozen=True)
class Arguments:
    """Audit a network: what theory says about it, the most important first.

    lemmata audit FILE.py:NAME --data D. NAME is a torch module, or a class or function that gives one when it is called
    without arguments. In Python: from lemmata.audit import audit.
    """

    model: Annotated[str, tyro.conf.Positional] = ""
    """FILE.py:NAME, or the folder of a run of lemmata train."""
    data: str = ""
    """What it learns from: a data set of lemmata (digits), arrays as the model takes them in an .npz file (x_train,
    y_train, x_test, y_test, or x and y), a table (.csv) prepared as lemmata train does, or FILE.py:NAME with a
    DataLoader, a Dataset, tensors (x, y), or a pair of them for training and test."""
    test: str = ""
    """What it is tested on, if --data does not bring it."""
    target: str = ""
    """Column of a table to be predicted; by default the last."""
    loss: str = ""
    """cross_entropy, nll, bce (of logits), mse, l1, huber, or FILE.py:NAME, a function of (outputs, targets)."""
    optimizer: str | None = None
    """sgd, momentum, nesterov, adam, adamw, rmsprop or adagrad."""
    lr: float | None = None
    """Learning rate that it is trained with."""
    momentum: float | None = None
    """Momentum that it is trained with."""
    batch_size: int | None = None
    """Examples per update."""
    forward: str = ""
    """FILE.py:NAME, a function of (model, batch) that returns the outputs, for a model with inputs of its own kind."""
    weights: Path | None = None
    """A .safetensors file with the model's state_dict."""
    device: str = ""
    """Where to work: cpu, cuda; by default where the model is."""
    budget: float = 60.0
    """Seconds that it may take."""
    probes: tuple[str, ...] = ()
    """Ask only these probes, by the names that the report gives."""
    out: Path | None = None
    """Where to write the report: .html, with figures, or .json; by default into the cache."""
    json: bool = False
    """Print the report as JSON."""
    demo: bool = False
    """Audit a shipped network with faults."""


def run(arguments: Arguments) -> int:
    if arguments.out and arguments.out.suffix not in (".html", ".json"):
        raise UserError(f"--out must end in .html or .json, got {arguments.out}")
    if not arguments.model and not arguments.demo:
        raise UserError("which model? lemmata audit FILE.py:NAME --data D, the folder of a run, or --demo")
    if arguments.model and arguments.demo:
        raise UserError("--demo brings its own model: leave one of them out")
    from lemmata.lab.cli.findings import tell
    from lemmata.lab.site.audit_page import write_report

    try:
        report = _audit_in_child(arguments)
    except KeyboardInterrupt:
        print("lemmata: stopped; no report was written", file=sys.stderr)
        return 130
    place = write_report(report, arguments.out)
    if arguments.json:
        print_json(report.to_json())
    else:
        tell(console(), report, place)
    return 1 if report.alarms else 0


def _audit_in_child(arguments: Arguments) -> "AuditReport":
    """The report of a process of its own: what a user's code does there is seen here, and ended with its time."""
    from lemmata.workers import Lost, Worker

    with _progress_line(arguments) as watch, Worker(["-m", "lemmata.lab.cli.audit_child"], {}) as worker:
        audit = _Audit(arguments, watch)
        try:
            worker.wait(START)  # it is ready
            worker.give({"arguments": _plain_arguments(arguments)})
            answer = worker.wait(audit.limit, audit.heard)
        except Lost as lost:
            return audit.cut_short(str(lost), worker.killed)
        finally:
            if printed := worker.said.strip():  # by the user's code: it must not stand among the JSON
                print(printed, file=sys.stderr)
    if "error" in answer:
        raise UserError(answer["error"])
    if "ended" in answer:
        return audit.cut_short(answer["ended"], late=False)
    return audit.whole(answer["report"])


class _Audit:
    """What was heard of an audit so far."""

    def __init__(self, arguments: Arguments, watch: "Callable[[str], None]"):
        self.arguments, self.watch = arguments, watch
        self.findings: list[dict[str, Any]] = []
        self.title, self.began = "", False
        self.limit = max(READING, arguments.budget)

    def heard(self, message: dict[str, Any]) -> float | None:
        """Take one message; the first gives the audit its own time, from now on."""
        if "finding" in message:
            self.findings.append(message["finding"])
        if "title" in message:
            self.title = message["title"]
            self.watch(self.title)
        self.began |= "began" in message
        return 1.2 * self.arguments.budget + GRACE if "began" in message else None

    def whole(self, report: dict[str, Any]) -> "AuditReport":
        """The report with its findings."""
        from lemmata.audit.report import AuditReport

        return AuditReport.from_json(report | {"findings": self.findings})

    def cut_short(self, why: str, late: bool) -> "AuditReport":
        """What was found before the process ended, or was ended for being late, and that it did."""
        model = self.arguments.model or "the demo"
        if late and not self.began:
            raise UserError(f"{model} and its data were not read within {self.limit:.0f} s: give a larger --budget")
        if late and not self.findings:
            raise UserError(f"nothing could be measured in {self.arguments.budget:g} s: give a larger --budget")
        if not self.title:
            raise UserError(f"the code of {model} ended the process before anything was measured ({why})")
        from lemmata.audit.finding import alarm, skipped

        if late:
            told = f"the budget was over while the audit asked: {self.title.lower()}; what comes after it was not asked"
            last = skipped("the rest", f"{told}: give a larger --budget")
        else:
            told = f"the model's code ended the process while the audit asked: {self.title.lower()} ({why})"
            advice = "let forward neither call sys.exit or os._exit nor crash; what comes after was not asked"
            last = alarm("ended process", told, advice=advice, weight=1e9)
        report = {"subject": self.arguments.model, "facts": {}, "seconds": self.arguments.budget}
        self.findings.append(last.to_json())
        return self.whole(report | {"budget": self.arguments.budget})


def _plain_arguments(arguments: Arguments) -> dict[str, Any]:
    """The arguments as JSON has them."""
    words = {name: str(value) if isinstance(value, Path) else value for name, value in vars(arguments).items()}
    return words | {"out": None}


@contextlib.contextmanager
def _progress_line(arguments: Arguments) -> "Iterator[Callable[[str], None]]":
    """One line at the bottom of a terminal that says what is asked now, and how many questions are left."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda title: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(24), TimeElapsedColumn(), TextColumn("{task.fields[title]}"))
    with Progress(*columns, console=screen, transient=True, refresh_per_second=4) as progress:
        task = progress.add_task("", total=None, title="reading model and data")

        def watch(title: str) -> None:
            if progress.tasks[task].total is None:  # the first question: by now everything is imported
                from lemmata.audit.probe import all_probes

                progress.update(task, total=len(arguments.probes or all_probes()), completed=-1)
            progress.update(task, advance=1, title=title)

        yield watch
