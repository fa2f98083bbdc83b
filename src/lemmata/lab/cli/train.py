"""`lemmata train`: what can be trained; and one run, from the words that are typed to the folder it leaves."""

import dataclasses
import functools
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from lemmata import catalog as catalogs
from lemmata.catalog import Catalog
from lemmata.lab.cli.arguments import parse as parse_words
from lemmata.lab.cli.several_processes import how_to_resume, run_processes
from lemmata.lab.cli.terminal import console, print_json
from lemmata.lab.recipe_choice import (
    FAILURES,
    choose,
    data_of,
    defaults,
    is_path,
    one_sentence,
    record_of,
    takes_files,
    with_depth,
)
from lemmata.lab.words import UserError, count, seconds
from lemmata.train.recipe import Recipe
from lemmata.workers import end_with_parent

if TYPE_CHECKING:  # listing and help must not import torch
    from lemmata.lab.cli.live import Live
    from lemmata.train.run import Run

RUNS = Path("runs")


@dataclass(frozen=True)
class Listing:
    """Train a system, or list what can be trained: lemmata train SYSTEM [--data D] [options].

    The options depend on system and data: lemmata train SYSTEM [--data D] --help lists them with their defaults.
    """

    json: bool = False
    """Print the list as JSON."""


@dataclass(frozen=True)
class Arguments:
    """What the options of all systems and data sets share."""

    out: str = ""
    """The run folder; by default runs/SYSTEM-DATA-1, or the next number that is free."""
    resume: bool = False
    """Go on with the run in --out, or else with the newest run of this system on these data."""
    compare: str = ""
    """Train without tricks and then with each of these, as dropout,batchnorm,dropout+batchnorm; draw them together."""
    procs: int = 1
    """Processes that share each batch."""
    tensorboard: bool = False
    """Write for TensorBoard too."""
    quiet: bool = False
    """Print only the final result."""
    json: bool = False
    """Print the result as JSON."""


def parse_own(words: list[str]) -> Any:
    """A listing, or arguments whose last two fields are the recipe's config and options, as on the command line."""
    if not words or words[0].startswith("-"):
        return parse_words(Listing, "train", words)
    if "torch" not in sys.modules:
        # Threads that spin while they wait make a run on a busy machine several times slower; must be set before torch.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    catalog = catalogs.load()
    words = [re.sub("^--optim(?==|$)", "--optimizer", word) for word in words]  # which is typed often
    system, *rest = with_depth(catalog, words)
    resumed = "--resume" in rest and not _option_value(rest, "--compare")  # a comparison is no run: it says so
    folder = _to_resume(catalog, system, rest) if resumed else None
    record = _run_record(folder) if folder else {}
    entry, data = choose(catalog, system, _option_value(rest, "--data") or str(record.get("data", "")))
    if record and (record.get("system"), record.get("data")) != (system, data):
        raise UserError(f"{folder} holds a run of {record.get('system')} on {record.get('data')}: resume that one")
    config, options = defaults(entry, record)
    names = data_of(catalog, system)
    own = ", or a .csv or .npz file or a folder of images of yours" if takes_files(catalog, system) else ""
    fields = [
        ("data", Annotated[str, tyro.conf.arg(help=f"What it learns from: {', '.join(names)}{own}.")], data),
        ("config", _option_group(type(config), system, "Configuration of the system."), config),
        ("options", _option_group(type(options), "training", "How it is trained."), options),
    ]
    known = {"__doc__": _help_beginning(system, data, names, bool(own)), "system": system, "folder": folder}
    known |= {"entry": entry, "words": [system, *rest]}
    kind = dataclasses.make_dataclass("Arguments", fields, bases=(Arguments,), namespace=known, frozen=True)
    return parse_words(kind, f"train {system}", rest)


def _help_beginning(system: str, data: str, names: list[str], own: bool) -> str:
    """What the help says first: which data set its options belong to, and where those of the others are."""
    text = f"Train {system} on {data} and keep everything in a run folder."
    if others := [*(name for name in names if name != data), *(["FILE"] if own and not is_path(data) else [])]:
        text += f"\n\nOptions depend on the data: lemmata train {system} --data {'|'.join(others)} --help"
    return text


