"""Shared training: once for all who ask, the same bits from wherever they come, and never in the way of a claim."""

import functools
import importlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

from lemmata import catalog
from lemmata.judge import claim, close, judge, lie
from lemmata.judge.draw import Draw
from lemmata.judge.fingerprint import closure
from lemmata.judge.runner import _evidence_difference
from lemmata.testing import trained
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options

LESSONS = []


def line(inputs=2):
    return torch.nn.Linear(inputs, 1)


def teach(model, generator, steps=3):
    LESSONS.append(steps)
    for _ in range(steps):
        x = torch.randn(8, model.in_features, generator=generator) + 0.1 * torch.rand(1)
        (gradient,) = torch.autograd.grad((model(x) - x.sum(1, keepdim=True)).square().mean(), model.weight)
        model.weight.data -= 0.1 * gradient


def by_the_clock(model, generator):
    model.bias.data.fill_(time.time_ns() % 10**6)


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    monkeypatch.setattr(trained, "_memory", {})
    LESSONS.clear()


def cached():
    folder = Path(os.environ["LEMMATA_CACHE"]) / "trained"
    return sorted(path for path in folder.iterdir()) if folder.exists() else []


# --- Once for all ---


def test_claims_share_one_training_and_each_gets_a_system_of_its_own():
    first = Draw("a.b").trained(line, teach)
    bits = first.weight.detach().clone()
    first.weight.data.zero_()
    second = Draw("c.d").trained(line, teach)
    assert LESSONS == [3]
    assert second.weight.equal(bits)
    assert not second.training


def test_weights_are_kept_on_the_disk_as_tensors_and_text(monkeypatch):
    bits = Draw("a.b").trained(line, teach).weight
    monkeypatch.setattr(trained, "_memory", {})
    assert Draw("a.b").trained(line, teach).weight.equal(bits)
    assert LESSONS == [3]
    (folder,) = cached()
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".safetensors"]


def test_settings_and_seeds_are_trainings_of_their_own():
    found = [
        Draw("a.b", 0).trained(line, teach),
        Draw("a.b", 1).trained(line, teach),
        Draw("a.b", 0).trained(line, teach, steps=4),
        Draw("a.b", 0).trained(line, teach, inputs=3),
        Draw("a.b", 0).trained(line, teach, steps=4, inputs=3),
    ]
    assert LESSONS == [3, 3, 4, 3, 4]
    assert len({tuple(model.weight.flatten().tolist()) for model in found}) == 5
    assert len(cached()) == 5


def test_a_training_sees_the_same_world_whoever_asks():
    usual = Draw("a.b").trained(line, teach, steps=2).state_dict()
    trained._memory.clear()
    with torch.inference_mode():
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(77)
        try:
            other = Draw("a.b").trained(line, teach, steps=2)
            fresh = trained.anew.set(True)
            again = Draw("a.b").trained(line, teach, steps=2)
            trained.anew.reset(fresh)
        finally:
            torch.set_default_dtype(torch.float32)
    assert LESSONS == [2, 2]
    for found in (other, again):
        assert all(found.state_dict()[name].equal(value) for name, value in usual.items())
        assert found.weight.dtype == torch.float32


def test_nothing_is_drawn_from_the_claim():
    draw, other = Draw("a.b"), Draw("a.b")
    torch.manual_seed(5)
    draw.trained(line, teach)
    drawn = torch.rand(3), draw.normal(3)
    torch.manual_seed(5)
    assert torch.rand(3).equal(drawn[0])
    assert other.normal(3).equal(drawn[1])


def test_truth_and_lies_share_it_and_twice_trains_anew():
    @claim("test.trained")
    @lie("another target", target=9.0)
    def check(draw, target=0.0):
        return close(draw.trained(line, teach).weight.detach(), target, within=5.0)

    assert judge(check).verdict == "holds"
    assert LESSONS == [3]
    assert judge(check, twice=True).verdict == "holds"
    assert LESSONS == [3, 3], "the second truth must show that the training gives the same bits"


