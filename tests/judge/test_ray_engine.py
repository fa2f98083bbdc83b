"""Ray gives the same bits as our own workers, and its answers are believed no sooner."""

import dataclasses
import functools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lemmata.catalog import load, read_claims
from lemmata.judge import ray_engine
from lemmata.judge.engine import Answer, ProcessEngine, Task
from lemmata.judge.ledger import Ledger
from lemmata.judge.ray_engine import RayEngine
from lemmata.judge.session import judge_all
from lemmata.judge.verdict import Result


@pytest.mark.filterwarnings("ignore")  # Ray's own, at import and at shutdown
def test_ray_and_processes_agree_to_the_last_bit(tmp_path: Path):
    pytest.importorskip("ray", reason="needs Ray: pip install 'lemmata[ray]'")
    claims = [load().claims[id] for id in ("cover.base_cases", "perceptron.margin_point", "hopfield.metastable")]
    found = []
    for engine in (ProcessEngine(2), RayEngine(2)):
        try:
            judged = judge_all(claims, engine, Ledger(tmp_path / type(engine).__name__), seeds=2)
            found.append({result.id: dataclasses.replace(result, seconds=0.0) for result, _ in judged})
        finally:
            engine.stop()
    assert found[0] == found[1]
    assert {result.verdict for result in found[0].values()} == {"holds"}


# --- With something in Ray's place that runs every task at once, here ---


class RayError(Exception):
    """What Ray raises for a task that is lost."""


@pytest.fixture
def ray(monkeypatch):
    """As much of Ray as the engine uses."""

    def remote(**options):
        return lambda function: SimpleNamespace(remote=functools.partial(functools.partial, function))

    fake = SimpleNamespace(remote=remote, exceptions=SimpleNamespace(RayError=RayError))
    fake.init = fake.cancel = fake.shutdown = lambda *arguments, **words: None
    fake.cluster_resources = lambda: {"CPU": 2.0}
    fake.wait = lambda references, num_returns, timeout: (references[:1], references[1:])
    fake.get = lambda reference: reference()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


@pytest.fixture
def answering(monkeypatch):
    """Our own engine on Ray's machines, with these answers."""

    class Engine:
        def submit(self, task):
            self.task = task

        def results(self):
            yield self.task, Answer(Result(self.task.id, "refuted", seed=self.task.seed), self.task.sources, "AVX2")

    engine = Engine()
    monkeypatch.setattr(ray_engine, "_own_engine", lambda: engine)
    return engine


TASKS = [Task(f"a.{k}", "m", "/m.py", "f", seed=k, sources={"m.py": "digest"}) for k in range(3)]


def results(engine):
    for task in TASKS:
        engine.submit(task)
    engine.start()
    return dict(engine.results())


def test_answers_come_back_with_what_was_loaded(ray, answering):
    found = results(RayEngine(2, memory=7))
    assert {task.id: answer.result.verdict for task, answer in found.items()} == dict.fromkeys(
        ("a.0", "a.1", "a.2"), "refuted"
    )
    assert {(answer.capability, *answer.loaded.items()) for answer in found.values()} == {("AVX2", ("m.py", "digest"))}
    assert (answering.memory, answering.time_limit) == (7, {"quick": 120.0})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nonce": "another"}, "it was not asked for"),
        ({"id": "a.7"}, "it is about another claim or seed"),
        ({"seed": 7}, "it is about another claim or seed"),
        ({"result": Result("a.0", "perfect").to_json()}, "unknown verdict 'perfect'"),
        ({"loaded": None}, "it does not say what was loaded"),
    ],
)
def test_what_is_not_the_answer_is_an_error_of_that_claim(ray, answering, change, reason):
    ray.get = lambda reference: reference() | change
    assert {answer.result.reason for answer in results(RayEngine(2)).values()} == {
        f"the worker's answer cannot be believed: {reason}"
    }


@pytest.mark.parametrize("message", [None, [], "holds"])
def test_what_is_no_message_at_all_is_an_error_too(ray, answering, message):
    ray.get = lambda reference: message
    found = results(RayEngine(2))
    assert {(answer.result.verdict, answer.result.seed) for answer in found.values()} == {
        ("error", seed) for seed in range(3)
    }


def test_a_task_that_ray_loses_is_an_error(ray, answering):
    def lost(reference):
        raise RayError("a node\n  died")

    ray.get = lost
    assert {answer.result.reason for answer in results(RayEngine(2)).values()} == {"the worker was lost: a node died"}


def test_a_file_is_judged_by_our_own_worker_on_rays_machine(ray, tmp_path):
    """The whole way, but for Ray: the same result as without it."""
    path = tmp_path / "mine.py"
    path.write_text(
        "from lemmata.judge import claim, exactly, lie\n"
        "@claim('mine.one')\n@lie('two', x=2)\ndef one(draw, x=1):\n    return exactly(x, 1)\n"
    )
    engine, ledger = RayEngine(1), Ledger(tmp_path / "ledger")
    try:
        ((result, _),) = judge_all(list(read_claims(path, "mine", [])), engine, ledger)
    finally:
        engine.stop()
        ray_engine._own_engine().stop()
    assert (result.verdict, ledger.size()[0]) == ("holds", 1)
