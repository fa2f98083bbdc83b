"""Judging one claim: which verdict follows from what the truth and the lies do."""

import json
import math
import random

import numpy
import pytest
import torch

from lemmata.judge import Evidence, Figure, Line, Skip, claim, close, exactly, judge, lie, mean_is
from lemmata.judge.draw import Draw


def make(function, *lies, id="test.claim", cost="quick"):
    for each in reversed(lies):
        function = each(function)
    return claim(id, cost=cost)(function)


def verdict(function, *lies):
    result = judge(make(function, *lies))
    assert json.loads(json.dumps(result.to_json(), allow_nan=False)) == result.to_json()
    return result


def raising(error):
    def check(draw, x=1):
        if x != 1:
            raise error
        return exactly(x, 1)

    return check


# --- The truth ---


def test_a_true_claim_that_rejects_its_lies_holds():
    result = verdict(lambda draw, x=2: exactly(x * x, 4), lie("three", printed="003/1", x=3), lie("five", x=5))
    assert (result.verdict, result.reason, result.by) == ("holds", "", "exact")
    assert [(told["text"], told["printed"], told["rejected"]) for told in result.lies] == [
        ("three", "003/1", True),
        ("five", "", True),
    ]
    assert result.lies[0]["how"] == "measured 9, predicted 4"
    assert result.lies[0]["evidence"]["measured"] == 9
    assert result.evidence["predicted"] == 4
    assert result.seconds >= 0


def test_a_false_claim_is_refuted_and_its_lies_are_not_heard():
    result = verdict(lambda draw, x=2: exactly(x * x, 5), lie("three", x=3))
    assert (result.verdict, result.reason) == ("refuted", "measured 4, predicted 5")
    assert result.lies == [{"text": "three", "printed": "", "evidence": None, "rejected": None, "how": "not run"}]


def test_a_check_that_raises_is_an_error_with_its_place():
    result = verdict(lambda draw, x=1: 1 / 0, lie("two", x=2))
    assert result.verdict == "error"
    assert result.reason.startswith("ZeroDivisionError: division by zero (test_runner.py:")


def test_the_place_is_the_users_line_and_not_ours():
    assert "(test_runner.py:" in verdict(lambda draw: torch.zeros(2, 3) @ torch.zeros(2, 3)).reason
    assert "(test_runner.py:" in verdict(lambda draw: close(torch.zeros(0), torch.zeros(0))).reason


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (RecursionError(), "RecursionError: without a message"),
        (MemoryError("two\nlines"), "MemoryError: two lines"),
        (ValueError("long " * 1000), "ValueError: long long"),
    ],
)
def test_whatever_is_raised_is_one_line(error, told):
    def check(draw):
        raise error

    result = verdict(check)
    assert result.verdict == "error"
    assert result.reason.startswith(told)
    assert len(result.reason) < 400
    assert "\n" not in result.reason


def test_ctrl_c_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        judge(make(raising_interrupt))


def raising_interrupt(draw):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("returned", "told"), [(None, "nothing"), (True, "a bool"), (1.0, "a float")])
def test_a_check_must_return_evidence(returned, told):
    result = verdict(lambda draw, x=1: returned, lie("two", x=2))
    assert result.verdict == "error"
    assert result.reason == f"the check returned {told}: return evidence, for example close(measured, predicted)"


def test_nan_is_an_error_of_the_check():
    result = verdict(lambda draw, x=1.0: close(math.nan, x), lie("two", x=2.0))
    assert (result.verdict, result.reason) == ("error", "the measurement is NaN, which decides nothing")


def test_what_the_machine_lacks_is_skipped():
    def check(draw):
        raise Skip("needs two GPUs")

    assert (verdict(check).verdict, verdict(check).reason) == ("skipped", "needs two GPUs")


