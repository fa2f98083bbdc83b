"""What `lemmata check --slowest N` says at the end: which claims took longest, and what each chapter costs."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lemmata.catalog import CHAPTERS, Catalog
from lemmata.catalog.statements import COSTS
from lemmata.judge.verdict import Result
from lemmata.lab.words import count, seconds

# Seconds that a claim of each class may take with all its lies.
CLASS_SECONDS = {"instant": 0.5, "quick": 5.0, "long": math.inf}
# A machine that does other things as well must not accuse a claim.
PATIENCE = 2.0
CORES = 2
# On so many cores: the instant and quick claims of all chapters, and the long ones of a chapter.
SHORT_SECONDS, LONG_SECONDS = 720.0, 180.0


def tell_slowest(screen: Console, catalog: Catalog, results: Sequence[Result], how_many: int, seeds: int = 1) -> None:
    """The claims that took longest, those over their class, and a table of chapters and classes."""
    work = sum(result.seconds for result in results)
    screen.print(f"\nThe slowest of {count(len(results), 'claim')}, {seconds(work)} of work in all:")
    for result in sorted(results, key=lambda r: -r.seconds)[:how_many]:
        screen.print(f"  {result.seconds:8.2f} s  {result.id}")
    for result in results:
        cost = _cost_class(catalog, result)
        if result.seconds / seeds > PATIENCE * CLASS_SECONDS[cost]:
            may = f"{cost} claims may take {CLASS_SECONDS[cost]:g} s"
            screen.print(f"[bold]{result.id}[/] took {result.seconds / seeds:.1f} s: {may}")
    screen.print()
    screen.print(_cost_table(spent(catalog, results, seeds)))


def spent(catalog: Catalog, results: Sequence[Result], seeds: int = 1) -> dict[str, dict[str, float]]:
    """Seconds by chapter and class, for one seed; those of a user's own claims under `yours`."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        chapter = catalog.statements[result.id].chapter if result.id in catalog.statements else "yours"
        row = found.setdefault(chapter, dict.fromkeys(COSTS, 0.0))
        row[_cost_class(catalog, result)] += result.seconds / seeds
    return found


def too_dear(found: dict[str, dict[str, float]]) -> list[str]:
    """A sentence for each limit that is exceeded. The chapters that are there have their share of the 12 minutes."""
    ours = {chapter: row for chapter, row in found.items() if chapter in CHAPTERS}
    faults = []
    short = sum(row["instant"] + row["quick"] for row in ours.values()) / CORES
    share = SHORT_SECONDS * len(ours) / len(CHAPTERS)
    if short > share:
        which = count(len(ours), "chapter")
        faults.append(
            f"the instant and quick claims of {which} take {short:.0f} s on {CORES} cores, their share is {share:.0f} s"
        )
    for chapter, row in ours.items():
        if row["long"] / CORES > LONG_SECONDS:
            took = f"take {row['long'] / CORES:.0f} s on {CORES} cores"
            faults.append(f"the long claims of {chapter} {took}, they may take {LONG_SECONDS:.0f} s")
    return faults


def _cost_class(catalog: Catalog, result: Result) -> str:
    return catalog.claims[result.id].cost if result.id in catalog.claims else "quick"


def _cost_table(found: dict[str, dict[str, float]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("chapter, seconds")
    for cost in COSTS:
        table.add_column(cost, justify="right")
    for chapter, row in found.items():
        table.add_row(chapter, *(f"{row[cost]:.1f}" for cost in COSTS))
    return table
