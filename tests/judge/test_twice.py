"""The truth run twice: what depends on the clock, the process or the order of calls is no check."""

import itertools
import math
import time

import torch

from lemmata.judge import Figure, Line, all_of, claim, close, exactly, judge, lie


def make(function, *lies):
    for each in reversed(lies):
        function = each(function)
    return claim("test.claim")(function)


def clockwork(draw, x=1):
    """Held, refuted, held, refuted: a check whose result depends on the time."""
    return close(math.sin(time.time_ns()), 0.0, within=2.0) if x == 1 else close(x, 1, within=0.5)


def test_a_check_that_depends_on_the_time_is_caught_when_the_truth_runs_twice():
    clocked = make(clockwork, lie("two", x=2))
    assert judge(clocked).verdict == "holds"
    result = judge(clocked, twice=True)
    assert result.verdict == "error"
    assert result.reason.startswith(
        "the truth gave two different results from the same seed: draw from `draw`, never from the clock or a global "
        "generator (measured "
    )
    assert [told["rejected"] for told in result.lies] == [True]


def test_what_a_lie_leaves_behind_in_the_process_is_caught_too():
    calls = []

    def check(draw, x=1):
        calls.append(x)
        return close(x, 1, within=0.5, detail=f"call {len(calls)}")

    assert judge(make(check, lie("two", x=2)), twice=True).reason.endswith("(detail call 1, then call 3)")
    assert calls == [1, 2, 1]


def test_a_refuted_claim_is_run_twice_as_well():
    values = iter([2, 1])
    result = judge(make(lambda draw, x=1: exactly(next(values), x), lie("two", x=2)), twice=True)
    assert result.verdict == "error"
    assert result.reason.endswith("(holds False, then True)")


def test_a_truth_that_raises_the_second_time_is_caught():
    values = [1]
    result = judge(make(lambda draw: exactly(values.pop(), 1)), twice=True)
    assert (result.verdict, "(then IndexError: pop from empty list" in result.reason) == ("error", True)


def test_what_draws_from_the_sealed_generators_is_steady():
    steady = make(lambda draw, x=1.0: close(draw.normal(1).abs() + torch.rand(1), x, within=9), lie("far", x=99.0))
    assert judge(steady, twice=True).verdict == "holds"


def test_figures_and_parts_must_be_the_same_too():
    count = itertools.count()

    def drawn(draw, x=1):
        return exactly(x, 1).showing(Figure("f", marks=[Line([0], [next(count)])]))

    def pieces(draw, x=1):
        return all_of(exactly(x, 1), close(next(count), 0, within=99))

    assert "(figure " in judge(make(drawn, lie("two", x=2)), twice=True).reason
    assert "(part 2 of 2: measured 3.0, then 5.0)" in judge(make(pieces, lie("two", x=2)), twice=True).reason


def test_the_second_run_is_not_counted_among_the_seconds_of_a_claim(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: clock[0])

    def check(draw, x=1):
        clock[0] += 10.0
        return exactly(x, 1)

    assert judge(make(check, lie("two", x=2)), twice=True).seconds == 20.0
