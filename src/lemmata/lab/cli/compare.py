"""`lemmata train SYSTEM --compare TRICK,TRICK`: the plain system and one run with each trick, in one figure."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from lemmata.files import write_whole
from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.recipe_choice import FAILURES, one_sentence
from lemmata.lab.words import UserError, is_fraction, score, seconds
from lemmata.train.recipe import Recipe

if TYPE_CHECKING:  # listing and help must not import torch
    from lemmata.tricks.comparison import Comparison


def run_comparison(arguments: Any, folder: Path) -> int:
    """Train, write the figure and its numbers into the folder, and say who won."""
    if arguments.resume or arguments.procs > 1 or arguments.tensorboard:
        raise UserError("--compare trains one run after another: leave out --resume, --procs and --tensorboard")
    from lemmata.lab.cli.live import Live
    from lemmata.lab.figures.svg import svg
    from lemmata.train.run import Diverged
    from lemmata.tricks.comparison import compare

    screen = console(stderr=arguments.json)
    quiet = arguments.quiet or (arguments.json and not screen.is_terminal)
    lives: list[Live] = []

    def on_run(name: str, experiment: Any) -> Sequence[Live]:
        for before in lives:
            before.close()
        lives[:] = [Live(screen, experiment.metric, quiet)]
        lives[0].headline = f"{arguments.system} on {arguments.data}, {name}"
        return lives

    names = [name for name in arguments.compare.split(",") if name]
    settings = {"data": arguments.data, "config": arguments.config, "options": arguments.options}
    try:
        found = compare(Recipe.at(arguments.entry), names, on_run=on_run, **settings)
    except Diverged as error:
        raise UserError(f"{lives[0].headline}: {error}") from error
    except FAILURES as error:
        raise one_sentence(error) from error
    finally:
        for live in lives:
            live.close()
    figure = found.figure(f"{arguments.system} on {arguments.data}, plain and with each trick")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "comparison.svg", svg(figure).encode(), lasting=False)
    facts = {"system": arguments.system, "data": arguments.data, "folder": str(folder), **_comparison_facts(found)}
    write_whole(folder / "comparison.json", json.dumps(facts | {"figure": figure.to_json()}).encode(), lasting=False)
    if arguments.json:
        print_json(facts)
    else:
        _report_comparison(found, figure, folder, arguments.quiet)
    return 0


def _comparison_facts(found: "Comparison") -> dict[str, Any]:
    words = ("scores", "steps", "epochs", "seconds", "stopped")
    runs = {name: {word: getattr(run, word) for word in words} for name, run in found.runs.items()}
    return {"metric": found.metric, "noise": found.noise, "tested": found.tested, "runs": runs}


def _report_comparison(found: "Comparison", figure: Any, folder: Path, quiet: bool) -> None:
    from lemmata.lab.figures.terminal import draw

    screen = console()
    if screen.is_terminal and not quiet:
        screen.print("", draw(figure, 72), "", sep="\n")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", found.metric, "less plain", "epochs", "time"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    plain = found.scores["plain"]
    for name, run in found.runs.items():
        value = found.scores[name]
        share = is_fraction(found.metric)
        gap = "" if name == "plain" else f"{100 * (value - plain):+.1f}" if share else f"{value - plain:+.3g}"
        told = score("", value, share=share).strip()
        table.add_row(name, told, gap, str(run.epochs), seconds(run.seconds))
    screen.print(table)
    screen.print(f"[dim]{found.caution}[/]", soft_wrap=True)
    screen.print(f"[dim]figure [/]  {folder / 'comparison.svg'}", soft_wrap=True)
