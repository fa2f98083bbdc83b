"""`lemmata bench`: ours and each installed peer in one run: time, memory, ratio to the peer and to the limit."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from lemmata.bench.registry import BenchEntry, entries
from lemmata.bench.results import BenchRow, Target, rows_of, save_results
from lemmata.bench.rounds import Measured, contest
from lemmata.catalog.search import did_you_mean
from lemmata.judge.engine import available_cores
from lemmata.lab.cli.terminal import console, print_json, shape_of
from lemmata.lab.words import UserError, count


@dataclass(frozen=True)
class Arguments:
    """Measure ours and every installed peer side by side.

    Each contender is a process of its own; repeats take turns. The table tells the median time, the distance between
    the quartiles, the peak memory beyond the data, and the ratios to the best peer and to the limit of the entry.
    Exit code 1 if a contender failed or computed something else, 2 for bad use. A missed target is told, not punished:
    times are the machine's too.
    """

    names: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Entries; all if none."""
    list: bool = False
    """List the entries and measure nothing."""
    budget: float = 20.0
    """Seconds of repeats for each case; at least five repeats are made."""
    threads: int = 0
    """Threads of every contender; 0 means one for each core."""
    device: str = "cpu"
    """cpu, cuda or mps."""
    save: bool = False
    """Keep the rows with device and versions as JSON: in bench/results of a checkout, else in the current folder."""
    json: bool = False
    """Print the rows as JSON."""


def run(arguments: Arguments) -> int:
    if arguments.threads < 0 or not 0 < arguments.budget < float("inf"):
        raise UserError("--threads must be >= 0 and --budget > 0 seconds")
    known = entries()
    unknown = [name for name in arguments.names if name not in known]
    for name in unknown:
        hint = did_you_mean(name, known) or f": known are {', '.join(known)}"
        print(f"lemmata: unknown bench {name!r}{hint}", file=sys.stderr)
    chosen = [known[name] for name in dict.fromkeys(arguments.names) if name in known]
    chosen = chosen or ([] if unknown else [*known.values()])
    if arguments.list:
        _list_entries(chosen, arguments.json)
        return 2 if unknown else 0
    _check_device(arguments.device)
    threads, load = arguments.threads or available_cores(), _load_average()
    if load is not None and load > available_cores() / 2:
        busy = f"other work is running here (load {load:g} on {count(available_cores(), 'core')})"
        print(f"lemmata: {busy}: trust ratios more than times, and neither much", file=sys.stderr)
    rows: list[BenchRow] = []
    for entry in chosen:
        if entry.devices and arguments.device.split(":")[0] not in entry.devices.split():
            print(f"lemmata: {entry.name} runs on {entry.devices} only", file=sys.stderr)
            continue
        found = _measure_entry(entry, arguments, threads)
        rows += found
        if arguments.save:
            path = save_results(_results_folder(), entry, found, arguments.device, threads=threads, load=load)
            print(f"lemmata: saved {path}", file=sys.stderr)
    if arguments.json:
        print_json([asdict(row) for row in rows])
    fell = any(row.reason.startswith(("failed", "disagrees")) for row in rows)
    return 2 if unknown else int(fell)


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    import torch

    kind = device.split(":")[0]
    here = ["cpu", *(["cuda"] if torch.cuda.is_available() else []), *(["mps"] if torch.mps.is_available() else [])]
    if kind not in here:
        raise UserError(f"--device must be one of {', '.join(here)} here, got {device!r}")