def test_degenerate_instances_are_an_error():
    result = verdict(lambda draw, x=1: draw.until(lambda: 0, lambda _: False, tries=3), lie("two", x=2))
    assert result.verdict == "error"
    assert result.reason.startswith("Degenerate: no instance among 3 draws was accepted")
    result = verdict(lambda draw, x=1: close(torch.zeros(0), torch.zeros(0)), lie("two", x=2))
    assert result.reason.startswith("ValueError: close was given empty tensors")


def test_too_many_samples_are_weak():
    def check(draw, x=0.0):
        return mean_is(lambda v: v, draw.normal, x, effect=1e-4)

    result = judge(make(check, lie("one", x=1.0)), cost="instant")
    assert result.verdict == "weak"
    assert "of class instant it may take 300,000" in result.reason
    assert judge(make(check, lie("one", x=1.0), cost="instant")).reason == result.reason


# --- The lies ---


def test_a_claim_without_lies_is_weak():
    result = verdict(lambda draw: exactly(1, 1))
    assert (result.verdict, result.reason) == ("weak", "there is no lie that the check rejects: add one with @lie")


def test_a_lie_that_is_true_makes_the_claim_weak():
    result = verdict(lambda draw, x=2: exactly(x * x, 4), lie("minus two", x=-2), lie("three", x=3))
    assert (result.verdict, result.reason) == ("weak", "accepted the lie: minus two")
    assert [told["rejected"] for told in result.lies] == [False, True]
    assert result.lies[0]["how"] == "accepted"


def test_a_lie_equal_to_the_truth_in_another_type_is_accepted():
    """The decorator cannot know that 2.0 is 2 to this check; the check itself does."""
    assert verdict(lambda draw, x=2: exactly(x * x, 4), lie("two", x=2.0)).verdict == "weak"


def test_a_lie_that_raises_is_an_error_with_a_hint():
    result = verdict(raising(ValueError("cannot be")), lie("two", x=2))
    assert result.verdict == "error"
    assert result.reason.startswith("the lie 'two' raised ValueError: cannot be (test_runner.py:")
    assert result.reason.endswith("if that is how it must fail, declare raises=ValueError")
    assert result.lies[0]["rejected"] is None


def test_a_lie_is_rejected_by_the_exception_it_promises():
    result = verdict(raising(ValueError("cannot be")), lie("two", raises=ValueError, x=2))
    assert result.verdict == "holds"
    assert result.lies[0]["how"].startswith("ValueError: cannot be (test_runner.py:")


class Narrower(ValueError):
    pass


@pytest.mark.parametrize("error", [TypeError("other"), Narrower("a subclass is not it"), Exception("nor a base")])
def test_no_other_exception_will_do(error):
    result = verdict(raising(error), lie("two", raises=ValueError, x=2))
    assert result.verdict == "weak"
    assert result.lies[0]["rejected"] is False
    assert result.lies[0]["how"].startswith(f"ValueError was promised, but it raised {type(error).__name__}: ")


def test_a_lie_that_promised_to_raise_must_not_return():
    result = verdict(lambda draw, x=1: exactly(x, 1), lie("two", raises=ValueError, x=2))
    assert result.verdict == "weak"
    assert result.lies[0]["how"] == "did not raise ValueError"


def test_nan_does_not_reject_a_lie():
    result = verdict(lambda draw, x=1.0: close(x, 1.0), lie("nan", x=math.nan))
    assert result.verdict == "weak"
    assert result.lies[0]["how"] == "the measurement is NaN, which decides nothing"


def test_weak_evidence_does_not_reject_a_lie():
    def check(draw, effect=1.0):
        return mean_is(lambda v: v, draw.normal, 0.0, effect=effect)

    result = verdict(check, lie("too small", effect=1e-6))
    assert result.verdict == "weak"
    assert result.lies[0]["how"].startswith("needs ")


@pytest.mark.parametrize("returned", [None, True])
def test_a_lie_must_return_evidence_too(returned):
    result = verdict(lambda draw, x=1: exactly(x, 1) if x == 1 else returned, lie("two", x=2))
    assert result.verdict == "error"
    assert result.reason.startswith("the lie 'two': the check returned ")


