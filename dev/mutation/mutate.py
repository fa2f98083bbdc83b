"""Breaking the code must break a claim or a test: `python3 dev.py mutate [CHAPTER, FILE or SYSTEM ...]`.

A file is changed in one place at a time (a sign, a bound, a term, ...). On each mutant the claims are run that its
docstrings promise, and where they all hold, the tests that mirror the file. A mutant is killed when one of these no
longer holds, hangs or crashes. A survivor is a place where the code could be wrong and nobody would notice.

    from mutation.mutate import mutate
    report = mutate("my_system.py", ["my_claims.py"], ["test_my_system.py"])
"""

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lemmata.catalog import ClaimEntry
from mutation.hunt import PATIENCE, Settings, Told, run
from mutation.report import MutationReport, counts, lines, score, totals
from mutation.targets import Target, changed_files, entries, only_changed, sampled, select

LEAST = 0.9  # of the mutants must be killed


def mutate(
    path: Path | str,
    claims: Iterable[ClaimEntry | Path | str] = (),
    tests: Iterable[Path | str] | None = None,
    *,
    jobs: int | None = None,
    sample: float = 1.0,
    patience: float = PATIENCE,
    seconds: float = float("inf"),
) -> MutationReport:
    """Run claims and tests on every mutant of a file; all may be anyone's.

    `claims` are files of claims or entries of a catalog, `tests` files for pytest, those that mirror the file if none
    are named. `sample` is the fraction of mutants to try, `patience` how many seconds a claim or a test is always
    given, `seconds` when to stop and report.
    """
    target = _of_ones_own(path, claims, tests)
    sampled([target], sample, 0)
    run([target], Settings(jobs, patience, seconds))
    return target.report


def _of_ones_own(
    path: Path | str, claims: Iterable[ClaimEntry | Path | str], tests: Iterable[Path | str] | None
) -> Target:
    files = None if tests is None else [Path(test).resolve() for test in tests]
    for file in files or ():
        if not file.is_file():
            raise ValueError(f"there is no file {file}")
    return Target.of(Path(path), [entry for given in claims for entry in entries(given)], files)


# --- The command ---


def main(words: Sequence[str] | None = None) -> int:
    """0 if enough mutants were killed, 1 if not, 2 for bad use, 130 for Ctrl-C."""
    asked = _arguments(words)
    targets: list[Target] = []
    code = 0
    try:
        targets = _targets(asked)
        limit = float("inf") if asked.seconds is None else asked.seconds
        with _progress(quiet=asked.json) as told:
            run(targets, Settings(asked.jobs, PATIENCE, limit, asked.seed, asked.pytest_args), told)
    except ValueError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutate: interrupted", file=sys.stderr)
        code = 130
    reports = [target.report for target in targets]
    _tell(reports, asked)
    return code or int(score(reports) < asked.least)


def _targets(asked: argparse.Namespace) -> list[Target]:
    if asked.claims or asked.tests:
        targets = [_of_ones_own(name, asked.claims, asked.tests) for name in asked.names]
    elif asked.changed is not None and not asked.names:
        found = changed_files(asked.changed)
        targets = select(found, asked.all) if found else []
    else:
        targets = select(asked.names, asked.all)
    if asked.changed is not None:
        only_changed(targets, asked.changed)
    sampled(targets, asked.sample, asked.seed)
    return targets


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python3 dev.py mutate", description=(__doc__ or "").split("\n\n")[1])
    more = parser.add_argument
    more("names", nargs="*", metavar="NAME", help="chapters, systems, folders or files; all chapters if none")
    more("--changed", nargs="?", const="", metavar="REV", help="only lines changed since REV, or since leaving main")
    more("--claims", nargs="+", default=[], metavar="FILE", help="run these claims on files of your own")
    more("--tests", nargs="+", metavar="FILE", help="run these tests on files of your own, not those that mirror them")
    more("--jobs", type=int, metavar="N", help="mutants at a time; one for each core if not given")
    more("--seconds", type=float, metavar="S", help="stop after so long and report what is known by then")
    more("--sample", type=float, default=1.0, metavar="FRACTION", help="try only this part of the mutants, at random")
    more("--seed", type=int, default=0, metavar="N", help="of the random order and sample (0)")
    more("--pytest-args", type=shlex.split, default=[], metavar="WORDS", help="more options for pytest, in one word")
    more("--least", type=float, default=LEAST, metavar="SCORE", help="exit 1 below this score (0.9)")
    more("--all", action="store_true", help="run long claims too")
    more("--json", action="store_true", help="print the report as JSON")
    more("--survivors", action="store_true", help="print only the survivors, one a line")
    asked = parser.parse_args(words)
    if (asked.claims or asked.tests) and not asked.names:
        parser.error("name the files to mutate first: mutate my_system.py --claims my_claims.py --tests test_mine.py")
    return asked


def _tell(reports: list[MutationReport], asked: argparse.Namespace) -> None:
    if asked.json:
        print(json.dumps({**totals(reports), "files": [report.to_json() for report in reports]}, indent=2))
    elif asked.survivors:
        for report in reports:
            for outcome in report.survivors:
                print(report.label + outcome.mutant.id.removeprefix(report.path.name))
    else:
        for report in reports:
            print("\n".join(lines(report)), end="\n\n")
        print(f"{len(reports)} {'file' if len(reports) == 1 else 'files'}: {counts(reports)}")


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Told]:
    """A live bar on a terminal; elsewhere a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    if screen.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=screen, transient=True) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
    elif quiet:
        yield lambda *_: None
    else:

        def told(what: str, done: int, total: int) -> None:
            if done == total or done % 100 == 0:
                print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

        yield told


if __name__ == "__main__":
    sys.exit(main())
