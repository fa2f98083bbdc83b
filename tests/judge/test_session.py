"""Judging many claims: the ledger is asked first, told at once, and never told what it should not keep."""

import dataclasses

import pytest

from lemmata.catalog import ClaimEntry
from lemmata.judge.engine import Answer, Task
from lemmata.judge.fingerprint import fingerprint
from lemmata.judge.ledger import Ledger
from lemmata.judge.opened_files import digest
from lemmata.judge.session import judge_all, remembered
from lemmata.judge.verdict import Result

EVIDENCE = {"holds": True, "by": "exact", "measured": 1, "predicted": 1, "margin": 0.0, "alpha": 0.0, "detail": ""}
EVIDENCE |= {"proof": False, "weak": "", "figure": None, "relation": "="}
LIE = {"text": "no", "printed": "", "rejected": True, "how": "measured 2"}


class Engine:
    """An engine in which every claim gets the verdict that was written for it, in the order submitted."""

    def __init__(self, verdicts=None, interrupt_after=None):
        self.verdicts, self.interrupt_after = verdicts or {}, interrupt_after
        self.tasks: list[Task] = []
        self.ran: list[tuple[str, int]] = []
        self.started = self.stopped = False

    def start(self):
        self.started = True

    def submit(self, task):
        self.tasks.append(task)

    def results(self):
        for task in list(self.tasks):
            if self.interrupt_after is not None and len(self.ran) == self.interrupt_after:
                raise KeyboardInterrupt
            self.ran.append((task.id, task.seed))
            result = Result(task.id, self.verdicts.get(task.id, "holds"), "exact", 1.0, "", EVIDENCE, [LIE], task.seed)
            yield task, Answer(result, task.sources)

    def stop(self):
        self.stopped = True


