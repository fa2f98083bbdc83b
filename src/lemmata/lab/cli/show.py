"""`lemmata show ID`: one claim as a page: statement, verdict, evidence, and how each lie failed."""

import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from lemmata import catalog as catalogs
from lemmata.catalog import Catalog, ClaimEntry, LieEntry
from lemmata.catalog.search import did_you_mean, nearest_words, search
from lemmata.catalog.selection import matching, select
from lemmata.catalog.settlement import settlement
from lemmata.catalog.statements import Statement
from lemmata.figure import Figure
from lemmata.judge.engine import ProcessEngine
from lemmata.judge.evidence_words import sentence
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import judge_all, remembered
from lemmata.judge.verdict import Result
from lemmata.lab.cli.terminal import STYLES, console, mark, maths, print_json, shape_of, words
from lemmata.lab.words import GROUNDS, UserError, seconds, sharpness_words


@dataclass(frozen=True)
class Arguments:
    """Show one claim: statement, sources, verdict, evidence, lies and how they failed.

    A claim that was not judged yet on this code is judged now, unless it is a long one.
    """

    words: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Id of the claim, for example perceptron.novikoff; words of its statement; or a file of yours and an id in it."""
    figure: Path | None = None
    """Write the claim's figure to this SVG file."""
    json: bool = False
    """Print everything known about it as JSON."""


def run(arguments: Arguments) -> int:
    catalog = catalogs.load()
    for problem in catalog.problems:
        print(f"lemmata: {problem}", file=sys.stderr)
    first, *rest = arguments.words or ("",)
    if first.endswith(".py"):
        if len(rest) > 1:
            raise UserError(f"give a file and the id of one of its claims, got {len(rest)} words after {first}")
        claim = _own_claim(catalog, first, *rest)
        statement = Statement(claim.id, "claim", claim.function.replace("_", " "), claim.sentence, claim.cost)
        return _show_statement(arguments, catalog, statement, claim)
    id = _named_statement(catalog, " ".join(arguments.words))
    return _show_statement(arguments, catalog, catalog.statements[id], catalog.claims.get(id))


def _named_statement(catalog: Catalog, words: str) -> str:
    """The statement of that id, the only one whose id ends in it (`lstm`), or in which all the words occur."""
    if not words:
        raise UserError("which claim? give its id, or words of its statement; lemmata claims lists them")
    if words in catalog.statements:
        return words
    ending = [id for id in catalog.statements if id.endswith(f".{words}")]
    found = matching(catalog, words) or search(catalog, words)
    for hits in (ending, found):
        if len(hits) == 1:
            return hits[0]
    if not found:
        raise UserError(f"no statement has the id or words {words!r}{nearest_words(catalog, words)}")
    more = f" and {len(found) - 8} more (lemmata claims {words})" if len(found) > 8 else ""
    raise UserError(f"{words!r} is in {len(found)} statements: show one of {', '.join(found[:8])}{more}")


def _own_claim(catalog: Catalog, path: str, id: str = "") -> ClaimEntry:
    """A claim of a user's file."""
    chosen = select(catalog, [path])
    if chosen.faults:
        raise UserError(chosen.faults[0])
    if id and id not in chosen.claims:
        raise UserError(f"{path} has no claim {id!r}{did_you_mean(id, chosen.claims)}")
    return chosen.claims[id or next(iter(chosen.claims))]


def _show_statement(arguments: Arguments, catalog: Catalog, statement: Statement, claim: ClaimEntry | None) -> int:
    ledger = Ledger()
    result = _result_of_claim(claim, ledger) if claim else Result(statement.id, "open", reason="stated, no check yet")
    for message in ledger.messages:
        print(f"lemmata: {message}", file=sys.stderr)
    if arguments.figure:
        _write_figure(arguments.figure, result)
    if arguments.json:
        from lemmata.lab.cli.claims import contract

        reasons = {"why": statement.why, "builds_on": list(statement.builds_on)}
        print_json(contract(catalog, statement) | reasons | {"result": result.to_json() if result else None})
    else:
        page(console(), catalog, statement, claim, result)
    return 0 if result is None or result.verdict in ("holds", "open", "skipped") else 1


def page(
    screen: Console, catalog: Catalog, statement: Statement, claim: ClaimEntry | None, result: Result | None
) -> None:
    """The whole page, top to bottom."""
    screen.print()
    screen.print(f"[bold]{maths(statement.title)}[/]")
    screen.print(f"[dim]{statement.id}  {statement.kind}, {statement.chapter or 'yours'}[/]\n")
    screen.print(Padding(maths(statement.statement), (0, 4, 1, 4)))
    if result is None:
        screen.print(f"  [dim]not judged yet: it is a long one; lemmata check {statement.id}[/]")
    else:
        _print_verdict(screen, result)
        if result.evidence and result.evidence["figure"]:
            from lemmata.lab.figures.terminal import draw

            screen.print(Padding(draw(Figure.from_json(result.evidence["figure"])), (1, 0, 0, 4)))
    _print_why(screen, catalog, statement)
    if claim and claim.lies:
        screen.print("\n  [bold]Lies[/] [dim]that the same check must reject[/]")
        for index, lie in enumerate(claim.lies):
            outcome = result.lies[index] if result and index < len(result.lies) else None
            screen.print() if index else None
            _print_lie(screen, statement, lie, outcome)
    _other_misprints(screen, catalog, statement, result)
    _print_systems(screen, catalog, statement.id)
    places: dict[str, list[str]] = {}
    for source in statement.sources:
        places.setdefault(source["source"], []).append(maths(source["where"]))
    if places:
        screen.print("\n  [bold]Sources[/]")
    for source, where in places.items():
        screen.print(f"    {source}  {'; '.join(where)}")
    if claim:
        screen.print("\n  [bold]Check[/]")
        screen.print(Padding(maths(claim.sentence), (0, 0, 0, 4)))
        screen.print(f"    [dim]{_short_path(claim.path)}:{claim.line}[/]")
        own = "" if claim.id in catalog.statements else f"{_short_path(claim.path)} "
        screen.print(f"    lemmata check {own}{claim.id} --fresh", soft_wrap=True)
        screen.print("    [dim]What a verdict rests on: /trust in lemmata serve[/]", soft_wrap=True)
    screen.print()


