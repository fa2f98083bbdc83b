"""Judging one claim in this process: the truth, then every lie, each from the same draw."""

import dataclasses
import importlib
import math
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lemmata.judge.decorators import Claim, Lie
from lemmata.judge.draw import Draw, anew, seed_of
from lemmata.judge.evidence import Evidence, Skip
from lemmata.judge.evidence_words import sentence
from lemmata.judge.sealed_randomness import sealed_randomness
from lemmata.judge.statistics import cost_class
from lemmata.judge.verdict import Result

__all__ = ["judge"]

# Where an exception passed through on its way: its place is the last line that is in neither.
LIBRARIES = tuple(str(Path(file).parent) for file in (__file__, torch.__file__))

UNSTEADY = (
    "the truth gave two different results from the same seed: "
    "draw from `draw`, never from the clock or a global generator"
)


def judge(
    claim: Claim,
    seed: int = 0,
    cost: str | None = None,
    tell: Callable[[int], None] | None = None,
    twice: bool = False,
    truth_only: bool = False,
) -> Result:
    """Run the truth and, if it holds, every lie; say what follows. `tell(k)` announces the truth (0) and lie k.

    Its seconds are those of the processor: a machine that does other things as well must not accuse a claim. `twice`
    runs the truth again after the lies, uncounted, when the clock, the process and the order are others: the evidence
    must be the same, but for the last digits, which LAPACK rounds by where in memory a matrix happens to lie.
    `truth_only` leaves the lies out.
    """
    started = time.process_time()
    token = cost_class.set(cost or claim.cost)
    try:
        result = _judge_claim(claim, seed, tell or (lambda k: None), truth_only)
        result = dataclasses.replace(result, seconds=round(time.process_time() - started, 4))
        changed = _changed_evidence(claim, seed, result.evidence) if twice and result.evidence else ""
    finally:
        cost_class.reset(token)
    return dataclasses.replace(result, verdict="error", reason=f"{UNSTEADY} ({changed})") if changed else result


def _judge_claim(claim: Claim, seed: int, tell: Callable[[int], None], truth_only: bool) -> Result:
    unrun = {"evidence": None, "rejected": None, "how": "not run"}
    unheard = [{"text": lie.text, "printed": lie.printed, **unrun} for lie in claim.lies]
    tell(0)
    truth = attempt(claim, seed, {})
    if isinstance(truth, Skip):
        return Result(claim.id, "skipped", reason=str(truth), lies=unheard, seed=seed)
    fault = _evidence_fault(truth)
    if fault:
        return Result(claim.id, "error", reason=fault, lies=unheard, seed=seed)
    assert isinstance(truth, Evidence)
    verdict = "weak" if truth.weak else "holds" if truth.holds else "refuted"
    known = {"by": truth.by, "evidence": truth.to_json(), "seed": seed}
    if verdict != "holds":
        return Result(claim.id, verdict, reason=truth.weak or sentence(vars(truth)), lies=unheard, **known)
    if truth_only:
        return Result(claim.id, verdict, lies=unheard, truth_only=True, **known)
    heard = []
    for k, lie in enumerate(claim.lies, 1):
        tell(k)
        heard.append(_hear_lie(claim, lie, seed))
    broken = next((lie["how"] for lie in heard if lie["rejected"] is None), "")
    accepted = next((lie["text"] for lie in heard if lie["rejected"] is False), "")
    if broken:
        verdict, reason = "error", broken
    elif not heard:
        verdict, reason = "weak", "there is no lie that the check rejects: add one with @lie"
    elif accepted:
        verdict, reason = "weak", f"accepted the lie: {accepted}"
    else:
        reason = ""
    return Result(claim.id, verdict, reason=reason, lies=heard, **known)


def _changed_evidence(claim: Claim, seed: int, evidence: dict[str, Any]) -> str:
    """What is not as it was when the truth is run once more, its trainings too."""
    token = anew.set(True)
    try:
        again = attempt(claim, seed, {})
    finally:
        anew.reset(token)
    if not isinstance(again, Evidence):
        return f"then {_evidence_fault(again)}"
    return _evidence_difference(evidence, again.to_json())


