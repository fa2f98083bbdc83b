"""Judging many claims: what the ledger knows is taken from there, the rest goes to an engine."""

import dataclasses
from collections import Counter
from collections.abc import Generator, Iterable, Sequence

from lemmata.catalog import ClaimEntry
from lemmata.judge.engine import Engine, task_of
from lemmata.judge.fingerprint import fingerprint, fingerprints
from lemmata.judge.ledger import Ledger
from lemmata.judge.verdict import Result, merge
from lemmata.statements import COSTS

__all__ = ["judge_all", "remembered"]


def judge_all(
    claims: Sequence[ClaimEntry],
    engine: Engine,
    ledger: Ledger,
    *,
    seeds: int = 1,
    fresh: bool = False,
    sharp: bool = False,
) -> Generator[tuple[Result, bool], None, None]:
    """Yield (result, known) for every claim as it is settled; known: all its seeds were in the ledger.

    Every finished seed is in the ledger before it is yielded: stopping the iteration at any moment loses nothing.
    `sharp` also measures how far a number must move before each check notices; what is remembered without is judged
    again.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be >= 1, got {seeds}")
    claims = list(dict.fromkeys(claims))
    for id, count in Counter(claim.id for claim in claims).items():
        if count > 1:  # their verdicts would be kept under each other's keys
            raise ValueError(f"{count} claims have the id {id!r}: give each its own")
    found: dict[str, list[Result]] = {claim.id: [] for claim in claims}
    keys: dict[tuple[str, int], str] = {}
    for claim in _dearest_first(claims):
        for seed in range(seeds):
            key = fingerprint(claim, seed)
            result = None if fresh else ledger.get(key)
            if result is not None and (not sharp or claim.cost == "long" or is_measured(result)):
                found[claim.id].append(result)
            else:
                keys[claim.id, seed] = key
                engine.submit(task_of(claim, seed, sharp))
    try:
        for results in found.values():
            if len(results) == seeds:
                yield merge(results), True
        engine.start()
        for task, result in engine.results():
            if result.verdict not in ("error", "skipped"):  # those depend on more than the key covers
                ledger.put(keys[task.id, task.seed], _with_notices(result, ledger.get(keys[task.id, task.seed])))
            found[task.id].append(result)
            if len(found[task.id]) == seeds:
                yield merge(sorted(found[task.id], key=lambda r: r.seed)), False
    except BaseException:  # Ctrl-C, or the consumer has closed us: nobody waits for the rest
        engine.stop()
        raise


def remembered(claims: Iterable[ClaimEntry], ledger: Ledger) -> dict[str, Result]:
    """What the ledger knows about these claims as they stand now."""
    found = {id: ledger.get(key) for id, key in fingerprints(claims, 0).items()}
    return {id: result for id, result in found.items() if result is not None}


def is_measured(result: Result) -> bool:
    """Whether it is known how sharp this check is; what does not hold or has no lies has nothing to measure."""
    return result.verdict != "holds" or all("notices" in lie for lie in result.lies)


def _with_notices(result: Result, before: Result | None) -> Result:
    """A verdict reached again, with what was measured before under the same key: the code has not changed since."""
    if before is None or is_measured(result) or not is_measured(before) or before.verdict != result.verdict:
        return result
    lies = [lie | {"notices": old["notices"]} for lie, old in zip(result.lies, before.lies, strict=True)]
    return dataclasses.replace(result, lies=lies)


def _dearest_first(claims: Iterable[ClaimEntry]) -> list[ClaimEntry]:
    """The long ones first, so that no core waits at the end."""
    return sorted(claims, key=lambda claim: -COSTS.index(claim.cost))
