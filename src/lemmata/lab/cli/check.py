"""`lemmata check`: judge claims with live progress, then say what fell and what was refuted."""

import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lemmata import catalog as catalogs
from lemmata.catalog import ClaimEntry
from lemmata.catalog.selection import Selection, select
from lemmata.judge.engine import MEMORY, Engine, ProcessEngine, available_cores
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import judge_all, remembered
from lemmata.judge.verdict import Result, is_blunt
from lemmata.lab.cli.costs import spent, tell_slowest, too_dear
from lemmata.lab.cli.sharpness_table import tell_sharpness
from lemmata.lab.cli.summary import summarise
from lemmata.lab.cli.terminal import console, mark, print_json
from lemmata.lab.words import UserError, seconds

USUAL_SECONDS = {"instant": 0.1, "quick": 1.0, "long": 10.0}  # of CPU, with all lies, measured over all chapters
LONG = 60.0  # seconds: whoever waits longer is told beforehand


@dataclass(frozen=True)
class Arguments:
    """Judge claims: the truth must hold and every lie be rejected.

    Unchanged claims are remembered and not run again. Exit code 0 if nothing fell, 1 if something did, 2 for bad use.
    """

    claims: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Ids, topics (hopfield), patterns ('cover.*'), chapters, rooms (analysis), files or folders; all ours if none."""
    all: bool = False
    """Judge the long claims too."""
    fresh: bool = False
    """Judge again what the ledger remembers."""
    jobs: int = 0
    """Worker processes; 0 means one for each core."""
    engine: Literal["process", "ray"] = "process"
    """Own worker processes, or Ray tasks (pip install 'lemmata[ray]'), whose ports others on the network can reach."""
    address: str = ""
    """With --engine ray: the cluster to join."""
    sharp: bool = False
    """Also find how far a number must move before each check notices, long claims aside; minutes."""
    twice: bool = False
    """Run each truth a second time, after its lies, and demand the same bits; nothing is taken from the ledger."""
    seeds: int = 1
    """Judge each claim under this many seeds; the worst verdict counts."""
    seed: int = 0
    """The first of these seeds: `--seed 13` judges under seed 13 alone."""
    truths: bool = False
    """Judge the truths alone, without their lies, and remember nothing: quick, for many seeds."""
    strict: bool = False
    """Open and skipped claims make the exit code 1."""
    memory: float = MEMORY / 2**30
    """GiB that a process judging a file of yours may hold, with all that it starts (Linux)."""
    budget: float = 0.0
    """Say so if judging takes more than this many CPU seconds; 0 means no limit."""
    slowest: int = 0
    """Also list this many of the slowest claims and what each chapter costs, and where that is more than it may."""
    json: bool = False
    """Print the verdicts as JSON."""


def run(arguments: Arguments) -> int:
    if min(arguments.jobs, arguments.seed, arguments.budget, arguments.slowest) < 0 or arguments.seeds < 1:
        raise UserError("--jobs, --seed, --budget and --slowest must be >= 0 and --seeds >= 1")
    if arguments.truths and arguments.sharp:
        raise UserError("--sharp measures lies, and --truths leaves them out: give one of the two")
    if not 1 <= arguments.memory < 2**30:
        raise UserError(
            f"--memory must be at least 1 (GiB; torch alone takes a third of that), got {arguments.memory:g}"
        )
    catalog = catalogs.load()
    chosen = select(catalog, arguments.claims)
    # Faults of the package are the concern of whoever judges the package, not of a file of one's own.
    ours = any(id in catalog.statements for id in chosen.ids)
    for fault in [*(catalog.problems if ours or chosen.faults else ()), *chosen.faults]:
        print(f"lemmata: {fault}", file=sys.stderr)
    named = {word for word in arguments.claims if word in chosen.claims}
    ledger = Ledger()
    left_out = [] if arguments.all else [c for c in chosen.claims.values() if c.cost == "long" and c.id not in named]
    to_judge = [claim for claim in chosen.claims.values() if claim not in left_out]
    started = time.perf_counter()
    results = {id: Result(id, "open", reason="stated, no check yet") for id in chosen.open}
    if not (arguments.fresh or arguments.seed or arguments.truths):
        results |= remembered(left_out, ledger)
    # Ray prints what befell its workers, whatever it is told: it must not stand among the JSON.
    with redirect_stdout(sys.stderr) if arguments.json else nullcontext():
        results |= _judge_claims(to_judge, arguments, ledger)
    took = time.perf_counter() - started
    results = {id: results[id] for id in chosen.ids if id in results}
    if arguments.json:
        print_json([contract(result) for result in results.values()])
    elif results or left_out:
        forgotten = [claim.id for claim in left_out if claim.id not in results]
        files = {claim.id: claim.path for claim in chosen.claims.values() if claim.id not in catalog.statements}
        seeded = arguments.seed + arguments.seeds > 1
        summarise(console(), catalog, results, took, forgotten, files, everything=not arguments.claims, seeded=seeded)
    if arguments.slowest and not arguments.json:
        tell_slowest(console(), catalog, list(results.values()), arguments.slowest, arguments.seeds)
    if arguments.sharp and not arguments.json:
        tell_sharpness(console(), catalog, results)
    for message in ledger.messages:
        print(f"lemmata: {message}", file=sys.stderr)
    # What is dear is told and no failure: a busy machine must not accuse a claim.
    dear = too_dear(spent(catalog, list(results.values()), arguments.seeds)) if arguments.slowest else []
    work = sum(result.seconds for result in results.values())
    if arguments.budget and work > arguments.budget:
        dear.append(f"judging took {work:.0f} CPU seconds, the budget is {arguments.budget:.0f}")
    for message in dear:
        print(f"lemmata: {message}", file=sys.stderr)
    own = bool(ours and catalog.problems) and not chosen.faults
    return 1 if own else _exit_code(arguments, chosen, results)


def contract(result: Result) -> dict[str, Any]:
    """The stable JSON form of a verdict."""
    evidence = result.evidence and {key: result.evidence[key] for key in ("measured", "predicted", "margin", "alpha")}
    keys = ("text", "printed", "rejected", "notices")
    lies = [{key: lie[key] for key in keys if key in lie} for lie in result.lies]
    known = {"id": result.id, "verdict": result.verdict, "by": result.by or None, "seconds": result.seconds}
    return known | {"evidence": evidence, "lies": lies}


def _judge_claims(claims: list[ClaimEntry], arguments: Arguments, ledger: Ledger) -> dict[str, Result]:
    if not claims:
        return {}
    engine = _make_engine(arguments)
    results: dict[str, Result] = {}
    if not arguments.json and (expected := _expected_seconds(claims, arguments, ledger)) > LONG:
        console().print(f"[dim]about {seconds(expected)} on this machine when it is idle[/]")
    with _stopping_engine(engine), _check_progress(len(claims), quiet=arguments.json) as tell:
        how = {name: getattr(arguments, name) for name in ("seed", "seeds", "fresh", "sharp", "twice")}
        judged = judge_all(claims, engine, ledger, **how, truth_only=arguments.truths)
        with closing(judged):
            for result, known in judged:
                results[result.id] = result
                tell(result, known)
    return results


def _expected_seconds(claims: list[ClaimEntry], arguments: Arguments, ledger: Ledger) -> float:
    """Seconds that judging will take about, by what claims of each cost take on the average."""
    anew = arguments.fresh or arguments.twice or arguments.truths or not ledger.size()[0]
    # Where some verdicts are remembered, to find out which would cost as much as judging begins with: no word then.
    work = sum(USUAL_SECONDS[claim.cost] for claim in claims) * arguments.seeds if anew else 0.0
    return work * (0.4 if arguments.truths else 1.0) / (arguments.jobs or available_cores())


def _make_engine(arguments: Arguments) -> Engine:
    memory = int(arguments.memory * 2**30)
    if arguments.engine == "ray":
        if importlib.util.find_spec("ray") is None:
            raise UserError("--engine ray needs Ray: pip install 'lemmata[ray]'")
        from lemmata.judge.ray_engine import RayEngine

        return RayEngine(arguments.jobs or None, address=arguments.address or None, memory=memory)
    if arguments.address:
        raise UserError("--address needs --engine ray")
    return ProcessEngine(arguments.jobs or None, memory=memory)


@contextmanager
def _stopping_engine(engine: Engine) -> Iterator[None]:
    try:
        yield
    finally:
        engine.stop()


@contextmanager
def _check_progress(total: int, quiet: bool) -> Iterator[Any]:
    """A live bar on a terminal, one plain line for each claim elsewhere, nothing for JSON."""
    screen = console(stderr=quiet)
    faults: set[str] = set()

    def is_news(result: Result) -> bool:
        """Whether it says something new: a file that cannot be imported is one fault, however many claims it has."""
        new = result.verdict != "error" or result.reason not in faults
        faults.update([result.reason] if result.verdict == "error" else ())
        return new

    def say(result: Result, known: bool) -> None:
        if is_news(result):
            screen.print(_result_line(result, known), soft_wrap=True)

    if quiet and not screen.is_terminal:
        yield lambda result, known: None
    elif not screen.is_terminal:
        yield say
    else:
        columns = (BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("[dim]{task.description}"))
        with Progress(*columns, console=screen, transient=True) as bar:
            task = bar.add_task("starting workers", total=total)

            def tell(result: Result, known: bool) -> None:
                if result.verdict != "holds" and is_news(result):
                    _print_fallen(bar.console, result)
                bar.update(task, advance=1, description=result.id)

            yield tell


def _result_line(result: Result, known: bool) -> str:
    time = "remembered" if known else seconds(result.seconds)
    return escape(f"{mark(result.verdict)}  {result.id}  {time}  {result.by}  {result.reason}".rstrip())


def _print_fallen(screen: Console, result: Result) -> None:
    screen.print(mark(result.verdict), f"[bold]{result.id}[/]", escape(result.reason), soft_wrap=True)


def _exit_code(arguments: Arguments, chosen: Selection, results: dict[str, Result]) -> int:
    if chosen.faults:
        return 2
    verdicts = {result.verdict for result in results.values()}
    if arguments.sharp and any(is_blunt(lie.get("notices")) for result in results.values() for lie in result.lies):
        return 1
    bad = {"refuted", "weak", "error"} | ({"open", "skipped"} if arguments.strict else set())
    return 1 if verdicts & bad else 0