def _option_group(kind: type, name: str, help: str) -> Any:
    return Annotated[kind, tyro.conf.OmitArgPrefixes, tyro.conf.arg(name=name, help=help)]


def _option_value(words: list[str], option: str) -> str:
    """What follows an option, before tyro has seen the words: it decides which options there are."""
    for word, following in pairwise([*words, ""]):
        if word == option:
            return following
        if word.startswith(option + "="):
            return word.split("=", 1)[1]
    return ""


def _to_resume(catalog: Catalog, system: str, words: list[str]) -> Path:
    if out := _option_value(words, "--out"):
        return Path(out)
    _, data = choose(catalog, system, _option_value(words, "--data"))
    from lemmata.train.folder import numbered_folders

    folders = numbered_folders(RUNS, _run_stem(system, data))
    numbers = [number for number, folder in folders.items() if (folder / "run.json").exists()]
    if not numbers:
        raise UserError(f"there is no run of {system} on {data} in {RUNS}/ to resume: leave out --resume or give --out")
    return folders[max(numbers)]


def _run_stem(system: str, data: str) -> str:
    """runs/mlp-moons-1, and for a file of one's own runs/mlp-houses-1."""
    name = re.sub(r"[^\w.-]+", "_", Path(data).resolve().stem) if is_path(data) else data
    return f"{system}-{name or 'data'}"


def _run_record(folder: Path) -> dict[str, Any]:
    from lemmata.train.folder import read_record

    try:
        return read_record(folder)
    except ValueError as error:
        raise UserError(str(error)) from None


def run(arguments: Any) -> int:
    if isinstance(arguments, Listing):
        return _list_recipes(arguments)
    if not 1 <= arguments.procs <= 1024:
        raise UserError(f"--procs must be from 1 to 1024, got {arguments.procs}")
    if not arguments.compare and any(word.partition("=")[0] == "--compare" for word in arguments.words):
        raise UserError("--compare needs tricks, as in --compare dropout,batchnorm+weight_decay, got none")
    if arguments.resume and not arguments.compare:
        return _train_system(arguments, arguments.folder)
    from lemmata.lab.cli.compare import run_comparison
    from lemmata.train.folder import free_folder

    made = not arguments.out
    stem = _run_stem(arguments.system, arguments.data) + ("-compared" if arguments.compare else "")
    folder = free_folder(RUNS, stem) if made else Path(arguments.out)
    try:
        return (run_comparison if arguments.compare else _train_system)(arguments, folder)
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()  # only while it is empty: nothing was trained


def _list_recipes(arguments: Listing) -> int:
    catalog = catalogs.load()
    if arguments.json:
        print_json([{"system": e.system, "data": e.data.split(), "metric": e.metric} for e in catalog.recipes])
        return 0
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("system", "data", "measured by", "what it is"):
        table.add_column(heading, no_wrap=heading == "system")
    for system in dict.fromkeys(entry.system for entry in catalog.recipes):
        metrics = dict.fromkeys(entry.metric for entry in catalog.recipes if entry.system == system)
        title = catalog.systems[system].title if system in catalog.systems else ""
        names = [*data_of(catalog, system), *(["FILE"] if takes_files(catalog, system) else [])]
        table.add_row(system, " ".join(names), " ".join(metrics), f"[dim]{title}[/]")
    screen = console()
    screen.print(table)
    screen.print("\n[dim]lemmata train SYSTEM --data D trains; with --help it lists the options for these data[/]")
    screen.print("[dim]FILE is a table (.csv), arrays x and y (.npz) or a folder of images of yours[/]")
    return 0


# --- Training ---


