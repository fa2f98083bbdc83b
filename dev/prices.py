"""What tests cost: where it is saved, and the sums by chapter."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from installation import HERE

DURATIONS = HERE / ".lemmata" / "durations.json"
# CPU seconds that the tests of a chapter may take: those that are neither slow nor in a browser, and those that are.
QUICK_SECONDS, SLOW_SECONDS = 20, 90


def chapter(nodeid: str) -> str:
    """The folder below tests or src/lemmata; what lies in neither's folders is the project's."""
    parts = Path(nodeid.split("::")[0]).parts
    folders = parts[2:-1] if parts[0] == "src" else parts[1:-1]
    return folders[0] if folders else "project"


def lines(found: dict[str, dict[str, Any]]) -> list[str]:
    """A row for each chapter, with a word where it spends more than it may."""
    rows: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for nodeid, price in found.items():
        row = rows[chapter(nodeid)]
        row[0] += 1
        row[1 + (2 if "browser" in price["marks"] else 1 if "slow" in price["marks"] else 0)] += price["spent"]
    rows["together"] = [sum(column) for column in zip(*rows.values(), strict=True)] or [0, 0.0, 0.0, 0.0]
    table = [f"{'tests':>7}{'quick':>9}{'slow':>9}{'browser':>9}  chapter"]
    for name, (tests, quick, slow, browser) in rows.items():
        dear = name != "together" and (quick > QUICK_SECONDS or slow + browser > SLOW_SECONDS)
        more = f"  more than {QUICK_SECONDS} quick, {SLOW_SECONDS} slow and browser" if dear else ""
        table.append(f"{tests:7.0f}{quick:9.1f}{slow:9.1f}{browser:9.1f}  {name}{more}")
    return table