def test_a_broken_lie_outweighs_an_accepted_one():
    def check(draw, x=1):
        return exactly(1, 1) if x < 3 else None

    assert verdict(check, lie("accepted", x=2), lie("broken", x=3)).verdict == "error"


# --- State ---


def test_the_truth_and_every_lie_see_the_same_draw():
    seen = []

    def check(draw, x=1):
        seen.append((draw.normal(3), torch.randn(3), random.random(), numpy.random.rand()))  # noqa: NPY002
        return exactly(x, 1)

    assert verdict(check, lie("two", x=2), lie("three", x=3)).verdict == "holds"
    first = seen[0]
    assert first[0].equal(Draw("test.claim").normal(3))
    for other in seen[1:]:
        assert first[0].equal(other[0])
        assert first[1].equal(other[1])
        assert first[2:] == other[2:]


def state():
    return {
        "python": random.getstate(),
        "numpy": numpy.random.get_state()[1].tolist(),  # noqa: NPY002
        "torch": torch.random.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision": torch.get_float32_matmul_precision(),
    }


def meddle(draw, x=1):
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)  # noqa: NPY002
    torch.randn(5)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    if x == 3:
        raise ValueError
    return exactly(x, 1)


def test_whatever_a_claim_does_to_the_world_is_undone():
    before = state()
    assert verdict(meddle, lie("two", x=2), lie("three", raises=ValueError, x=3)).verdict == "holds"
    assert state() == before


@pytest.mark.long  # torch imports its compiler to set this flag
def test_the_flag_for_deterministic_algorithms_is_given_back():
    def check(draw):
        torch.use_deterministic_algorithms(True)
        return exactly(1, 1)

    judge(make(check))
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_verdict_of_others_is_unchanged():
    def honest(draw, x=0.0):
        weights = torch.randn(100, 100)
        return close(weights.sum() + float(draw.normal(3).sum()), x, within=1000.0).showing(
            Figure("sum", marks=[Line([0], [weights.sum()])])
        )

    target = make(honest, lie("far", x=1e6))
    alone = judge(target)
    judge(make(meddle, lie("two", x=2), id="test.meddler"))
    torch.randn(17)
    after = judge(target)
    assert alone.evidence == after.evidence
    assert alone.lies == after.lies


def test_checks_compute_on_one_thread_and_in_single_precision_by_default():
    seen = {}

    def check(draw):
        seen["threads"], seen["dtype"] = torch.get_num_threads(), torch.get_default_dtype()
        return exactly(1, 1)

    torch.set_num_threads(2)
    try:
        judge(make(check))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert seen == {"threads": 1, "dtype": torch.float32}


def test_another_seed_draws_another_instance():
    target = make(lambda draw, x=0.0: close(draw.normal(1), x, within=100.0), lie("far", x=1e6))
    assert judge(target, seed=0).evidence == judge(target, seed=0).evidence
    assert judge(target, seed=0).evidence != judge(target, seed=1).evidence
    assert judge(target, seed=1).seed == 1


def test_evidence_built_by_hand_is_welcome():
    result = verdict(
        lambda draw, x=1: Evidence("training", torch.tensor(1.5), x, margin=0.5, detail="curve"), lie("three", x=3)
    )
    assert (result.verdict, result.by) == ("holds", "training")


def test_evidence_built_by_hand_holds_by_its_numbers_only():
    result = verdict(lambda draw, x=1: Evidence("exact", x, 99), lie("ninety-nine", x=99))
    assert (result.verdict, result.reason) == ("refuted", "measured 1, predicted 99")
    wide = verdict(lambda draw, x=1: Evidence("numeric", x, 99, margin=math.inf), lie("two", x=2))
    assert (wide.verdict, wide.reason) == ("error", "the margin is infinite, which decides nothing")
