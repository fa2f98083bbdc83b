"""`lemmata attack`: how many answers of a classifier withstand small changes of the images, and the worst of them."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.words import UserError, count

if TYPE_CHECKING:  # help must not import torch
    from torch import Tensor, nn

    from lemmata.robustness import RobustAccuracy

PARTS = (0.25, 0.5, 1.0)  # of eps: the radii at which the accuracy is told


@dataclass(frozen=True)
class Arguments:
    """Attack a classifier: its accuracy against eps, under a cascade of attacks, and its worst examples as a picture.

    lemmata attack RUN|FILE.py:NAME --data D --eps 0.1 [--norm 2]. NAME is a torch module that gives logits, or a class
    or function that gives one when it is called without arguments. In Python: from lemmata.robustness import evaluate.
    """

    model: Annotated[str, tyro.conf.Positional]
    """FILE.py:NAME, or the folder of a run of lemmata train."""
    eps: float
    """Radius of the perturbations, in the units of the images."""
    data: str = ""
    """Images and their classes: a data set of lemmata (digits), an .npz file, a folder of images, or FILE.py:NAME. A
    run has its own test images."""
    norm: Literal["1", "2", "inf"] = "inf"
    """Norm in which the perturbations are small."""
    count: int = 200
    """Images that are attacked, the first of the test part."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Least and largest value of a pixel."""
    levels: int | None = None
    """Values that a pixel can have: 256 keeps examples to what 8 bits can hold."""
    steps: int = 100
    """Steps of each ascent along the gradient."""
    queries: int = 1000
    """Answers that the search without gradients may ask for an image."""
    out: Path = Path("attack.png")
    """Where the picture of the worst examples goes: original, amplified difference, result."""
    weights: Path | None = None
    """A .safetensors file with the model's state_dict."""
    device: str = ""
    """Where to work: cpu, cuda; by default where the model is."""
    json: bool = False
    """Print what was found as JSON."""


def run(arguments: Arguments) -> int:
    if arguments.out.suffix.lower() != ".png":
        raise UserError(f"--out must end in .png, got {arguments.out}")
    if not (math.isfinite(arguments.eps) and arguments.eps > 0):
        raise UserError(f"--eps must be a number above 0, got {arguments.eps:g}")
    if arguments.count < 1:
        raise UserError(f"--count must be at least 1, got {arguments.count}")
    from lemmata.lab.recipe_choice import FAILURES, one_sentence

    model, x, y, names = _read_subject(arguments)
    try:
        found = [_evaluate_radius(arguments, model, x, y, part) for part in PARTS]
    except FAILURES as error:
        raise one_sentence(error) from error
    shown = _draw_worst(arguments, model, found, names)
    if arguments.json:
        print_json(_attack_facts(arguments, found, shown))
    else:
        _print_accuracies(arguments, found, shown)
    return 0


def _read_subject(arguments: Arguments) -> "tuple[nn.Module, Tensor, Tensor, tuple[str, ...]]":
    """The classifier, the images as it takes them, their classes and the names of these."""
    from torch import nn

    from lemmata.lab.cli.audit_input import read_data, read_model

    folder, names = Path(arguments.model), ()
    if folder.is_dir():
        from lemmata.lab.audited_run import as_taken
        from lemmata.lab.trained_run import restore

        if arguments.weights or arguments.device:
            raise UserError(f"{folder} is a run, which has its own weights: leave out --weights and --device")
        trained = restore(folder)
        model, names = trained.system, trained.experiment.classes
        if not isinstance(model, nn.Module):
            raise UserError(f"{trained.name} is no network: attacks ask torch modules only")
        if arguments.data:
            train, test = read_data(arguments.data)
            data: Any = train if test is None else test
        else:
            parts = trained.parts()
            data = parts.get("test", parts["train"])
        with contextlib.suppress(AttributeError):  # what has no columns is as the network takes it
            data = as_taken(trained, trained.ready(data))
    else:
        if not arguments.data:
            raise UserError("--data is missing: a data set such as digits, an .npz file, or FILE.py:NAME")
        model = read_model(arguments.model, arguments.weights, arguments.device).eval()
        train, test = read_data(arguments.data)
        data = train if test is None else test
    x, y = _first_images(data, model, arguments.count, arguments.bounds)
    return model, x, y, names


