"""`lemmata.check`: the judge from Python, on claims of ours, a file, a folder, or a function at hand."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from lemmata import catalog as catalogs
from lemmata.catalog.selection import select
from lemmata.judge.decorators import Claim
from lemmata.judge.engine import ProcessEngine
from lemmata.judge.ledger import Ledger
from lemmata.judge.runner import judge
from lemmata.judge.session import judge_all
from lemmata.judge.verdict import Result, merge

__all__ = ["Verdicts", "check"]


class Verdicts(Sequence[Result]):
    """The results of a check, in the order they were asked for.

    `bool(verdicts)` is whether nothing fell; `verdicts["cover.theorem"]` is one of them.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = list(results)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            found = [result for result in self.results if result.id == key]
            if not found:
                raise KeyError(f"no verdict on {key!r} here: {', '.join(result.id for result in self.results)}")
            return found[0]
        return self.results[key]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __bool__(self) -> bool:
        return not self.fallen

    @property
    def fallen(self) -> list[Result]:
        """Those that were refuted, are too weak, or broke."""
        return [result for result in self.results if result.verdict in ("refuted", "weak", "error")]

    def __repr__(self) -> str:
        """One line for each: verdict, id, and why if it does not hold."""
        lines = [f"{result.verdict:<8} {result.id}  {result.reason}".rstrip() for result in self.results]
        return "\n".join(lines) or "nothing to judge"


def check(
    *what: str | Path | Claim, everything: bool = False, fresh: bool = False, jobs: int | None = None, seeds: int = 1
) -> Verdicts:
    """Judge claims as `lemmata check` does: the truth must hold and every lie be rejected.

    Each of `what` is an id, a topic, a pattern, a chapter, a file or folder with claims, or a decorated function; all
    of ours if there is none. `everything` takes the long ones too, which a pattern leaves out; unchanged claims are
    remembered unless `fresh`. A function is judged here, in this process, and not remembered.

    >>> from lemmata.judge import claim, close, lie
    >>> @claim("mine.square")
    ... @lie("twice as much", factor=2.0)
    ... def square(draw, factor=1.0):
    ...     x = draw.normal(100)
    ...     return close(factor * x * x, x**2)
    >>> check(square)
    holds    mine.square
    """
    if seeds < 1:
        raise ValueError(f"seeds must be >= 1, got {seeds}")
    wrong = [item for item in what if not isinstance(item, str | Path | Claim)]
    if wrong:
        raise TypeError(f"give ids, paths or functions decorated with @claim, got {wrong[0]!r}")
    at_hand = [item for item in what if isinstance(item, Claim)]
    results = [merge([judge(claim, seed) for seed in range(seeds)]) for claim in at_hand]
    words = [str(item) for item in what if not isinstance(item, Claim)]
    if words or not what:
        results += _select_results(words, everything, fresh, jobs, seeds)
    return Verdicts(results)


def _select_results(words: list[str], everything: bool, fresh: bool, jobs: int | None, seeds: int) -> list[Result]:
    catalog = catalogs.load()
    chosen = select(catalog, words)
    if chosen.faults:
        raise ValueError("; ".join(chosen.faults))
    claims = [c for c in chosen.claims.values() if everything or c.cost != "long" or c.id in words]
    results = {id: Result(id, "open", reason="stated, no check yet") for id in chosen.open}
    engine = ProcessEngine(jobs)
    try:
        with closing(judge_all(claims, engine, Ledger(), seeds=seeds, fresh=fresh)) as judged:
            results |= {result.id: result for result, _ in judged}
    finally:
        engine.stop()
    return [results[id] for id in chosen.ids if id in results]