def _load_average() -> float | None:
    """How many processes want a core now; unknown on Windows."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def _results_folder() -> Path:
    """The folder for results in a checkout of lemmata, else where the user stands."""
    here = Path.cwd()
    return here / "bench" / "results" if (here / "src" / "lemmata" / "bench").is_dir() else here


def _list_entries(chosen: Sequence[BenchEntry], json: bool) -> None:
    if json:
        print_json([_entry_as_json(entry) for entry in chosen])
        return
    screen = console()
    for entry in chosen:
        screen.print(f"[bold]{entry.name}[/]  {escape(entry.title)}: [dim]{escape(entry.measures)}[/]", soft_wrap=True)
        for case, size in entry.cases.items():
            who = ", ".join(one.who for one in entry.contenders_for(case) if one.role != "limit")
            targets = ", ".join(Target(*pair).words for pair in entry.targets_for(case).items()) or "none"
            screen.print(f"    {escape(size)}", soft_wrap=True)
            screen.print(f"    [dim]{escape(who)}; target: {escape(targets)}[/]", soft_wrap=True)


def _entry_as_json(entry: BenchEntry) -> dict[str, Any]:
    words = {key: getattr(entry, key) for key in ("name", "title", "measures")}
    who = [one.who for one in entry.contenders if one.role != "limit"]
    return words | {"sizes": [*entry.cases.values()], "targets": dict(entry.targets), "who": who}


def _measure_entry(entry: BenchEntry, arguments: Arguments, threads: int) -> list[BenchRow]:
    found = []
    if not arguments.json:
        where = f"{arguments.device}, {count(threads, 'thread')}"
        console().print(f"\n[bold]{escape(entry.title)}[/]", f"[dim]{escape(entry.measures)}; {where}[/]", sep="\n")
    for case in entry.cases:
        place = {"device": arguments.device, "threads": threads, "budget": arguments.budget}
        with _bench_progress() as tell:
            measured = contest(entry, case, **place, tell=tell)
        rows = rows_of(entry, case, measured)
        if not arguments.json:
            _show_rows(entry.cases[case], rows, next((one for one in measured if one.contender.role == "limit"), None))
        found += rows
    return found


@contextmanager
def _bench_progress() -> Iterator[Callable[[str], None]]:
    """What is going on, on a terminal only."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda line: None
        return
    with screen.status("starting") as status:
        yield lambda line: status.update(f"[dim]{escape(line)}[/]")


def _show_rows(size: str, rows: Sequence[BenchRow], limit: Measured | None) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("who", no_wrap=True)
    for heading in ("median", "spread", "runs", "memory", "x peer", "x limit"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        numbers = [
            _time_in_words(row.median_s),
            _time_in_words(row.spread_s),
            str(row.repeats or "-"),
            _bytes_in_words(row.peak_bytes),
        ]
        numbers += [_ratio_in_words(row.ratio_to_best_peer), _ratio_in_words(row.ratio_to_limit)]
        table.add_row(Text(row.who, style="bold" if row.role == "ours" else ""), *numbers)
    screen = console()
    screen.print(f"\n{escape(size)}", table, sep="\n")
    if limit is not None:
        told = limit.reason or _time_in_words(rows[0].limit_s)
        screen.print(Text(f"limit: {limit.contender.who}: {told}", style="dim"), soft_wrap=True)
    for row in rows:
        for line in _row_remarks(row):
            screen.print(line, soft_wrap=True)


def _row_remarks(row: BenchRow) -> Iterator[Text]:
    """Why there is no number, or whether the target is met: word and shape, colour only repeats them."""
    if row.reason:
        shape, style = ("skipped", "dim") if row.reason.startswith("missing") else ("error", "bold red")
        yield Text(f"{shape_of(shape)} {row.who} {row.reason}", style=style)
    for target in row.targets:
        if target.ratio is None:
            yield Text(f"{shape_of('open')} target not judged: {target.words}", style="dim")
        else:
            shape, word, style = ("holds", "met", "green") if target.met else ("refuted", "missed", "bold red")
            yield Text(f"{shape_of(shape)} target {word}: {target.words} ({target.ratio:.3g})", style=style)


def _time_in_words(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _bytes_in_words(size: int | None) -> str:
    return "-" if size is None else f"{size / 2**20:,.0f} MiB" if size >= 2**20 else f"{size / 2**10:,.0f} KiB"


def _ratio_in_words(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"
