"""The job "probe": one check with one argument at a chosen position; without one, what there is to choose."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lemmata.judge.moved_claim import dials, probe_claim
from lemmata.lab.site.work.judge import find_claim


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Probe lie number `lie` of the claim `id` at position `at` under `seed`; one that it lacks is a "problem".

    `part` leads to the judge whose picture is wanted, as in `figure_of`.
    """
    entry, claim = find_claim(parameters["id"])
    found = dials(claim)
    if "at" not in parameters:
        return {"dials": [asdict(dial) for dial in found]}
    try:
        if parameters["lie"] >= len(found):
            raise ValueError(f"lie must be from 0 to {len(found) - 1}, got {parameters['lie']}")
        value = found[parameters["lie"]].value(parameters["at"])
        return probe_claim(claim, parameters["lie"], value, parameters["seed"], entry.cost, parameters["part"])
    except ValueError as error:
        return {"problem": str(error)}
