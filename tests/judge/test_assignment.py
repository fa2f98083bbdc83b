"""Whom a worker serves, and what it may say: without processes, which test_engine and test_attacks have."""

import os

import pytest

from lemmata.judge import engine as engine_module
from lemmata.judge.engine import ProcessEngine, Task, credited
from lemmata.judge.verdict import Result


@pytest.fixture
def started(monkeypatch):
    """Workers without processes; the files they were started for, in order."""
    homes = []

    class Judge:
        up_to_date = engine_module._Judge.up_to_date
        finish = engine_module._Judge.finish

        def __init__(self, home, memory):
            homes.append((home, memory))
            self.home, self.task, self.ready, self.loaded = home, None, False, {}
            self.deadline, (self.output, self.input) = float("inf"), os.pipe()
            os.write(self.input, b"!")

        def begin(self, task, limit):
            self.task = task
            os.write(self.input, b"!")

        def hear(self):
            os.read(self.output, 1)
            if self.task is None:
                yield {"loaded": {}}
                return
            known = {"id": self.task.id, "seed": self.task.seed}
            left = "torch.tensor" if self.task.function == "meddler" else ""
            result = Result(self.task.id, "refuted", seed=self.task.seed).to_json()
            known |= {"loaded": dict(self.task.sources), "opened": {}, "capability": ""}
            yield known | {"result": result, "left": left}

        def kill(self):
            os.close(self.output)
            os.close(self.input)

    monkeypatch.setattr(engine_module, "_Judge", Judge)
    return homes


OURS = str(engine_module.PACKAGE / "connectionism" / "claims" / "cover.py")


def order(jobs, tasks):
    engine = ProcessEngine(jobs, memory=1)
    for task in tasks:
        engine.submit(task)
    try:
        return [task.id for task, _ in engine.results()]
    finally:
        engine.stop()


def test_files_that_are_not_ours_have_workers_of_their_own(started):
    paths = [OURS, "/mine.py", OURS, "/mine.py", "/other.py", OURS]
    tasks = [Task(f"a.{k}", "m", path, "f") for k, path in enumerate(paths)]
    assert sorted(order(1, tasks)) == [f"a.{k}" for k in range(6)]
    assert started == [("", None), ("/mine.py", 1), ("/other.py", 1)]


def test_a_file_may_have_several_workers_and_ours_are_shared(started):
    tasks = [Task(f"a.{k}", "m", "/mine.py", "f") for k in range(4)] + [Task("b", "m", OURS, "f")]
    assert len(order(3, tasks)) == 5
    assert started.count(("/mine.py", 1)) == 3
    assert started.count(("", None)) == 1


def test_who_leaves_something_changed_is_the_last_in_its_worker(started):
    tasks = [Task("a", "m", OURS, "f"), Task("b", "m", OURS, "meddler"), Task("c", "m", OURS, "f")]
    assert order(1, tasks) == ["a", "b", "c"]
    assert started == [("", None)] * 2


def test_a_worker_with_old_code_is_replaced(started):
    tasks = [Task(f"a.{digest}", "m", OURS, "f", sources={"mine.py": digest}) for digest in ("1", "1", "2")]
    tasks.append(Task("b", "m", OURS, "f", sources={"other.py": "1"}))
    order(1, tasks)
    assert started == [("", None)] * 2


ASKED = Task("a.b", "m", "/m.py", "f", seed=3)
RIGHT = {"id": "a.b", "seed": 3, "loaded": {"m.py": "digest"}, "capability": "AVX2", "left": "", "opened": {}}
RIGHT |= {"result": Result("a.b", "refuted", seed=3).to_json()}


def test_the_right_answer_is_credited():
    answer = credited(ASKED, RIGHT)
    assert (answer.result.verdict, answer.loaded, answer.capability) == ("refuted", {"m.py": "digest"}, "AVX2")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (None, "it is no object"),
        ([], "it is no object"),
        ({}, "a result must be an object"),
        (RIGHT | {"id": "a.c"}, "it is about another claim or seed"),
        (RIGHT | {"seed": 4}, "it is about another claim or seed"),
        (RIGHT | {"result": RIGHT["result"] | {"id": "a.c"}}, "it is about another claim or seed"),
        (RIGHT | {"result": RIGHT["result"] | {"seed": 0}}, "it is about another claim or seed"),
        (RIGHT | {"result": {"id": "a.b"}}, "a result has no verdict"),
        (RIGHT | {"result": RIGHT["result"] | {"verdict": "holds"}}, "needs evidence that holds"),
        (RIGHT | {"loaded": None}, "it does not say what was loaded"),
        (RIGHT | {"loaded": {"m.py": 1}}, "it does not say what was loaded"),
        (RIGHT | {"opened": None}, "it does not say what was read"),
        (RIGHT | {"opened": {"v.txt": 1}}, "it does not say what was read"),
        (RIGHT | {"result": RIGHT["result"] | {"truth_only": True}}, "it leaves out the lies"),
        (RIGHT | {"capability": None}, "it does not say how it was computed"),
        (RIGHT | {"left": ["torch"]}, "it does not say how it was computed"),
    ],
)
def test_any_other_answer_is_not(message, reason):
    with pytest.raises(ValueError, match=reason):
        credited(ASKED, message)
