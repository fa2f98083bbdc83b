"""The long form: `python -m tests.certificates --instances 10000` prints what became of them, function by function."""

import argparse
import sys
import time

import torch
from tests.certificates.catalogue import CERTIFICATES
from tests.certificates.registry import HEAD, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000, help="for each function; slow ones get their share")
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="names of functions")
    parser.add_argument("--broken", action="store_true", help="drive the ones that are wrong on purpose as well")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [c for c in CERTIFICATES if not asked.only or c.name in asked.only]
    if not chosen:
        parser.error(f"unknown function, known are: {', '.join(c.name for c in CERTIFICATES)}")
    print(f"{HEAD} {'seconds':>8}", flush=True)
    wrong = []
    for certificate in chosen:
        count = max(1, round(asked.instances * certificate.share))
        start = time.perf_counter()
        tally = run(certificate, count, asked.seed, asked.first)
        print(f"{tally} {time.perf_counter() - start:8.1f}", flush=True)
        wrong += tally.wrong + tally.broke
        for name, subject in certificate.broken.items() if asked.broken else ():
            found = run(certificate, count, asked.seed, asked.first, subject, patience=count)
            print(f"  broken: {name:40} wrong in {len(found.wrong):,} of {found.instances:,}", flush=True)
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
