"""The job "judge": the truth and every lie of one claim, the verdict kept in the ledger as `lemmata check` keeps it."""

import importlib
import time
from collections.abc import Callable
from typing import Any

from lemmata import catalog
from lemmata.catalog import ClaimEntry
from lemmata.judge.decorators import Claim
from lemmata.judge.draw import seed_of
from lemmata.judge.fingerprint import changed, fingerprint, sources
from lemmata.judge.ledger import Ledger
from lemmata.judge.loaded import place
from lemmata.judge.opened_files import UNSTEADY, digests, watch
from lemmata.judge.runner import judge, sealed_randomness
from lemmata.judge.session import with_notices

# When the first of these was imported, or before: the imports took at least the processor time spent so far.
STARTED = time.time_ns() - time.process_time_ns()
watch()


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Judge the claim `id` under `seed`; tells "truth", then "lie 1 of 7" and so on, before each is run."""
    entry, claim = find_claim(parameters["id"])
    seed, lies = parameters["seed"], len(claim.lies)
    if _was_edited(entry):
        raise ValueError("the code of this claim was edited after the page started: start lemmata serve again")

    def announce(k: int) -> None:
        stage = f"lie {k} of {lies}" if k else "truth"
        tell({"event": "progress", "stage": stage, "done": k, "of": lies + 1})

    before = sources(entry.path)
    result = judge(claim, seed, entry.cost, announce)
    if where := changed(before, {}, sources(entry.path)):
        raise ValueError(f"{where} changed while it was judged: start lemmata serve again")
    if result.verdict not in ("error", "skipped"):  # those depend on more than the key covers
        ledger, key, at = Ledger(), fingerprint(entry, seed, before), place(entry.path)
        data = digests(entry.path, before)
        if UNSTEADY not in data.values():
            ledger.put(key, with_notices(result, ledger.get(key, at)), data, at)
    return result.to_json()


def find_claim(id: str) -> tuple[ClaimEntry, Claim]:
    """A claim of the catalogue, imported; what a file draws on import is sealed off, as in the judge's own workers."""
    entry = catalog.load().claims.get(id)
    if entry is None:
        raise ValueError(f"there is no claim {id!r}")
    with sealed_randomness(seed_of(entry.path.stem, 0)):
        module = importlib.import_module(entry.module)
    claim = getattr(module, entry.function, None)
    if not isinstance(claim, Claim) or claim.id != id:
        raise ValueError(f"{entry.path.name} has no claim {id!r} under the name {entry.function}")
    return entry, claim


def _was_edited(entry: ClaimEntry) -> bool:
    """A verdict of the code in memory must not be kept under the key of newer code on the disk.

    The first two of a stamp are the times at which content and name changed: an older file copied there has a new one.
    """
    return any(max(source.stamp[:2]) > STARTED for source in sources(entry.path).values())