@pytest.fixture
def claims(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("# claims\n")
    costs = ("instant", "quick", "long")
    return [ClaimEntry(f"a.{cost}", "mine", cost, path, 1, "", cost=cost) for cost in costs]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


def test_what_is_known_is_not_run_again(claims, ledger):
    first, second = Engine(), Engine()
    fresh = list(judge_all(claims, first, ledger))
    again = list(judge_all(claims, second, ledger))
    assert len(first.ran) == 3
    assert second.ran == []
    assert [known for _, known in fresh] == [False] * 3
    assert [known for _, known in again] == [True] * 3
    assert {result.id for result, _ in again} == {claim.id for claim in claims}


def test_fresh_asks_nobody(claims, ledger):
    list(judge_all(claims, Engine(), ledger))
    engine = Engine({"a.quick": "refuted"})
    results = {result.id: result.verdict for result, _ in judge_all(claims, engine, ledger, fresh=True)}
    assert len(engine.ran) == 3
    assert results["a.quick"] == "refuted"
    assert remembered(claims, ledger)["a.quick"].verdict == "refuted", "the newest verdict is the one kept"


def test_what_is_remembered_was_run_once_and_is_judged_again_for_twice(claims, ledger):
    list(judge_all(claims, Engine(), ledger))
    engine = Engine()
    list(judge_all(claims, engine, ledger, twice=True))
    assert [task.twice for task in engine.tasks] == [True] * 3
    once = Engine()
    list(judge_all(claims, once, ledger, fresh=True))
    assert [task.twice for task in once.tasks] == [False] * 3


def test_a_changed_claim_is_judged_again(claims, ledger):
    list(judge_all(claims, Engine(), ledger))
    claims[0].path.write_text("# other claims\n")
    engine = Engine()
    list(judge_all(claims, engine, ledger))
    assert len(engine.ran) == 3
    assert len(remembered(claims, ledger)) == 3


def test_the_slowest_come_first(claims, ledger):
    engine = Engine()
    list(judge_all(claims, engine, ledger))
    assert [id for id, _ in engine.ran] == ["a.long", "a.quick", "a.instant"]


@pytest.mark.parametrize(("verdict", "kept"), [("refuted", 1), ("weak", 1), ("error", 0), ("skipped", 0)])
def test_errors_and_skips_are_not_kept(claims, ledger, verdict, kept):
    list(judge_all(claims[:1], Engine({"a.instant": verdict}), ledger))
    assert ledger.size()[0] == kept


def test_seeds_are_judged_one_by_one_and_the_worst_counts(claims, ledger):
    class Moody(Engine):
        def results(self):
            for task, answer in super().results():
                off = Answer(Result(task.id, "refuted", reason="off", seed=2), task.sources)
                yield task, off if task.seed == 2 else answer

    engine = Moody()
    ((result, known),) = judge_all(claims[:1], engine, ledger, seeds=4)
    assert engine.ran == [("a.instant", seed) for seed in range(4)]
    assert (result.verdict, result.reason, known) == ("refuted", "seed 2: off", False)
    more = Engine()
    ((result, known),) = judge_all(claims[:1], more, ledger, seeds=5)
    assert more.ran == [("a.instant", 4)], "four of five seeds were known"
    assert (result.verdict, known) == ("refuted", False)
    with pytest.raises(ValueError, match="seeds must be >= 1, got 0"):
        next(judge_all(claims, Engine(), ledger, seeds=0))


def test_truths_alone_are_asked_under_the_seeds_from_the_first_and_not_kept(claims, ledger):
    engine = Engine()
    ((result, known),) = judge_all(claims[:1], engine, ledger, seed=5, seeds=2, truth_only=True)
    assert engine.ran == [("a.instant", 5), ("a.instant", 6)]
    assert all(task.truth_only for task in engine.tasks)
    assert (result.verdict, known, ledger.size()[0]) == ("holds", False, 0)
    with pytest.raises(ValueError, match="seed must be >= 0, got -1"):
        next(judge_all(claims, Engine(), ledger, seed=-1))


def test_data_is_kept_beside_the_verdict_and_compared(claims, ledger, tmp_path):
    class Reader(Engine):
        def results(self):
            for task, answer in super().results():
                yield task, dataclasses.replace(answer, opened={str(data): digest(str(data))})

    data = tmp_path / "v.txt"
    data.write_text("3")
    list(judge_all(claims[:1], Reader(), ledger))
    assert list(remembered(claims[:1], ledger)) == ["a.instant"]
    data.write_text("4")
    assert remembered(claims[:1], ledger) == {}
    data.unlink()
    assert remembered(claims[:1], ledger) == {}
    data.write_text("3")
    assert list(remembered(claims[:1], ledger)) == ["a.instant"]


def test_a_claim_named_twice_is_judged_once(claims, ledger):
    engine = Engine()
    assert len(list(judge_all([*claims, *claims], engine, ledger))) == 3
    assert len(engine.ran) == 3


def test_two_claims_with_one_id_are_refused(claims, ledger):
    """Their verdicts would be kept under each other's keys."""
    other = ClaimEntry("a.quick", "other", "f", claims[0].path, 9, "")
    with pytest.raises(ValueError, match=r"2 claims have the id 'a\.quick': give each its own"):
        list(judge_all([*claims, other], Engine(), ledger))
    assert ledger.size()[0] == 0


def test_no_claims_are_no_work(ledger):
    assert list(judge_all([], Engine(), ledger)) == []


# --- Engines and files that are not to be trusted ---


def test_a_claim_without_a_result_is_an_error(claims, ledger):
    class Forgetful(Engine):
        def results(self):
            yield from (pair for pair in super().results() if pair[0].id != "a.quick" and pair[0].seed != 1)

    results = {result.id: result for result, _ in judge_all(claims, Forgetful(), ledger, seeds=2)}
    assert {id: result.verdict for id, result in results.items()} == dict.fromkeys(results, "error")
    assert set(results) == {claim.id for claim in claims}
    assert results["a.long"].reason == "seed 1: its judging ended without a result"
    assert ledger.size()[0] == 2


def test_a_result_that_nobody_asked_for_is_credited_to_nobody(claims, ledger):
    class Talkative(Engine):
        def results(self):
            for task, answer in super().results():
                yield dataclasses.replace(task, id="a.other"), answer
                yield dataclasses.replace(task, seed=7), answer
                yield task, answer
                yield task, Answer(Result(task.id, "refuted"), task.sources)

    results = [result for result, _ in judge_all(claims, Talkative(), ledger)]
    assert [(result.id, result.verdict) for result in results] == [
        (f"a.{x}", "holds") for x in ("long", "quick", "instant")
    ]
    assert ledger.size()[0] == 3


class Editing(Engine):
    """Its worker has loaded something else the first so many times it is asked."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def results(self):
        while self.tasks:
            task = self.tasks.pop(0)
            self.ran.append((task.id, task.seed))
            loaded = dict.fromkeys(task.sources, "something else") if len(self.ran) <= self.times else task.sources
            yield task, Answer(Result(task.id, "refuted", seed=task.seed), loaded)


def test_what_the_worker_had_loaded_must_be_what_is_on_the_disk(claims, ledger):
    engine = Editing(times=1)
    ((result, _),) = judge_all(claims[:1], engine, ledger)
    assert (result.verdict, len(engine.ran), ledger.size()[0]) == ("refuted", 2, 1)
    engine = Editing(times=2)
    ((result, _),) = judge_all(claims[:1], engine, ledger, fresh=True)
    assert (result.verdict, len(engine.ran)) == ("error", 2)
    assert result.reason.endswith(" changed while it was judged: run the check again")


def test_a_worker_that_does_not_say_what_it_loaded_is_not_believed(claims, ledger):
    class Silent(Engine):
        def results(self):
            yield from ((task, dataclasses.replace(answer, loaded={})) for task, answer in super().results())

    ((result, _),) = judge_all(claims[:1], Silent(), ledger)
    assert (result.verdict, result.reason) == ("error", "the worker does not say what it loaded")
    assert ledger.size()[0] == 0


def test_a_verdict_by_other_instructions_than_the_key_says_is_not_kept(claims, ledger, monkeypatch):
    class Other(Engine):
        def results(self):
            yield from ((task, dataclasses.replace(answer, capability="AVX2")) for task, answer in super().results())

    for expected, kept in (("AVX512", 0), ("", 1), ("AVX2", 1)):
        monkeypatch.setattr("lemmata.judge.session.capability", lambda expected=expected: expected)
        ((result, _),) = judge_all(claims[:1], Other(), ledger, fresh=True)
        assert (result.verdict, ledger.size()[0]) == ("holds", kept)
    assert ledger.messages == ["verdicts are not remembered, since torch computes with AVX2 where AVX512 was expected"]


def test_the_verdict_of_another_claim_is_not_taken_from_the_ledger(claims, ledger):
    one, other = claims[:2]
    list(judge_all([one], Engine(), ledger))
    ledger.put(fingerprint(other, 0), ledger.get(fingerprint(one, 0)))
    assert remembered([other], ledger) == {}
    engine = Engine({other.id: "refuted"})
    ((result, known),) = judge_all([other], engine, ledger)
    assert (result.id, result.verdict, known) == (other.id, "refuted", False)


# --- Being stopped ---


def test_ctrl_c_in_the_consumer_keeps_what_is_finished(claims, ledger):
    engine = Engine()

    def consume():
        for result, _ in judge_all(claims, engine, ledger):
            if result.id == "a.quick":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consume()
    assert engine.stopped
    assert set(remembered(claims, ledger)) == {"a.long", "a.quick"}


def test_ctrl_c_in_the_engine_keeps_what_is_finished(claims, ledger):
    engine = Engine(interrupt_after=1)
    with pytest.raises(KeyboardInterrupt):
        list(judge_all(claims, engine, ledger))
    assert engine.stopped
    assert set(remembered(claims, ledger)) == {"a.long"}
    rest = Engine()
    assert {result.id: known for result, known in judge_all(claims, rest, ledger)} == {
        "a.long": True,
        "a.quick": False,
        "a.instant": False,
    }


def test_closing_early_stops_the_engine(claims, ledger):
    engine = Engine()
    results = judge_all(claims, engine, ledger)
    next(results)
    results.close()
    assert engine.stopped


def test_an_engine_that_is_done_stays_warm(claims, ledger):
    engine = Engine()
    list(judge_all(claims, engine, ledger))
    assert engine.started
    assert not engine.stopped


def test_every_verdict_is_kept_before_it_is_shown(claims, ledger):
    for result, _ in judge_all(claims, Engine(), ledger):
        assert result.id in remembered(claims, ledger)


# --- A ledger that fails ---


@pytest.mark.parametrize("damage", ["truncate", "flip", "text", "list", "verdict", "empty"])
def test_a_damaged_verdict_is_judged_again(claims, ledger, damage):
    claim = claims[0]
    list(judge_all([claim], Engine(), ledger))
    (path,) = ledger.folder.rglob("*.json")
    data = path.read_bytes()
    path.write_bytes(
        {
            "truncate": data[: len(data) // 2],
            "flip": data.replace(b"holds", b"hplds"),
            "text": b"not JSON at all \xff",
            "list": b"[1, 2]",
            "verdict": data.replace(b'"holds"', b'"proved"'),
            "empty": b"",
        }[damage]
    )
    engine = Engine()
    ((result, known),) = judge_all([claim], engine, ledger)
    assert (result.verdict, known) == ("holds", False)
    assert len(engine.ran) == 1
    assert len(ledger.messages) == 1
    assert ledger.messages[0].startswith("a damaged ledger entry was set aside and is judged again: ")
    assert len(list(ledger.folder.rglob("*.damaged"))) == 1
    assert ledger.get(fingerprint(claim, 0)).verdict == "holds"
