"""`python3 dev.py chapter NAME [--seeds N] [--sharp] [--mutate FRACTION]`: what a chapter brings, by measurement.

Claims are judged through the ledger; tests are those of the last `python3 dev.py test --all`. A closing note pastes it.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from installation import BIN, HERE, Failed, say
from prices import DURATIONS, QUICK_SECONDS, SLOW_SECONDS, chapter
from stages import PYTHON, answer

PACKAGE = HERE / "src" / "lemmata"
LEMMATA = BIN / "lemmata"


def main(*words: str) -> None:
    asked = arguments(words)
    if not (PACKAGE / asked.name).is_dir() or not [*(PACKAGE / asked.name).rglob("statements.yaml")]:
        raise Failed(f"no such chapter: {asked.name}; it is a folder of src/lemmata with a statements.yaml", 2)
    stated = answer(LEMMATA, "claims", asked.name, "--json")
    more = ["--seeds", asked.seeds] + (["--sharp"] if asked.sharp else [])
    verdicts = answer(LEMMATA, "check", asked.name, "--all", "--json", *more)
    say(f"| {asked.name} | measured |\n|---|---|")
    judged = [*claims(stated, verdicts, asked.seeds), *sharpness(verdicts)]
    for what, found in [*judged, *made(asked.name, stated), *tests(asked.name)]:
        say(f"| {what} | {found} |")
    if asked.mutate:
        sample = ["-m", "mutation.mutate", asked.name, "--sample", asked.mutate, "--json"]
        found = answer(PYTHON, *sample, variables={"PYTHONPATH": str(HERE / "dev")})
        say(f"| mutation, a sample of {found['tried']} | {found['score']:.3f} +- {found['standard_error']:.3f} |")


def arguments(words: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python3 dev.py chapter", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=1, help="judge every claim under this many seeds")
    parser.add_argument("--sharp", action="store_true", help="how far a number moves before a check notices; minutes")
    parser.add_argument("--mutate", type=float, default=0.0, metavar="FRACTION", help="try this part of the mutants")
    return parser.parse_args(words)


Rows = Iterator[tuple[str, object]]


def claims(stated: list[dict[str, Any]], verdicts: list[dict[str, Any]], seeds: int) -> Rows:
    kinds = Counter(verdict["verdict"] for verdict in verdicts)
    under = f" under {seeds} seeds" if seeds > 1 else ""
    yield f"ids{under}", f"{len(stated)}: " + listed(kinds)
    lies = [lie for verdict in verdicts for lie in verdict["lies"]]
    yield "lies", f"{len(lies)}, rejected {sum(bool(lie.get('rejected')) for lie in lies)}"
    ids = {statement["id"] for statement in stated}
    remarks = [remark["settled"] for remark in answer(LEMMATA, "errata", "--json") if remark["id"] in ids]
    yield "errata", f"{len(remarks)}: " + listed(Counter(settled or "unsettled" for settled in remarks))
    costs = {statement["id"]: statement["cost"] for statement in stated}
    seconds: Counter[str] = Counter()
    for verdict in verdicts:
        seconds[costs[verdict["id"]]] += verdict["seconds"] / seeds
    yield "CPU seconds of claims", ", ".join(f"{cost} {spent:.0f}" for cost, spent in seconds.items())


def sharpness(verdicts: list[dict[str, Any]]) -> Rows:
    """The number that must move furthest before a check notices, regimes aside."""
    noticed = [
        (notice["away"], verdict["id"])
        for verdict in verdicts
        for lie in verdict["lies"]
        if (notice := lie.get("notices")) and notice["away"] is not None and not notice["regime"]
    ]
    if noticed:
        worst, id = max(noticed)
        yield "sharpness, worst", f"{worst:g} ({id}) of {len(noticed)}"


def made(name: str, stated: list[dict[str, Any]]) -> Rows:
    systems = answer(LEMMATA, "systems", name, "--json")
    yield "systems", f"{len(systems)}, with a recipe {sum(system['trains'] for system in systems)}"
    labs = [path for path in PACKAGE.glob("lab/site/work/*_lab.py") if f'"chapter": "{name}"' in path.read_text()]
    yield "labs", f"{len(labs)}: " + ", ".join(sorted(path.stem.removesuffix("_lab") for path in labs))
    entries = [path.read_text(encoding="utf-8") for path in PACKAGE.glob("bench/contests/**/*.py")]
    named = {
        found
        for text in entries
        if f"lemmata.{name}" in text
        for found in re.findall(r'^@entry\(\s*"(\w+)"', text, re.M)
    }
    saved = {path.stem.split("-")[0] for path in (HERE / "bench" / "results").glob("*.json")}
    yield "bench entries", f"{len(named)}, saved {len(named & saved)}"
    text = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / name).rglob("statements.yaml"))
    for field in ("why", "builds_on"):
        yield f"`{field}`", f"{len(re.findall(rf'^ +{field}:', text, re.M))} of {len(stated)}"
    long = [path for path in sources(name) if len(path.read_text(encoding="utf-8").splitlines()) > 400]
    yield "files over 400 lines", len(long)
    folders = Counter(path.parent for path in sources(name))
    yield "files in the largest folder", max(folders.values())


def sources(name: str) -> list[Path]:
    return [*(PACKAGE / name).rglob("*.py"), *(HERE / "tests" / name).rglob("*.py")]


def tests(name: str) -> Rows:
    if not DURATIONS.is_file():
        yield "tests", "not measured: `python3 dev.py test --all` does"
        return
    every = json.loads(DURATIONS.read_text(encoding="utf-8"))
    found = [price for nodeid, price in every.items() if chapter(nodeid) == name]
    slow = sum(price["spent"] for price in found if price["marks"])
    quick = sum(price["spent"] for price in found) - slow
    yield "tests", len(found)
    yield "CPU seconds of tests", f"quick {quick:.0f} of {QUICK_SECONDS}, slow and browser {slow:.0f} of {SLOW_SECONDS}"


def listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common()) or "none"