def _result_of_claim(claim: ClaimEntry, ledger: Ledger) -> Result | None:
    """The remembered verdict, or a fresh one; None for a long claim that was never judged."""
    known = remembered([claim], ledger)
    if claim.id in known or claim.cost == "long":
        return known.get(claim.id)
    engine = ProcessEngine(1)
    try:
        with console(stderr=True).status(f"judging {claim.id}"), closing(judge_all([claim], engine, ledger)) as judged:
            return next(judged)[0]
    finally:
        engine.stop()


def _print_verdict(screen: Console, result: Result) -> None:
    evidence = result.evidence or {}
    word = "proved" if evidence.get("proof") else "checked"
    ground = f"[dim]{word} {GROUNDS[result.by]} in {seconds(result.seconds)}[/]" if result.by else ""
    screen.print("  ", mark(result.verdict), ground)
    if result.reason:
        screen.print(Padding(words(result.reason), (0, 0, 0, 4)))
    if evidence:
        screen.print(Padding(words(sentence(evidence)), (0, 0, 0, 4)))


def _print_lie(screen: Console, statement: Statement, lie: LieEntry, outcome: dict[str, Any] | None) -> None:
    rejected = outcome["rejected"] if outcome else None
    word, shape = {True: ("rejected", "refuted"), False: ("accepted", "weak"), None: ("not run", "open")}[rejected]
    word = f"[{STYLES[shape]}]{shape_of(shape)} {word}[/]"
    screen.print(f"    {word}  {maths(lie.text)}")
    if lie.argument:
        screen.print(
            f"                [dim]{escape(f'{lie.argument} = {lie.value} instead of {lie.truth}')}[/]", soft_wrap=True
        )
    if outcome and rejected is not None:
        screen.print(Padding(words(outcome["how"]), (0, 0, 0, 16)))
        if sharpness := sharpness_words(outcome.get("notices")):
            screen.print(Padding(f"[dim]{words(sharpness)}[/]", (0, 0, 0, 16)))
    erratum = next((e for e in statement.errata if e.key == lie.printed), None)
    if erratum:
        screen.print(Padding(f"printed in {erratum.source}: [italic]{maths(erratum.printed)}[/]", (0, 0, 0, 16)))
        screen.print(Padding(f"correct: {maths(erratum.correct)}", (0, 0, 0, 16)))


def _print_why(screen: Console, catalog: Catalog, statement: Statement) -> None:
    """Why it is true, what that takes as known, and what builds on it."""
    if statement.why:
        screen.print("\n  [bold]Why[/]")
        screen.print(Padding(maths(statement.why), (0, 4, 0, 4)))
    for title, ids in ("Builds on", statement.builds_on), ("Leads to", catalog.built_on.get(statement.id, ())):
        if ids:
            screen.print(f"\n  [bold]{title}[/]")
            screen.print(Padding(", ".join(ids), (0, 4, 0, 4)))


def _other_misprints(screen: Console, catalog: Catalog, statement: Statement, result: Result | None) -> None:
    known = {result.id: result} if result else {}
    others = [e for e in statement.errata if e.reading or catalog.settled(statement.id, e) == "open"]
    if others:
        screen.print("\n  [bold]Remarks on the sources[/] [dim]that are no falsehoods, or open[/]")
    for erratum in others:
        settled = settlement(catalog, known, statement.id, erratum)
        screen.print(f"    {settled}  printed in {erratum.source}: [italic]{maths(erratum.printed)}[/]")
        why = erratum.reason or erratum.problem
        screen.print(Padding(f"{maths(why)} Correct: {maths(erratum.correct)}", (0, 0, 0, 4)))


def _print_systems(screen: Console, catalog: Catalog, id: str) -> None:
    """The code that the statement is about: the line that imports each system which promises it."""
    promising = [entry for entry in catalog.systems.values() if id in entry.claims]
    if promising:
        screen.print("\n  [bold]Code[/]")
    for entry in promising:
        screen.print(f"    {entry.import_line}  [dim]# {_short_path(entry.path)}:{entry.line}[/]", soft_wrap=True)


def _write_figure(path: Path, result: Result | None) -> None:
    from lemmata.lab.figures.svg import svg

    data = result.evidence["figure"] if result and result.evidence else None
    if not data:
        raise UserError("this claim has no figure")
    if path.suffix != ".svg":
        raise UserError(f"--figure writes SVG: name the file {path.with_suffix('.svg')}")
    path.write_text(svg(Figure.from_json(data)), encoding="utf-8")
    print(f"wrote {path}", file=sys.stderr)


def _short_path(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