def test_a_training_that_depends_on_the_time_is_caught_by_twice():
    @claim("test.clock")
    @lie("far", target=1e9)
    def check(draw, target=0.0):
        return close(draw.trained(line, by_the_clock).bias.detach(), target, within=1e7)

    assert judge(check).verdict == "holds"
    assert judge(check, twice=True).reason.startswith("the truth gave two different results from the same seed")


# --- What may go wrong ---


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_damaged_weights_are_set_aside_and_made_again(suffix):
    bits = Draw("a.b").trained(line, teach).weight
    (folder,) = cached()
    (path,) = folder.glob(f"*{suffix}")
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    trained._memory.clear()
    assert Draw("a.b").trained(line, teach).weight.equal(bits)
    assert LESSONS == [3, 3]
    assert [path.suffix for path in cached()] == ["", ".damaged"]


def test_without_a_folder_to_write_to_it_is_remembered_in_this_process(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "file"))
    bits = Draw("a.b").trained(line, teach).weight
    assert Draw("a.b").trained(line, teach).weight.equal(bits)
    assert LESSONS == [3]


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(trained, "LARGEST", 1000)
    monkeypatch.setattr(trained, "IN_MEMORY", 1)
    for steps in (1, 2, 3):
        Draw("a.b").trained(line, teach, steps=steps)
    kept = cached()
    assert len(kept) < 3
    assert len(trained._memory) == 1
    Draw("a.b").trained(line, teach, steps=3)
    assert LESSONS == [1, 2, 3], "the newest is still there"


def test_a_training_that_fails_leaves_nothing():
    with pytest.raises(RuntimeError):
        Draw("a.b").trained(line, teach, inputs=-1)
    assert cached() == []


@pytest.mark.parametrize(
    ("arguments", "settings", "told"),
    [
        ((line,), {}, "the name of a system that has a recipe, or two functions"),
        (("mlp", teach), {}, "the name of a system that has a recipe, or two functions"),
        ((line, teach), {"depth": 3}, "neither line nor teach takes depth"),
        ((line, teach), {"steps": torch.ones(1)}, "settings of a training must be plain numbers"),
        ((line, lambda model, generator: None), {}, "takes functions and classes of a file"),
        ((functools.partial(line, 3), teach), {}, "takes functions and classes of a file"),
        (("mlp",), {"data": "moons", "colour": 1}, "the recipe classify_points has no setting colour"),
    ],
)
def test_what_cannot_be_known_again_is_refused(arguments, settings, told):
    with pytest.raises(TypeError, match=told):
        Draw("a.b").trained(*arguments, **settings)


def test_an_unknown_recipe_is_named():
    with pytest.raises(ValueError, match=r"no recipe trains 'mpl': known are .*'mlp'"):
        Draw("a.b").trained("mpl")
    with pytest.raises(ValueError, match="no recipe trains 'mlp' on 'mnist'"):
        Draw("a.b").trained("mlp", data="mnist")


# --- By a recipe ---


def test_a_recipe_trains_as_the_command_does():
    found = Draw("a.b", 3).trained("mlp", data="rings", epochs=1, widths=(4, 3))
    (entry,) = [r for r in catalog.load().recipes if "rings" in r.data.split() and r.system == "mlp"]
    module = importlib.import_module(entry.module)
    options = Options(epochs=1, lr=5e-3, schedule="cosine", evaluate=3, seed=3, device="cpu")
    run = run_experiment(module.classify_points("rings", module.MLPConfig(widths=(4, 3)), options))
    for name, value in run.system.state_dict().items():
        assert found.state_dict()[name].equal(value)
    assert not found.training