def _evidence_difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The first entry in which two forms of evidence differ; nothing where they are the same."""
    key = next((key for key in before | after if not _is_same_entry(before.get(key), after.get(key))), "")
    pieces, others = before.get(key), after.get(key)
    if key == "parts" and pieces and others and len(pieces) == len(others):
        k = next(k for k in range(len(pieces)) if not _is_same_entry(pieces[k], others[k]))
        return f"part {k + 1} of {len(pieces)}: {_evidence_difference(pieces[k], others[k])}"
    return f"{key} {_brief_value(pieces)}, then {_brief_value(others)}" if key else ""


def _is_same_entry(before: Any, after: Any) -> bool:
    """Equal, where numbers may differ in their last digits: what is drawn at random differs in the first ones."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_is_same_entry(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_is_same_entry, before, after))
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(before) and math.isnan(after))
    return type(before) is type(after) and before == after


def _brief_value(value: Any) -> str:
    return str(value) if len(str(value)) <= 60 else f"{str(value)[:57]}..."


def _hear_lie(claim: Claim, lie: Lie, seed: int) -> dict[str, Any]:
    """One lie: rejected True or False, or None where the check itself broke on it."""
    outcome = attempt(claim, seed, {lie.argument: lie.value})
    told = {"text": lie.text, "printed": lie.printed, "evidence": None}
    if isinstance(outcome, BaseException) and lie.raises and type(outcome) is lie.raises:
        return told | {"rejected": True, "how": place(outcome)}
    if isinstance(outcome, BaseException) and lie.raises:
        how = f"{lie.raises.__name__} was promised, but it raised {place(outcome)}"
        return told | {"rejected": False, "how": how}
    if isinstance(outcome, BaseException):
        name = type(outcome).__name__
        hint = f"if that is how it must fail, declare raises={name}"
        return told | {"rejected": None, "how": f"the lie {lie.text!r} raised {place(outcome)}; {hint}"}
    if not isinstance(outcome, Evidence):
        return told | {"rejected": None, "how": f"the lie {lie.text!r}: {_evidence_fault(outcome)}"}
    told["evidence"] = outcome.showing(None).to_json()
    if lie.raises:
        return told | {"rejected": False, "how": f"did not raise {lie.raises.__name__}"}
    if outcome.undecided or outcome.weak:
        return told | {"rejected": False, "how": outcome.weak or _evidence_fault(outcome)}
    return told | {"rejected": not outcome.holds, "how": sentence(vars(outcome)) if not outcome.holds else "accepted"}


def attempt(claim: Claim, seed: int, changed: dict[str, Any]) -> Any:
    """The evidence, or the exception that came instead."""
    with sealed_randomness(seed_of(claim.id, seed)):
        try:
            return claim(Draw(claim.id, seed), **changed)
        except (Exception, SystemExit) as error:
            return error


def _evidence_fault(outcome: Any) -> str:
    """Why this is no evidence, or nothing."""
    if isinstance(outcome, BaseException):
        return place(outcome)
    if not isinstance(outcome, Evidence):
        name = "nothing" if outcome is None else f"a {type(outcome).__name__}"
        return f"the check returned {name}: return evidence, for example close(measured, predicted)"
    if not outcome.undecided or outcome.weak:
        return ""
    return f"the {'margin is infinite' if outcome.margin == math.inf else 'measurement is NaN'}, which decides nothing"


def place(error: BaseException) -> str:
    """The exception in one line, with the file and line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)] or frames
    where = f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})" if ours else ""
    message = " ".join(str(error).split()) or "without a message"
    return f"{type(error).__name__}: {message[:300]}{where}"


def main(arguments: list[str]) -> int:
    """Judge the claims of one module here and now: `python -m lemmata.judge.runner MODULE [ID...]`."""
    torch.set_num_threads(1)
    module = importlib.import_module(arguments[0])
    worst = 0
    for claim in (value for value in vars(module).values() if isinstance(value, Claim)):
        if arguments[1:] and claim.id not in arguments[1:]:
            continue
        result = judge(claim)
        worst |= result.verdict != "holds"
        print(f"{result.verdict:8} {claim.id:36} {result.seconds:7.3f} s  {result.by:12} {result.reason}")
        print(
            f"         {(result.evidence or {}).get('measured')} against {(result.evidence or {}).get('predicted')}",
            end="",
        )
        print(f" ± {(result.evidence or {}).get('margin')}  {(result.evidence or {}).get('detail')}")
        for lie in result.lies:
            print(f"         {'rejected' if lie['rejected'] else 'ACCEPTED':9} {lie['text']}: {lie['how']}")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
