"""What `lemmata audit` says at the end: the three most important findings in full, the others in a line each."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lemmata.audit.finding import AuditFinding
from lemmata.audit.report import AuditReport
from lemmata.lab.cli.terminal import shape_of, unicode_works, words
from lemmata.lab.words import count, seconds

ALIKE = {"alarm": "refuted", "hint": "weak", "fine": "holds", "skipped": "skipped"}
STYLES = {"alarm": "bold red", "hint": "yellow", "fine": "green", "skipped": "dim"}
NARROW = 64  # columns, below which the words of a finding stand below its name


def tell(screen: Console, report: AuditReport, place: Path | None = None) -> None:
    """The whole report on the screen; `place` is where the file with its figures lies."""
    screen.print(f"[bold]{words(report.subject)}[/]")
    for text in report.facts.values():
        screen.print(f"[dim]{words(text)}[/]")
    screen.print()
    screen.print(_finding_counts(report))
    first = report.most_important
    for one in first:
        screen.print()
        _print_finding(screen, one)
    others = [one for one in report.findings if one not in first]
    if others:
        screen.print()
        screen.print(_finding_lines(others, screen.width < NARROW))
    if place:
        screen.print(f"\n[dim]report[/]   {words(str(place))}", soft_wrap=True)


def _finding_counts(report: AuditReport) -> Text:
    told = [
        Text(count(len(found), one, many), STYLES[severity])
        for severity, one, many in (
            ("alarm", "alarm", "alarms"), ("hint", "hint", "hints"), ("fine", "fine", "fine"),
            ("skipped", "not asked", "not asked"),
        )
        if (found := report.of(severity))
    ]  # fmt: skip
    return Text("  ").join([*told, Text(f"in {seconds(report.seconds)} of {seconds(report.budget)}", "dim")])


def _print_finding(screen: Console, one: AuditFinding) -> None:
    screen.print(_finding_head(one, one.severity, one.name))
    screen.print(Padding(Text(_plain_signs(one.verdict), "bold"), (0, 0, 0, 2), expand=False))
    rows = {"measured": one.measured, "theory": one.predicted, "do": one.advice}
    rows |= {"where": ", ".join(one.where[:8]) + (f" and {len(one.where) - 8} more" if len(one.where) > 8 else "")}
    rows |= {"claims": "  ".join(one.claims)}
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        if text:
            table.add_row(name, Text(_plain_signs(text), "" if name != "claims" else "dim"))
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))


def _finding_lines(found: list[AuditFinding], narrow: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    if not narrow:
        table.add_column(overflow="fold")
    for one in found:
        style = "dim" if one.severity in ("fine", "skipped") else ""
        head, said = _finding_head(one, one.name), Text(_plain_signs(one.verdict), style)
        if narrow:
            table.add_row(head)
            table.add_row(Padding(said, (0, 0, 0, 2), expand=False))
        else:
            table.add_row(head, said)
    return table


def _finding_head(one: AuditFinding, *names: str) -> Text:
    """The severity's shape, and words."""
    head = Text(f"{shape_of(ALIKE[one.severity])} ", STYLES[one.severity])
    for index, name in enumerate(names):
        head.append(f"{name}  " if index < len(names) - 1 else name, STYLES[one.severity] if index == 0 else "bold")
    return head


def _plain_signs(text: str) -> str:
    """Without the signs that the terminal lacks."""
    return text if unicode_works() else Text.from_markup(words(text)).plain