@pytest.mark.parametrize(
    ("call", "files", "others"),
    [
        ('"mlp", data="moons"', {"feedforward/recipes.py", "train/loop.py"}, {"recurrent/recipes.py"}),
        ("str(1)", {"feedforward/recipes.py", "recurrent/recipes.py", "train/loop.py"}, set()),
        ("os.getpid, os.kill", {"train/checkpoint.py"}, {"feedforward/recipes.py", "train/loop.py"}),
    ],
)
def test_the_key_of_a_verdict_covers_what_a_training_loads(write_claims, call, files, others):
    (entry,) = write_claims(
        f"""
        @claim("mine.a")
        @lie("two", x=2)
        def check(draw, x=1):
            draw.trained({call})
            return exactly(x, 1)
        """
    )
    labels = {"/".join(path.parts[-2:]) for path in closure(entry.path)}
    assert files <= labels
    assert not others & labels


# --- The code as it is ---

OTHER = """
import sys
import torch
from lemmata.judge.draw import Draw

def line():
    return torch.nn.Linear(1, 1)

def teach(model, generator):
    print("training", flush=True)
    sys.stdin.readline()
    model.weight.data.fill_(0.5)

if __name__ == "__main__":
    import other
    print("asking", flush=True)
    print(float(Draw("a.b").trained(other.line, other.teach).weight), flush=True)
"""


@pytest.fixture
def process(tmp_path):
    """Processes that ask for a training of a file of their own, which waits for a word."""
    path, started = tmp_path / "other.py", []
    path.write_text(textwrap.dedent(OTHER))

    def start():
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([sys.executable, path.name], cwd=tmp_path, **pipes))
        assert started[-1].stdout.readline() == "asking\n"
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def test_two_processes_that_ask_at_once_train_once(process):
    first = process()
    assert first.stdout.readline() == "training\n"
    second = process()
    assert first.communicate("go\n")[0] == "0.5\n"
    assert second.communicate("go\n")[0] == "0.5\n", "it waited, and did not train"


def test_a_process_that_dies_in_training_keeps_nobody_waiting(process, tmp_path):
    dead = process()
    assert dead.stdout.readline() == "training\n"
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    heir = process()
    assert heir.communicate("go\n")[0] == "training\n0.5\n"
    path = tmp_path / "other.py"
    path.write_text(path.read_text().replace("0.5", "0.25"))
    assert process().communicate("go\n")[0] == "training\n0.25\n", "other code is another training"


def test_code_that_was_written_to_since_this_process_began_is_not_kept(tmp_path, monkeypatch):
    (tmp_path / "written_late.py").write_text("from test_trained import line, teach\ndef own():\n    return line()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "test_trained", sys.modules[__name__])
    own = importlib.import_module("written_late").own
    own_bits = Draw("a.b").trained(own, teach).weight
    assert Draw("a.b").trained(own, teach).weight.equal(own_bits)
    assert LESSONS == [3]
    assert cached() == []


def test_a_mutant_is_not_taken_for_the_code_on_the_disk(monkeypatch):
    class Mutant:
        def get_data(self, path):
            return Path(path).read_bytes() + b"# changed\n"

    Draw("a.b").trained(line, teach)
    monkeypatch.setattr(sys.modules[__name__], "__loader__", Mutant())
    Draw("a.b").trained(line, teach)
    assert LESSONS == [3, 3]
    assert len(cached()) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"measured": 1.5649529694145379}, ""),  # as LAPACK rounds it at another address
        ({"measured": 1.5649529}, "part 1 of 1: measured 1.5649529694145377, then 1.5649529"),
        ({"points": 4}, "part 1 of 1: points 3, then 4"),
        ({"worst": [0.0, 1.0]}, "part 1 of 1: worst [0.0, 2.0], then [0.0, 1.0]"),
        ({"worst": None}, "part 1 of 1: worst [0.0, 2.0], then None"),
    ],
)
def test_only_the_last_digits_of_evidence_may_change(changed, told):
    piece = {"measured": 1.5649529694145377, "points": 3, "worst": [0.0, 2.0]}
    assert _evidence_difference({"parts": [piece]}, {"parts": [piece | changed]}) == told
