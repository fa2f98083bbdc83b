"""Performing a task: the right file is loaded, whatever else has its name, and its import leaves no trace."""

import json
import sys
import threading
import types

import numpy
import pytest
import torch

from lemmata.judge import runner, worker
from lemmata.judge.engine import credited, task_of
from lemmata.judge.worker import perform

CLAIM = """
@claim("a.b")
@lie("two", x=2)
def check(draw, x=1):
    return exactly(x, 1)
"""


@pytest.fixture(autouse=True)
def _import_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def judged(entries, seed=0):
    return [perform(vars(task_of(claim, seed))) for claim in entries]


def test_a_file_is_judged_by_its_path(write_claims):
    (result,) = judged(write_claims(CLAIM), seed=3)
    assert (result.id, result.verdict, result.seed) == ("a.b", "holds", 3)


@pytest.mark.parametrize(("text", "wanted"), [("x = 1", []), ("torch.optim.Adam", ["torch._dynamo"])])
def test_what_an_optimiser_would_import_is_there_before_a_claim_is_timed(monkeypatch, tmp_path, text, wanted):
    module, imported = types.ModuleType("mine"), []
    module.__file__ = str(tmp_path / "mine.py")
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.setattr(worker.sys, "modules", {"mine": module})
    monkeypatch.setattr(worker.importlib, "import_module", imported.append)
    worker._warm_imports(module)
    monkeypatch.undo()
    assert imported == wanted


@pytest.mark.parametrize("name", ["random.py", "json.py", "torch.py", "a name with spaces.py"])
def test_a_file_may_have_any_name(write_claims, name):
    assert judged(write_claims(CLAIM, name))[0].verdict == "holds"
    assert sys.modules["random"].random


def test_files_of_the_same_name_do_not_mix(write_claims):
    one = write_claims(CLAIM, "one/mine.py")
    other = write_claims(CLAIM.replace("a.b", "a.c").replace("exactly(x, 1)", "exactly(x, 3)"), "other/mine.py")
    assert [result.verdict for result in judged([*one, *other])] == ["holds", "refuted"]


def test_a_file_finds_its_neighbours(write_claims, tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("one = 1")
    text = CLAIM.replace("exactly(x, 1)", "exactly(x, one)")
    assert judged(write_claims("from neighbour_of_mine import one\n" + text))[0].verdict == "holds"


def test_a_file_in_a_package_may_import_relatively(write_claims, tmp_path):
    package = tmp_path / "package_of_mine"
    (package / "claims").mkdir(parents=True)
    for init in (package, package / "claims"):
        (init / "__init__.py").write_text("")
    (package / "model.py").write_text("one = 1")
    text = "from ..model import one\nimport package_of_mine.model\n" + CLAIM.replace("(x, 1)", "(x, one)")
    assert judged(write_claims(text, "package_of_mine/claims/mine.py"))[0].verdict == "holds"


def test_what_a_file_does_on_import_leaves_no_trace(write_claims):
    before = torch.random.get_rng_state()
    text = "torch.set_default_dtype(torch.float64)\ntorch.manual_seed(1)\ntorch.set_num_threads(2)\n"
    assert judged(write_claims(text + CLAIM))[0].verdict == "holds"
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_num_threads() == 1
    assert torch.random.get_rng_state().equal(before)


def test_what_a_file_draws_on_import_is_always_the_same(write_claims):
    text = "noise = torch.randn(1)\n" + CLAIM.replace("exactly(x, 1)", "close(x + 0 * noise, 1.0).showing(figure())")
    text += "\ndef figure():\n    return Figure('noise', marks=[Points([0], noise)])\n"
    torch.manual_seed(1)
    (one,) = judged(write_claims(text, "one/mine.py"))
    torch.manual_seed(2)
    (other,) = judged(write_claims(text, "other/mine.py"))
    assert one.evidence == other.evidence


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit(2)", "SystemExit: 2"),
        ("lie('two', x=1, y=2)", "TypeError: lie 'two' must change exactly one argument, got x, y"),
    ],
)
def test_a_file_that_cannot_be_imported_is_an_error_each_time(write_claims, text, reason):
    entries = write_claims(CLAIM + text)
    for result in judged([*entries, *entries]):
        assert result.verdict == "error"
        assert result.reason.endswith(f"mine.py cannot be imported: {reason}")