def _train_system(arguments: Any, folder: Path) -> int:
    if arguments.procs > 1 and "RANK" not in os.environ:
        return run_processes(arguments.words, arguments.procs, folder)
    from lemmata.lab.cli.live import Live
    from lemmata.train.run import Diverged

    if "RANK" in os.environ:
        end_with_parent()  # the launcher: nobody else would wait for this process
    first = int(os.environ.get("RANK", "0")) == 0  # of several processes, one speaks
    screen = console(stderr=arguments.json)
    quiet = arguments.quiet or not first or (arguments.json and not screen.is_terminal)
    live = Live(screen, arguments.entry.metric, quiet)
    try:
        done = _run_recipe(arguments, folder, live, first)
    except (KeyboardInterrupt, SystemExit) as stop:
        live.close()
        if first:
            with suppress(OSError):  # the terminal may be gone
                print(f"lemmata: {how_to_resume(arguments.system, folder)}", file=sys.stderr)
        return 130 if isinstance(stop, KeyboardInterrupt) else int(stop.code or 0)
    except Diverged as error:
        live.close()
        print(f"lemmata: {error}", file=sys.stderr)
        return 1
    except FAILURES as error:
        raise one_sentence(error) from error
    finally:
        live.close()
    if first:
        _report_run(arguments, done, live)
    return 0


def _run_recipe(arguments: Any, folder: Path, live: "Live", first: bool) -> "Run":
    from lemmata.lab.cli.live import Drawn
    from lemmata.train.loop import run_experiment
    from lemmata.train.watch import TensorBoard

    entry = arguments.entry
    experiment = Recipe.at(entry)(arguments.data, arguments.config, arguments.options)
    if arguments.resume and _run_record(folder).get("notes", {}).get("sha256") != experiment.notes.get("sha256"):
        raise UserError(f"{arguments.data} has changed since this run began: start a new one")
    live.metric = experiment.metric
    record = record_of(entry, arguments.data, arguments.config, experiment)
    watchers = [live, Drawn(folder / "pictures")]
    watchers += [TensorBoard(folder / "tensorboard")] if arguments.tensorboard and first else []
    examples = f"{count(len(experiment.train), 'example')}, {len(experiment.test):,} for the test"
    live.uses = [use for use in ("predict", "sample") if getattr(experiment, use)]
    if experiment.write:
        live.write = functools.partial(experiment.write, experiment.system)
    live.headline = f"{arguments.system} on {arguments.data} ({examples}) in {folder}"
    return run_experiment(experiment, out=folder, resume=arguments.resume, watchers=watchers, record=record)


def _report_run(arguments: Any, done: "Run", live: "Live") -> None:
    from lemmata.lab.cli.live import curve, draw_figures
    from lemmata.lab.figures.terminal import draw
    from lemmata.lab.words import is_fraction, score

    assert done.folder
    words = ("scores", "best", "steps", "epochs", "seconds", "stopped")
    if arguments.json:
        facts = {"system": arguments.system, "data": arguments.data, "folder": str(done.folder)}
        print_json(facts | {word: getattr(done, word) for word in words})
        return
    screen, figure = console(), curve(done.folder / "log.jsonl", live.metric)
    if figure and screen.is_terminal and not arguments.quiet:
        screen.print("", draw(figure, 64), "", sep="\n")
    scores = sorted(done.scores.items(), key=lambda pair: pair[0] != live.metric)  # the one that counts comes first
    how = {"converged": ", nothing left to learn", "patience": ", no better score for a while"}.get(done.stopped, "")
    length = f"{count(done.epochs, 'epoch')} in {seconds(done.seconds)}{how}"
    screen.print(f"[bold]{'  '.join(score(*pair) for pair in scores)}[/]  on the test examples, after {length}")
    baselines = _run_record(done.folder).get("notes", {}).get("baselines")
    if isinstance(baselines, dict):
        told = "; ".join(score(name, value, share=is_fraction(live.metric)) for name, value in baselines.items())
        screen.print(f"[dim]for comparison: {told}[/]", soft_wrap=True)
    last = max((done.folder / "pictures").glob("step-*.svg"), default=None)
    more = (("picture", path) for path in draw_figures(done.folder))
    sounds = (("sound", path) for path in sorted(done.folder.glob("*.wav")))
    lines = [
        ("run", done.folder),
        ("picture", last),
        *more,
        *sounds,
        *(("next", f"lemmata {use} {done.folder}") for use in live.uses),
    ]
    for name, what in lines:
        if what:
            screen.print(f"[dim]{name:7}[/]  {what}", soft_wrap=True)
