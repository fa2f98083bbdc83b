"""`lemmata predict`: what a trained system says of examples, its own test examples or those in a file."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.words import UserError, count

if TYPE_CHECKING:  # help must not import torch
    from lemmata.data.examples import Examples
    from lemmata.lab.trained_run import Trained

SHOWN = 10  # rows of the table on the screen
ROWS = 1024  # examples given to the system at once


@dataclass(frozen=True)
class Arguments:
    """Let a trained system predict: its test examples, another data set, or a file of yours."""

    run: Annotated[Path, tyro.conf.Positional]
    """The folder of a run, such as runs/mlp-fashion-1."""
    input: Path | None = None
    """A file of examples: .npy, .npz with x (and y), or .csv with a row for each and perhaps a column named y. A run
    that learnt from a file or folder of yours takes one like it."""
    data: str = ""
    """Another data set than the one it was trained on."""
    part: str = "test"
    """Which part of the data set."""
    out: Path | None = None
    """Write all predictions to this .csv or .json file."""
    json: bool = False
    """Print the predictions as JSON."""


def run(arguments: Arguments) -> int:
    from lemmata.lab.recipe_choice import FAILURES, one_sentence
    from lemmata.lab.trained_run import restore

    if arguments.out and arguments.out.suffix not in (".csv", ".json"):
        raise UserError(f"--out must end in .csv or .json, got {arguments.out}")
    trained = restore(arguments.run)
    if trained.experiment.predict is None:
        raise UserError(f"{trained.name} predicts nothing: try lemmata sample {arguments.run}")
    examples, source = _read_examples(arguments, trained)
    try:
        predicted = _predict_all(trained, trained.ready(examples))
    except FAILURES as error:
        raise one_sentence(error) from error
    rows = _prediction_rows(trained, examples, predicted)
    accuracy = _prediction_accuracy(examples, predicted)
    facts = {"run": str(arguments.run), "system": trained.name, "source": source, "count": len(rows)}
    if "truth" in rows[0] and accuracy is None:  # of numbers, in their own unit
        target = next(name for name in predicted)
        facts["mae"] = sum(abs(row[target] - row["truth"]) for row in rows) / len(rows)
    whole = facts | {"accuracy": accuracy, "predictions": rows}
    if arguments.out:
        from lemmata.files import write_whole

        write_whole(arguments.out, (_csv_text(rows) if arguments.out.suffix == ".csv" else _json_text(whole)).encode())
    if arguments.json:
        print_json(whole)
    else:
        _print_predictions(arguments, whole)
    return 0


def _read_examples(arguments: Arguments, trained: "Trained") -> "tuple[Examples, str]":
    from lemmata.data.examples import Examples
    from lemmata.data.registry import load
    from lemmata.lab.cli.input_file import read_examples

    if arguments.input and arguments.data:
        raise UserError("give --input or --data, not both")
    like = trained.experiment.test
    preparation = trained.experiment.preparation
    try:
        if arguments.input:
            if preparation:
                return _read_existing(arguments.input, preparation.read), str(arguments.input)
            return read_examples(arguments.input, like), str(arguments.input)
        name = arguments.data or str(trained.record.get("data", ""))
        if not name:
            raise UserError("this run was made by fit, which keeps no examples: give --input FILE or --data NAME")
        if preparation:
            return _own_examples(arguments, trained, name), f"{name}, {arguments.part}"
        found = load(name)
    except ValueError as error:
        raise UserError(str(error)) from None
    if arguments.part not in found.parts:
        raise UserError(f"{name} has no part {arguments.part!r}: use --part {' or '.join(found.parts)}")
    examples = found.parts[arguments.part]
    own = {"train": trained.experiment.train, "test": like}
    if not arguments.data and arguments.part in own and not _is_alike(examples, like):
        examples = own[arguments.part]  # the recipe made the set of another size, or made something else of it
    if not _is_alike(examples, like):
        size = like.x[0].numel()
        raise UserError(f"examples of {name} do not fit: this run learnt from {count(size, 'number')} an example")
    if found.classes != trained.experiment.classes:  # its targets mean something else
        examples = Examples(x=examples.x)
    return examples, f"{name}, {arguments.part}"


def _read_existing(path: Path, read: "Callable[[Path], Examples]") -> "Examples":
    if not path.exists():
        raise UserError(f"there is no file or folder {path}")
    return read(path)


def _own_examples(arguments: Arguments, trained: "Trained", name: str) -> "Examples":
    """A part of the user's file that the run learnt from, if it is still as it was."""
    if arguments.data:
        assert trained.experiment.preparation is not None
        return _read_existing(Path(name), trained.experiment.preparation.read)
    parts = trained.parts()
    if arguments.part not in parts:
        raise UserError(f"{name} has no part {arguments.part!r}: use --part {' or '.join(parts)}")
    return parts[arguments.part]


def _is_alike(examples: "Examples", like: "Examples") -> bool:
    return "x" in examples.columns and examples.x[0].numel() == like.x[0].numel()


def _predict_all(trained: "Trained", examples: "Examples") -> dict[str, Any]:
    """All predictions, computed in blocks that fit into any memory."""
    import torch

    assert trained.experiment.predict is not None
    with torch.no_grad():
        blocks = [
            trained.experiment.predict(trained.system, examples[first : first + ROWS])
            for first in range(0, len(examples), ROWS)
        ]
    return {name: torch.cat([block[name] for block in blocks]).cpu() for name in blocks[0]}


def _prediction_rows(trained: "Trained", examples: "Examples", predicted: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = trained.experiment.classes
    columns: dict[str, list[Any]] = {"example": list(range(len(examples)))}
    for name, values in predicted.items():
        columns[name] = [_class_label(names, v) if name == "class" else v for v in values.tolist()]
    if "class" in predicted and "y" in examples.columns:
        columns["truth"] = [_class_label(names, value) for value in examples.y.tolist()]
    elif trained.experiment.preparation and "y" in examples.columns:
        columns["truth"] = trained.experiment.preparation.value(examples.y).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _class_label(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "none"


def _prediction_accuracy(examples: "Examples", predicted: Mapping[str, Any]) -> float | None:
    if "class" not in predicted or "y" not in examples.columns:
        return None
    return (predicted["class"] == examples.y.cpu()).double().mean().item()


def _print_predictions(arguments: Arguments, whole: dict[str, Any]) -> None:
    screen, rows = console(), whole["predictions"]
    if not arguments.out:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in rows[0]:
            table.add_column(name, justify="right" if isinstance(rows[0][name], int | float) else "left")
        for row in rows[:SHOWN]:
            wrong = "class" in row and row.get("truth", row["class"]) != row["class"]
            table.add_row(*(_csv_cell(value) for value in row.values()), style="yellow" if wrong else "")
        screen.print(table)
        if len(rows) > SHOWN:
            screen.print(f"[dim]... and {len(rows) - SHOWN:,} more; --out FILE.csv writes them all[/]")
    else:
        screen.print(f"{count(len(rows), 'prediction')} written to {arguments.out}", soft_wrap=True)
    if whole["accuracy"] is not None:
        share = f"{100 * whole['accuracy']:.1f} %"
        screen.print(f"[bold]accuracy {share}[/]  on {count(len(rows), 'example')} ({whole['source']})", soft_wrap=True)
    elif "mae" in whole:
        told = f"[bold]mean absolute error {whole['mae']:.4g}[/]"
        screen.print(f"{told}  on {count(len(rows), 'example')} ({whole['source']})", soft_wrap=True)


def _csv_cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _csv_text(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json_text(whole: dict[str, Any]) -> str:
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
