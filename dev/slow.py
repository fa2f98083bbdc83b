"""`python3 dev.py slow`: tests/slow.txt anew, from what each test took in the last `python3 dev.py test --all`."""

import json
from collections import defaultdict

from installation import HERE, Failed, say
from prices import DURATIONS

SLOW = HERE / "tests" / "slow.txt"
SECONDS = 2.0  # of CPU, of a test with all its parameters


def main() -> None:
    if not DURATIONS.is_file():
        raise Failed("no durations yet: `python3 dev.py test --all` measures them")
    measured = json.loads(DURATIONS.read_text(encoding="utf-8"))
    slow = slow_tests({nodeid: price["cpu"] for nodeid, price in measured.items()})
    before = listed()
    SLOW.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
    added, gone = len(set(slow) - before), len(before - set(slow))
    say(f"{len(slow)} slow tests, {added} new and {gone} no longer: {SLOW.relative_to(HERE)}")


def listed() -> set[str]:
    """What the list names."""
    return set(SLOW.read_text(encoding="utf-8").split("\n")) - {""} if SLOW.is_file() else set()


def slow_tests(seconds: dict[str, float]) -> list[str]:
    """The tests, without their parameters, that take more than a test may."""
    whole: dict[str, float] = defaultdict(float)
    for nodeid, cpu in seconds.items():
        whole[function_id(nodeid)] += cpu
    return sorted(name for name, cpu in whole.items() if cpu > SECONDS)


def function_id(nodeid: str) -> str:
    """The name of a test without its parameters."""
    return nodeid.split("[")[0]
