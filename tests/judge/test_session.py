"""Judging many claims: the ledger is asked first, told at once, and never told what it should not keep."""

import pytest

from lemmata.catalog import ClaimEntry
from lemmata.judge.engine import Task
from lemmata.judge.fingerprint import fingerprint
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import judge_all, remembered
from lemmata.judge.verdict import Result


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
            yield task, Result(task.id, self.verdicts.get(task.id, "holds"), seconds=1.0, seed=task.seed)

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


def test_the_dearest_come_first(claims, ledger):
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
            for task, result in super().results():
                yield task, Result(task.id, "refuted", reason="off", seed=2) if task.seed == 2 else result

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
