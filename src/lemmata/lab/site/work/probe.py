"""The job "probe": one check with one argument at a chosen value; without a value, what there is to choose."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lemmata.judge.probe import dials, probe_claim
from lemmata.lab.site.work.judge import find_claim


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Probe lie number `lie` of the claim `id` at `value` under `seed`; a value it cannot take is a "problem"."""
    entry, claim = find_claim(parameters["id"])
    if "value" not in parameters:
        return {"dials": [asdict(dial) for dial in dials(claim)]}
    try:
        return probe_claim(claim, parameters["lie"], parameters["value"], parameters["seed"], entry.cost)
    except ValueError as error:
        return {"problem": str(error)}
