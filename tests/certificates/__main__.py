"""The long form: `python -m tests.certificates --instances 10000` prints what became of them, function by function."""

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.certificates.catalogue import BY_NAME, part
from tests.certificates.registry import HEAD, Tally

CHUNK = 250  # instances that one process takes at a time


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.certificates", description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000, help="for each function; slow ones get their share")
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="names of functions", choices=BY_NAME, default=list(BY_NAME))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--broken", action="store_true", help="drive what is wrong on purpose instead")
    asked = parser.parse_args()
    print(HEAD, flush=True)
    told = []
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        rows = [(name, fault) for name in asked.only for fault in (BY_NAME[name].broken if asked.broken else [None])]
        waiting = []
        for name, fault in rows:
            count = max(1, round(asked.instances * BY_NAME[name].share))
            starts = range(asked.first, asked.first + count, CHUNK)
            sizes = [min(CHUNK, asked.first + count - first) for first in starts]
            tasks = [pool.submit(part, name, n, asked.seed, k, fault) for k, n in zip(starts, sizes, strict=True)]
            waiting.append((name, fault, tasks))
        for name, fault, tasks in waiting:
            tally = Tally(f"  {fault}" if fault else name)
            for task in tasks:
                tally.add(task.result())
            print(tally, flush=True)
            told += tally.wrong + tally.broke
    print("\n".join(told[:100]))
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())
