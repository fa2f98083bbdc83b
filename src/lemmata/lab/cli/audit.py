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
    from lemmata.lab.recipe import FAILURES, one_sentence
    from lemmata.lab.report.audit_page import write_report

    try:
        # What a user's file prints must not stand among the JSON.
        with contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext():
            report = _audited(arguments)
    except KeyboardInterrupt:
        print("lemmata: stopped; the model is as it was, and no report was written", file=sys.stderr)
        return 130
    except FAILURES as error:
        raise one_sentence(error) from error
    place = write_report(report, arguments.out)
    if arguments.json:
        print_json(report.to_json())
    else:
        tell(console(), report, place)
    return 1 if report.alarms else 0


def _audited(arguments: Arguments) -> "AuditReport":
    words = ("optimizer", "lr", "momentum", "batch_size")
    chosen: dict[str, Any] = {name: getattr(arguments, name) for name in words}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    chosen |= {"budget": arguments.budget, "probes": arguments.probes or None}
    with _watched(arguments) as watch:
        if arguments.demo:
            from lemmata.audit.demo import faulty

            return _of_demo(faulty(), chosen, watch)
        return _of_user(arguments, chosen, watch)


def _of_demo(demo: Any, chosen: dict[str, Any], watch: "Callable[[str], None]") -> "AuditReport":
    from lemmata.audit import audit

    return audit(**{**demo, **chosen}, watch=watch)


def _of_user(arguments: Arguments, chosen: dict[str, Any], watch: "Callable[[str], None]") -> "AuditReport":
    from lemmata.audit import audit
    from lemmata.lab.cli.audit_input import read_data, read_forward, read_loss, read_model

    if arguments.data:
        chosen["data"], test = read_data(arguments.data, arguments.target)
        chosen["test"] = read_data(arguments.test, arguments.target)[0] if arguments.test else test
    elif arguments.test:
        raise UserError("--test needs --data, the examples it is trained on")
    chosen |= {"loss": read_loss(arguments.loss), "forward": read_forward(arguments.forward)}
    folder = Path(arguments.model)
    if folder.is_dir():
        from lemmata.lab.audited_run import audit_run
        from lemmata.lab.trained import restore

        if arguments.weights or arguments.device:
            raise UserError(f"{folder} is a run, which has its own weights: leave out --weights and --device")
        return audit_run(restore(folder), **chosen, watch=watch)
    model = read_model(arguments.model, arguments.weights, arguments.device)
    if not arguments.data:
        raise UserError("--data is missing: a data set such as digits, an .npz or .csv file, or FILE.py:NAME")
    return audit(model, **chosen, watch=watch)


@contextlib.contextmanager
def _watched(arguments: Arguments) -> "Iterator[Callable[[str], None]]":
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
