"""Judging many claims: what the ledger knows is taken from there, the rest goes to an engine."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence

from lemmata.catalog import ClaimEntry
from lemmata.catalog.statements import COSTS
from lemmata.judge.engine import Answer, Engine, task_of
from lemmata.judge.fingerprint import CATALOG, Source, capability, changed, fingerprint, fingerprints, sources
from lemmata.judge.ledger import Ledger
from lemmata.judge.loaded import place
from lemmata.judge.opened_files import UNSTEADY
from lemmata.judge.verdict import Result, merge

__all__ = ["judge_all", "remembered"]


def judge_all(
    claims: Sequence[ClaimEntry],
    engine: Engine,
    ledger: Ledger,
    *,
    seed: int = 0,
    seeds: int = 1,
    fresh: bool = False,
    sharp: bool = False,
    twice: bool = False,
    truth_only: bool = False,
) -> Generator[tuple[Result, bool], None, None]:
    """Yield (result, known) for every claim as it is settled; known: all its seeds were in the ledger.

    They are judged under `seeds` seeds, the first of which is `seed`.
    Every finished seed is in the ledger before it is yielded: stopping the iteration at any moment loses nothing.
    `sharp` also measures how far a number must move before each check notices; what is remembered without is judged
    again. `twice` runs the truth a second time and demands the same bits; what is remembered was run once, and so is
    judged again. `truth_only` leaves the lies out, and the ledger.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be >= 1, got {seeds}")
    if seed < 0:
        raise ValueError(f"seed must be >= 0, got {seed}")
    claims = list(dict.fromkeys(claims))
    for id, count in Counter(claim.id for claim in claims).items():
        if count > 1:  # their verdicts would be kept under each other's keys
            raise ValueError(f"{count} claims have the id {id!r}: give each its own")
    found: dict[str, list[Result]] = {claim.id: [] for claim in claims}
    asked: dict[tuple[str, int], _Question] = {}
    at_once, how = functools.cache(sources), {"sharp": sharp, "twice": twice, "truth_only": truth_only}
    for claim in _slowest_first(claims):
        for each in range(seed, seed + seeds):
            question = _Question(claim, each, how, at_once(claim.path))
            result = None if fresh or twice or truth_only else question.known(ledger)
            if result is not None and (not sharp or claim.cost == "long" or is_measured(result)):
                found[claim.id].append(result)
            else:
                asked[claim.id, each] = question
                engine.submit(question.task)
    try:
        for results in found.values():
            if len(results) == seeds:
                yield merge(results), True
        engine.start()
        for task, answer in engine.results():
            question = asked.pop((task.id, task.seed), None)
            if question is None:  # nobody asked
                continue
            result = question.settled(answer, ledger)
            if result is None:
                asked[task.id, task.seed] = again = question.again()
                engine.submit(again.task)
                continue
            found[task.id].append(result)
            if len(found[task.id]) == seeds:
                yield _merge_results(found[task.id]), False
        for id, each in asked:
            found[id].append(Result(id, "error", reason="its judging ended without a result", seed=each))
            if len(found[id]) == seeds:
                yield _merge_results(found[id]), False
    except BaseException:  # Ctrl-C, or the consumer has closed us: nobody waits for the rest
        engine.stop()
        raise


class _Question:
    """One claim under one seed, asked of the code as it is on the disk now."""

    def __init__(
        self,
        claim: ClaimEntry,
        seed: int,
        how: Mapping[str, bool],
        before: Mapping[str, Source],
        repeated: bool = False,
    ):
        self.claim, self.seed, self.how, self.before, self.repeated = claim, seed, how, before, repeated
        self.key, self.place = fingerprint(claim, seed, before), place(claim.path)
        self.task = task_of(claim, seed, **how, sources=before)

    def again(self) -> "_Question":
        return _Question(self.claim, self.seed, self.how, sources(self.claim.path), repeated=True)

    def known(self, ledger: Ledger) -> Result | None:
        result = ledger.get(self.key, self.place)
        return result if result and (result.id, result.seed) == (self.claim.id, self.seed) else None

    def settled(self, answer: Answer, ledger: Ledger) -> Result | None:
        """The verdict, kept where that is right; None if it is not about the code on the disk and must be asked again.

        An error that the engine reports says nothing about code; errors and skips depend on more than the key covers.
        """
        result, loaded = answer.result, answer.loaded
        if not loaded:
            return result if result.verdict == "error" else self._error_result("the worker does not say what it loaded")
        if where := changed(self.before, loaded, sources(self.claim.path)):
            return (
                self._error_result(f"{where} changed while it was judged: run the check again")
                if self.repeated
                else None
            )
        if (
            result.verdict not in ("error", "skipped")
            and not self.task.truth_only
            and self._covered_by_key(answer, ledger)
        ):
            data = {path: digest for path, digest in answer.opened.items() if place(path) not in self.before}
            ledger.put(self.key, with_notices(result, self.known(ledger)), data, self.place)
        return result

    def _covered_by_key(self, answer: Answer, ledger: Ledger) -> bool:
        """Whether the key covers what the verdict rests on. If not, why the next check must judge again is told.

        Our own claims share workers, which have loaded what other claims need: of them this is not asked.
        """
        loaded = {where for where in answer.loaded if not where.startswith(place(CATALOG) + "/")}
        unseen = sorted(loaded - self.before.keys()) if self.task.home else []
        if unseen:
            why = f"it loads {unseen[0]} in a way that cannot be read from its text"
            ledger.tell(f"verdicts on {self.claim.path.name} are not remembered, since {why}")
        unsteady = next((path for path, digest in answer.opened.items() if digest == UNSTEADY), "")
        if unsteady:
            ledger.tell(f"the verdict on {self.claim.id} is not remembered, since {unsteady} {UNSTEADY}")
        expected = capability()
        if other := answer.capability if expected and answer.capability != expected else "":
            ledger.tell(f"verdicts are not remembered, since torch computes with {other} where {expected} was expected")
        return not (unseen or unsteady or other)

    def _error_result(self, reason: str) -> Result:
        return Result(self.claim.id, "error", reason=reason, seed=self.seed)


def remembered(claims: Iterable[ClaimEntry], ledger: Ledger) -> dict[str, Result]:
    """What the ledger knows about these claims as they stand now."""
    claims = list(claims)
    places = {claim.id: place(claim.path) for claim in claims}
    found = {id: ledger.get(key, places[id]) for id, key in fingerprints(claims, 0).items()}
    return {id: result for id, result in found.items() if result is not None and result.id == id}


def _merge_results(results: Sequence[Result]) -> Result:
    return merge(sorted(results, key=lambda result: result.seed))


def is_measured(result: Result) -> bool:
    """Whether it is known how sharp this check is; what does not hold or has no lies has nothing to measure."""
    return result.verdict != "holds" or all("notices" in lie for lie in result.lies)


def with_notices(result: Result, before: Result | None) -> Result:
    """A verdict reached again, with what was measured before under the same key: the code has not changed since."""
    if before is None or is_measured(result) or not is_measured(before) or before.verdict != result.verdict:
        return result
    if [lie["text"] for lie in result.lies] != [lie["text"] for lie in before.lies]:
        return result
    lies = [lie | {"notices": old["notices"]} for lie, old in zip(result.lies, before.lies, strict=True)]
    return dataclasses.replace(result, lies=lies)


def _slowest_first(claims: Iterable[ClaimEntry]) -> list[ClaimEntry]:
    """The long ones first, so that no core waits at the end."""
    return sorted(claims, key=lambda claim: -COSTS.index(claim.cost))
