"""From repeats to rows: medians, spread, ratios, targets, and who computed something else."""

import json
import math
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from lemmata import __version__
from lemmata.bench.registry import BenchEntry
from lemmata.bench.rounds import Measured, installed
from lemmata.files import write_whole

__all__ = ["BenchRow", "Target", "rows_of", "save_results"]


@dataclass
class Target:
    """What is good enough against one peer, and whether it was reached; None if the peer was not measured."""

    peer: str
    at_most: float
    ratio: float | None = None
    met: bool | None = None

    @property
    def words(self) -> str:
        return f"not slower than {self.peer}" if self.at_most == 1 else f"at most {self.at_most:g} x {self.peer}"


@dataclass
class BenchRow:
    """One line of the table. Ratios are of medians; `None` means that there is nothing to tell, and `reason` why."""

    name: str
    who: str
    size: str
    median_s: float | None = None
    peak_bytes: int | None = None
    ratio_to_best_peer: float | None = None
    limit_s: float | None = None
    ratio_to_limit: float | None = None
    spread_s: float | None = None  # from the first quartile to the third
    repeats: int = 0
    role: str = "ours"
    case: str = ""
    targets: list["Target"] = field(default_factory=list)
    reason: str = ""


def rows_of(entry: BenchEntry, case: str, measured: Sequence[Measured]) -> list[BenchRow]:
    """The rows of one case; the limit is no row, but a column of all."""
    disagreements(measured, entry.within)
    limit = next((one for one in measured if one.contender.role == "limit"), None)
    rows = [_result_row(entry, case, one) for one in measured if one is not limit]
    sound = [row for row in rows if row.median_s is not None and not row.reason]
    best = min((row.median_s for row in sound if row.role == "peer" and row.median_s), default=None)
    # The quickest repeat, not the median: a limit must not rise because the machine was busy meanwhile.
    least = min(limit.seconds) if limit and limit.seconds and not limit.reason else None
    for row in rows:
        row.limit_s = least
        if row.median_s is not None:
            row.ratio_to_best_peer = row.median_s / best if best else None
            row.ratio_to_limit = row.median_s / least if least else None
    _judge_targets(entry, case, rows)
    return rows


def disagreements(measured: Sequence[Measured], within: float) -> None:
    """Note who computed something else than the first that has an answer: nobody may win that way."""
    answering = [one for one in measured if one.answer and not one.reason]
    for one in answering[1:]:
        first = answering[0].answer
        for name in {**first, **one.answer}:
            told, expected = one.answer.get(name, math.nan), first.get(name, math.nan)
            if not math.isclose(told, expected, rel_tol=within, abs_tol=within):
                other = answering[0].contender.who
                one.reason = f"disagrees: {name} is {told:.8g}, {expected:.8g} with {other}"
                break


def _result_row(entry: BenchEntry, case: str, one: Measured) -> BenchRow:
    row = BenchRow(entry.name, one.contender.who, entry.cases[case], role=one.contender.role, case=case)
    row.reason, row.repeats, row.peak_bytes = one.reason, len(one.seconds), one.peak_bytes
    if one.seconds and not one.reason.startswith("failed"):
        row.median_s = statistics.median(one.seconds)
    if len(one.seconds) > 1:
        first, _, third = statistics.quantiles(one.seconds, n=4, method="inclusive")
        row.spread_s = third - first
    return row


def _judge_targets(entry: BenchEntry, case: str, rows: Sequence[BenchRow]) -> None:
    """Hold the first contender of ours against the targets, as far as their peers are here."""
    judged = next(row for row in rows if row.role == "ours")
    peers = {row.who: row.median_s for row in rows if row.role == "peer" and not row.reason and row.median_s}
    judged.targets = [Target(peer, most) for peer, most in entry.targets_for(case).items()]
    for target in judged.targets:
        if judged.median_s is not None and not judged.reason and target.peer in peers:
            target.ratio = judged.median_s / peers[target.peer]
            target.met = target.ratio <= target.at_most


def save_results(
    folder: Path, entry: BenchEntry, rows: Sequence[BenchRow], device: str, day: date | None = None, **facts: Any
) -> Path:
    """Write NAME-DEVICE-DATE.json with device, versions and rows into a folder; a second one of a day replaces it.

    `facts` are what else decides the numbers, such as threads and the machine's load.
    """
    today = (day or date.today()).isoformat()
    facts = {"format": 1, "name": entry.name, "date": today, "device": device_in_words(device)} | facts
    versions = {
        "lemmata": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }
    packages = ["torch", "numpy", *sorted({one.needs for one in entry.contenders if one.needs})]
    versions |= {package: installed(package) or "absent" for package in packages}
    path = folder / f"{entry.name}-{device.replace(':', '')}-{today}.json"
    content = facts | {"versions": versions, "rows": [asdict(row) for row in rows]}
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    return path


def device_in_words(device: str) -> str:
    """What computes: the card's own name, or the processor's."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        named = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        named = platform.processor() or platform.machine()
    return named if device == "cpu" else f"{named} ({device})"