def test_a_name_used_twice_does_not_lend_its_verdict(write_claims, tmp_path):
    (entry,) = write_claims(CLAIM)
    entry.path.write_text(entry.path.read_text() + CLAIM.replace("a.b", "a.c"))
    (result,) = judged([entry])
    assert result.verdict == "error"
    assert "has no claim 'a.b' under the name check: is the name used twice?" in result.reason


# --- What a claim leaves behind ---


def leave(text, monkeypatch):
    """What a claim that does this has changed for the next one, put back afterwards."""
    before = worker._global_state()
    {
        "nothing": lambda: None,
        "a new name": lambda: monkeypatch.setattr(torch, "of_mine", print, raising=False),
        "torch.tensor": lambda: monkeypatch.setattr(torch, "tensor", print),
        "torch.Tensor.__add__": lambda: monkeypatch.setattr(torch.Tensor, "__add__", print),
        "torch.nn.functional.relu": lambda: monkeypatch.delattr(torch.nn.functional, "relu"),
        "lemmata.judge.runner.attempt": lambda: monkeypatch.setattr(runner, "attempt", print),
        "builtins.sum": lambda: monkeypatch.setattr("builtins.sum", max),
        "os.environ": lambda: monkeypatch.setenv("ATEN_CPU_CAPABILITY", "another"),
        "sys.path": lambda: monkeypatch.syspath_prepend("/nowhere"),
        "the current folder": lambda: monkeypatch.chdir("/"),
        "numpy.geterr": lambda: numpy.seterr(all="raise"),
    }[text]()
    return worker._changed_state(before)


NOTICED = ("torch.tensor", "torch.Tensor.__add__", "torch.nn.functional.relu", "lemmata.judge.runner.attempt")
NOTICED += ("builtins.sum", "os.environ", "sys.path", "the current folder", "numpy.geterr")


@pytest.mark.parametrize("name", NOTICED)
def test_what_would_reach_the_next_claim_is_noticed(monkeypatch, name):
    with numpy.errstate():
        assert leave(name, monkeypatch) == name


@pytest.mark.parametrize("name", ["nothing", "a new name"])
def test_what_is_new_is_no_change(monkeypatch, name):
    assert leave(name, monkeypatch) == ""


def test_a_thread_that_runs_on_is_noticed():
    before, end = worker._global_state(), threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert worker._changed_state(before) == "a thread"
    finally:
        end.set()
        thread.join()
    assert worker._changed_state(before) == ""


def test_an_answer_says_what_it_is_about_and_is_always_json(write_claims):
    (task,) = (task_of(claim, 2) for claim in write_claims(CLAIM))
    answer = worker._answer_task({"mine.py": "digest"}, task.to_json())
    assert credited(task, json.loads(json.dumps(answer))).result.verdict == "holds"
    assert (answer["id"], answer["seed"], answer["loaded"]) == ("a.b", 2, {"mine.py": "digest"})
    assert answer["capability"] == torch.backends.cpu.get_cpu_capability()
    odd = CLAIM.replace("exactly(x, 1)", 'exactly(x, 1).showing(type("", (), {"to_json": lambda self: {"x": {1}}})())')
    (task,) = (task_of(claim, 2) for claim in write_claims(odd, "odd.py"))
    result = worker._answer_task({}, task.to_json())["result"]
    assert (result["verdict"], result["id"], result["seed"]) == ("error", "a.b", 2)
    assert result["reason"] == "its evidence cannot be written as JSON: Object of type set is not JSON serializable"
