"""The linear scan against torch's associative_scan compiled by inductor, which takes a minute or two to compile."""

from collections.abc import Callable

import torch

from lemmata.bench.contests.linear_scan import (
    Recurrence,
    Results,
    associative,
    by_linear_scan,
    copying,
    in_numbers,
    recurrence,
)
from lemmata.bench.registry import agreement, entry, limit, ours, peer


@entry(
    "scan_compiled",
    title="Linear scan against a compiled one",
    measures="all states from gates that vary in time, compiled beforehand",
    cases={"forward": "(4, 4096, 256) float32, forward"},
    targets={"compiled associative_scan": 1.0},
    devices="cpu",
)
def same_recurrence(case: str, device: str) -> Recurrence:
    """That of the entry scan."""
    return recurrence(case, device)


@ours("lemmata")
def ours_again(problem: Recurrence) -> Callable[[], Results]:
    """As it comes."""
    return by_linear_scan(problem)


@peer("compiled associative_scan")
def by_compiled_scan(problem: Recurrence) -> Callable[[], Results]:
    """Compiled before the clock starts."""
    compiled = torch.compile(associative)
    compiled(problem.a, problem.b)
    return lambda: (compiled(problem.a, problem.b),)


@limit("copying as many bytes: 12 for each number")
def copying_again(problem: Recurrence) -> Callable[[], object]:
    """As in the entry scan."""
    return copying(problem)


@agreement(within=1e-4)
def in_numbers_again(results: Results) -> dict[str, float]:
    """As in the entry scan."""
    return in_numbers(results)
