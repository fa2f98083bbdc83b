"""What `lemmata check` says at the end: what holds, what fell, what was refuted, what to try next."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from lemmata.catalog import Catalog
from lemmata.catalog.settlement import settlement
from lemmata.catalog.statements import READINGS
from lemmata.judge.fingerprint import SWITCHES
from lemmata.judge.verdict import VERDICTS, Result
from lemmata.lab.cli.terminal import mark, maths, unicode_works, words
from lemmata.lab.words import count, seconds


def summarise(
    screen: Console,
    catalog: Catalog,
    results: Mapping[str, Result],
    took: float,
    left_out: Sequence[str],
    files: Mapping[str, Path],
    everything: bool,
    seeded: bool = False,
) -> None:
    """The closing words: a table by chapter, the fallen, the misprints, and three commands. `files`: users' claims.

    Where other seeds than 0 were judged (`seeded`), what fell comes with the command that repeats it.
    """
    truths = any(result.truth_only for result in results.values())
    tally = Counter(result.verdict for result in results.values())
    screen.print()
    screen.print(_summary_table(catalog, results))
    screen.print()
    fallen = [result for result in results.values() if result.verdict in ("refuted", "weak", "error")]
    faults = Counter(result.reason for result in fallen if result.verdict == "error")
    known: set[str] = set()
    for result in fallen:
        if result.verdict == "error" and result.reason in known:
            continue  # a file that cannot be imported is one fault, however many claims it has
        known.add(result.reason)
        others = faults[result.reason] - 1 if result.verdict == "error" else 0
        name = f"[bold]{result.id}[/]" + (f" and {count(others, 'other')}" if others else "")
        screen.print(mark(result.verdict), name, words(result.reason or VERDICTS[result.verdict]))
        place = result.id if result.id in catalog.statements else f"{files[result.id]} {result.id}"
        screen.print(f"    [dim]lemmata show {place}[/]", soft_wrap=True)
        if seeded:
            switches = "".join(f"{name}={os.environ[name]} " for name in SWITCHES if name in os.environ)
            screen.print(f"    [dim]{switches}lemmata check {place} --seed {result.seed} --fresh[/]", soft_wrap=True)
    if not fallen:
        lies = sum(len(result.lies) for result in results.values())
        told = f"{count(tally['holds'], 'claim holds', 'claims hold')}; {count(lies, 'lie was', 'lies were')} rejected"
        if truths:
            told = f"{count(tally['holds'], 'truth holds', 'truths hold')}; lies were not asked for"
        screen.print(f"[green]Nothing fell.[/] {told} ({seconds(took)}).")
    if left_out:
        screen.print(f"[dim]{count(len(left_out), 'long claim')} left out: add --all.[/]")
    shown = _print_misprints(screen, catalog, results) if not truths else ""
    if everything:
        _try_next(screen, catalog, shown or next(iter(results), ""))


def _summary_table(catalog: Catalog, results: Mapping[str, Result]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    nothing = "[dim]·[/]" if unicode_works() else "[dim].[/]"
    table.add_column("chapter")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right")
    table.add_column("remarks settled", justify="right")
    chapters: dict[str, list[str]] = {}
    for id in results:
        chapters.setdefault(catalog.statements[id].chapter if id in catalog.statements else "yours", []).append(id)
    for chapter, ids in chapters.items():
        tally = Counter(results[id].verdict for id in ids)
        asked = [id for id in ids if id in catalog.statements and not results[id].truth_only]
        errata = [(id, e) for id in asked for e in catalog.statements[id].errata]
        settled = sum(settlement(catalog, results, id, erratum) != "open" for id, erratum in errata)
        cells = [str(tally[verdict]) if tally[verdict] else nothing for verdict in VERDICTS]
        table.add_row(chapter, *cells, f"{settled} of {len(errata)}" if errata else nothing)
    return table


def _print_misprints(screen: Console, catalog: Catalog, results: Mapping[str, Result]) -> str:
    """How many misprints fell, and one of them to look at; returns its id."""
    errata = [(id, e) for id in results if id in catalog.statements for e in catalog.statements[id].errata]
    if not errata:
        return ""
    tally = Counter(settlement(catalog, results, id, erratum) for id, erratum in errata)
    other = [f"{tally[word]} {word}" for word in (*READINGS, "open") if tally[word]]
    rest = f" ({', '.join(other)})" if other else ""
    remarks = count(len(errata), "remark")
    screen.print(f"Of {remarks} on the sources, [bold]{tally['refuted']}[/] false as printed and refuted{rest}.")
    refuted = [(id, e) for id, e in errata if settlement(catalog, results, id, e) == "refuted"]
    if not refuted:
        return ""
    id, erratum = next((pair for pair in refuted if pair[0] == "perceptron.novikoff"), refuted[0])
    lie = next(lie for lie in results[id].lies if lie["printed"] == erratum.key)
    lines = [
        f"printed in {erratum.source}: [italic]{maths(erratum.printed)}[/]",
        f"the check says: {words(lie['how'])}",
    ]
    lines += [f"correct: {maths(erratum.correct)}"]
    screen.print(Padding("\n".join(lines), (1, 0, 1, 4), expand=False))
    return id


def _try_next(screen: Console, catalog: Catalog, id: str) -> None:
    screen.print("[bold]Try next[/]")
    rows = {
        f"lemmata show {id}": "the statement, its misprints, and how each one failed",
        "lemmata errata": "every remark on the sources, and what became of it",
        "lemmata check mine.py": "your own claims, judged the same way (README.md has one)",
    }
    width = max(map(len, rows))
    for command, why in rows.items():
        screen.print(f"  {command:{width}}   [dim]{why}[/]")
