"""How sharp the checks are, in words and as a table by chapter."""

import statistics
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from lemmata.catalog import Catalog
from lemmata.judge.verdict import ENOUGH, Result, is_blunt
from lemmata.lab.cli.terminal import words
from lemmata.lab.words import count, sharpness_words


def tell_sharpness(screen: Console, catalog: Catalog, results: Mapping[str, Result]) -> None:
    """A table by chapter, then every lie whose neighbourhood goes unnoticed without a reason."""
    chapters: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for id, result in results.items():
        chapter = catalog.statements[id].chapter if id in catalog.statements else "yours"
        for lie in result.lies:
            if lie.get("notices"):
                chapters.setdefault(chapter, []).append((id, lie["text"], lie["notices"]))
    screen.print("\n[bold]How far a number must move before the check notices[/], in hundredths of the truth or of one")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("chapter")
    for head in ("numeric lies", "median", "worst explained", "worst", f"beyond {100 * ENOUGH:g} without a reason"):
        table.add_column(head, justify="right")
    for chapter, found in chapters.items():
        table.add_row(chapter, *_sharpness_cells([notice for _, _, notice in found]))
    screen.print(table)
    blunt = [(id, text, notice) for found in chapters.values() for id, text, notice in found if is_blunt(notice)]
    for id, text, notice in blunt:
        screen.print(f"  [bold]{id}[/]  {words(text)}: {words(sharpness_words(notice))}", soft_wrap=True)
    if blunt:
        screen.print(
            f"{count(len(blunt), 'lie')} to sharpen: make the check notice sooner, or say why it cannot with "
            "regime= (towards the lie) or loose= (away from it)."
        )


def _sharpness_cells(notices: list[dict[str, Any]]) -> list[str]:
    own = [notice["away"] for notice in notices]
    plain = [away for away, notice in zip(own, notices, strict=True) if not notice["regime"]]
    explained = [away for away, notice in zip(own, notices, strict=True) if notice["regime"]]
    blunt = sum(map(is_blunt, notices))
    worst = f"{100 * max(plain):.2g}" if plain else "-"
    return [
        str(len(own)),
        f"{100 * statistics.median(own):.2g}",
        f"{100 * max(explained):.2g}" if explained else "-",
        worst,
        str(blunt),
    ]