def _first_images(data: Any, model: "nn.Module", number: int, bounds: tuple[float, float]) -> "tuple[Tensor, Tensor]":
    import torch

    from lemmata.lab.recipe_choice import FAILURES, one_sentence
    from lemmata.robustness.cascade import images_and_classes

    try:
        x, y = images_and_classes(data, model)
    except FAILURES as error:
        raise one_sentence(error) from error
    x, y = x[:number], y[:number]
    if x.dtype is torch.uint8:
        x = bounds[0] + (bounds[1] - bounds[0]) * (x.float() / 255)  # black and white are the ends of the range
    refusal = _model_refusal(model, x[:1])
    if refusal and x.ndim == 3 and not _model_refusal(model, x[:1, None]):
        x, refusal = x[:, None], ""  # a grey image gets its channel
    if refusal:
        raise UserError(f"the model does not take images {tuple(x.shape)}: {refusal}")
    return x, y


def _model_refusal(model: "nn.Module", x: "Tensor") -> str:
    """What the classifier raises when it is asked for these, in one line; nothing where it answers."""
    import torch

    try:
        with torch.no_grad():
            model(x)
    except Exception as error:  # a user's code may raise anything
        return " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return ""


def _evaluate_radius(
    arguments: Arguments, model: "nn.Module", x: "Tensor", y: "Tensor", part: float
) -> "RobustAccuracy":
    from lemmata.robustness import evaluate

    eps = part * arguments.eps
    choices: dict[str, Any] = {"levels": arguments.levels, "steps": arguments.steps, "queries": arguments.queries}
    with _progress_line(f"eps {eps:g}") as watch:
        return evaluate(
            model,
            (x, y),
            eps,
            float(arguments.norm),
            arguments.bounds,
            watch=watch,
            examine=part == PARTS[-1],
            **choices,
        )


@contextlib.contextmanager
def _progress_line(title: str) -> "Iterator[Callable[[str, int, int], None]]":
    """One line at the bottom of a terminal that says which attack is at work."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda attack, done, number: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(24), TimeElapsedColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=screen, transient=True, refresh_per_second=4) as progress:
        task = progress.add_task("", total=None, said=title)
        yield lambda attack, done, number: progress.update(
            task, total=number, completed=done, said=f"{title}: {attack}"
        )


def _draw_worst(arguments: Arguments, model: "nn.Module", found: "list[RobustAccuracy]", names: tuple[str, ...]) -> int:
    """How many examples the picture shows: those that fell at the smallest radius first; none of what is no image."""
    from lemmata.files import write_whole
    from lemmata.lab.cli.attack_sheet import ROWS, contact_sheet, is_image

    if not is_image(found[0].x):
        return 0
    chosen: list[tuple[Tensor, Tensor, int]] = []
    seen: set[int] = set()
    for each in found:
        moved = (each.examples != each.x).flatten(1).any(1)
        for row in moved.nonzero()[:, 0].tolist():
            if row not in seen and len(chosen) < ROWS:
                seen.add(row)
                chosen.append((each.x[row], each.examples[row], int(each.y[row])))
    if chosen:
        write_whole(arguments.out, contact_sheet(model, chosen, names, arguments.bounds))
    return len(chosen)


def _attack_facts(arguments: Arguments, found: "list[RobustAccuracy]", shown: int) -> dict[str, Any]:
    rows = [
        {"eps": each.threat.eps, "accuracy": each.accuracy, "low": each.low, "high": each.high, "left": each.left}
        for each in found
    ]
    facts = {"model": arguments.model, "norm": arguments.norm, "images": len(found[0].x), "clean": found[0].clean}
    return facts | {"accuracy": rows, "flags": list(found[-1].flags), "out": str(arguments.out) if shown else None}


def _print_accuracies(arguments: Arguments, found: "list[RobustAccuracy]", shown: int) -> None:
    from rich.table import Table

    screen, last = console(), found[-1]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("eps", "accuracy", f"{last.confidence:.0%} interval", *(f"after {name}" for name in last.left)):
        table.add_column(title, justify="right")
    table.add_row("0", f"{last.clean:.1%}")
    for each in found:
        interval = f"{each.low:.1%} to {each.high:.1%}"
        left = (f"{value:.1%}" for value in each.left.values())
        table.add_row(f"{each.threat.eps:g}", f"[bold]{each.accuracy:.1%}[/]", interval, *left)
    screen.print(table)
    screen.print(f"[dim]{count(len(last.x), 'image')}, perturbations in the {arguments.norm}-norm[/]")
    for flag in last.flags:
        screen.print(f"[yellow]perhaps sham robustness: {flag}[/]", soft_wrap=True)
    if shown:
        screen.print(f"the {count(shown, 'worst example')}: {arguments.out}", soft_wrap=True)
