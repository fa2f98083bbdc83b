"""Runs and files that something is wrong with, on the command line: one sentence each, never a fault of lemmata."""

import json
import shutil
import signal
import zipfile

import numpy as np
import pytest
import torch

import lemmata
from lemmata.lab.cli import live, main
from lemmata.train import checkpoint


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that ended at step 16, with checkpoints of steps 8 and 16."""
    folder = tmp_path_factory.mktemp("runs") / "mlp"
    words = "--data moons --epochs 1 --widths 4 --save 8 --quiet --device cpu".split()
    assert main(["train", "mlp", *words, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, said, *words):
    code, _, err = call(capsys, *words)
    assert code == 2
    assert said in err
    assert err.startswith("lemmata: ")
    assert err.count("\n") == 1
    assert "fault of lemmata" not in err


def resume(folder):
    return ["train", "mlp", "--resume", "--out", folder, "--quiet"]


def rewrite(run, **changes):
    record = json.loads((run / "run.json").read_text())
    for group, change in changes.items():
        record[group] = {**record[group], **change} if isinstance(change, dict) and record[group] else change
    (run / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"options": []}, "run.json is damaged (options must be an object)"),
        ({"config": "wide"}, "run.json is damaged (config must be an object)"),
        ({"system": 5}, "run.json is damaged (system must be a string)"),
        ({"data": None}, "run.json is damaged (data must be a string)"),
        ({"options": {"lr": "fast"}}, "run.json has bad options (lr cannot be 'fast')"),
        ({"options": {"epochs": 1.5}}, "run.json has bad options (epochs cannot be 1.5)"),
        ({"options": {"device": ["cpu"]}}, "run.json has bad options (device cannot be ('cpu',))"),
        ({"options": {"optimizer": "lion"}}, "run.json has bad options (optimizer cannot be 'lion')"),
        ({"options": {"ema_decay": True}}, "run.json has bad options (ema_decay cannot be True)"),
        ({"config": {"widths": 5}}, "run.json has bad config (widths cannot be 5)"),
        ({"config": {"widths": ["a"]}}, "run.json has bad config (widths cannot be ('a',))"),
        ({"config": {"widths": [True]}}, "run.json has bad config (widths cannot be (True,))"),
        ({"config": {"bias": 1}}, "run.json has bad config (bias cannot be 1)"),
        ({"config": {"dropout": "none"}}, "run.json has bad config (dropout cannot be 'none')"),
        ({"config": {"activation": 5}}, "run.json has bad config (activation cannot be 5)"),
        ({"config": {"widths": [10**13]}}, "not enough memory for these sizes (80000000000000 bytes at once): choose"),
        ({"config": {"widths": [10**30]}}, "not enough memory for these sizes: choose smaller ones"),
    ],
)
def test_wrong_types_in_a_record_are_named(capsys, run, changes, said):
    rewrite(run, **changes)
    refused(capsys, said, "predict", run)
    refused(capsys, said, *resume(run))


def test_whole_numbers_may_stand_for_others(capsys, run):
    rewrite(run, options={"weight_decay": 0, "save_seconds": 60})
    assert call(capsys, "predict", run)[0] == 0


@pytest.mark.parametrize("notes", [{"baselines": "none"}, {"baselines": {"guessing": 0.5}}, {}])
def test_notes_of_another_kind_do_no_harm(capsys, run, notes):
    rewrite(run, notes=notes)
    code, out, err = call(capsys, *resume(run))
    assert (code, err) == (0, "")
    assert ("for comparison: guessing 50.0 %" in out) == (notes.get("baselines") == {"guessing": 0.5})


@pytest.mark.parametrize("widths", ["1000000000000", "10000000000000000000000"])
def test_sizes_too_large_to_allocate_are_one_sentence(capsys, tmp_path, widths):
    words = ["train", "mlp", "--data", "moons", "--widths", widths, "--device", "cpu"]
    refused(capsys, "lemmata: there is not enough memory for these sizes", *words)
    assert not list(tmp_path.rglob("mlp-*"))


def test_weights_of_another_system_are_one_sentence(capsys, run):
    found = checkpoint.newest(run / "checkpoints")
    found.state["system"] = {"weight": torch.zeros(2)}
    checkpoint.save(run / "checkpoints", 16, found.state)
    refused(capsys, "step-00000016.json does not fit this run", *resume(run))


def test_weights_that_are_not_finite_are_named_before_what_they_say(capsys, run):
    weights = {name: value * torch.nan for name, value in lemmata.load(run).state_dict().items()}
    checkpoint.save(run / "final", 16, {"system": weights})
    code, out, err = call(capsys, "predict", run)
    said = f"in step 16 of {run}/final holds values that are not finite: what the system says is worth nothing\n"
    assert (code, err.count("\n")) == (0, 1)
    assert err.endswith(said)
    assert "accuracy" in out
    with pytest.warns(UserWarning, match="not finite"):
        lemmata.load(run)


def test_a_newest_checkpoint_without_its_json_is_said_when_the_older_is_used(capsys, run):
    said = "step-00000016.safetensors: step-00000016.json is missing"
    (run / "checkpoints" / "step-00000016.json").unlink()
    code, out, err = call(capsys, *resume(run)[:-1])
    assert (code, err) == (0, f"lemmata: skipped {said}\n")
    assert "going on at step 8 of 16 (epoch 1 of 1): mlp on moons" in out
    for part in ("final", "checkpoints"):
        (run / part / "step-00000016.json").unlink()
    (run / "result.json").unlink()
    code, _, err = call(capsys, "predict", run)
    assert (code, err) == (0, f"lemmata: skipped {said}; step 8 of {run}/checkpoints is used instead\n")


# --- Going on ---


def test_folders_that_are_no_numbered_runs_do_not_break_resuming(capsys, trained, tmp_path):
    for name in ("mlp-moons-1", "mlp-moons-2", "mlp-moons-2-backup", "mlp-moons-copy", "mlp-moons-³", "mlp-moons-9"):
        shutil.copytree(trained, tmp_path / "runs" / name)
    (tmp_path / "runs" / "mlp-moons-9" / "run.json").unlink()  # began, and trained nothing
    code, out, err = call(capsys, "train", "mlp", "--data", "moons", "--resume")
    assert (code, err) == (0, "")
    assert "in runs/mlp-moons-2\n" in out


def stop(monkeypatch, number, at):
    told = live.Live.stepped

    def stepped(self, step, epoch, numbers):
        told(self, step, epoch, numbers)
        if step == at:
            signal.raise_signal(number)

    monkeypatch.setattr(live.Live, "stepped", stepped)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_closed_terminal_in_the_first_epoch_is_resumed_where_it_was(capsys, trained, monkeypatch, number, code):
    words = "--data moons --epochs 1 --widths 4 --save 8 --device cpu".split()
    with monkeypatch.context() as patch:
        stop(patch, number, at=5)
        found, _, err = call(capsys, "train", "mlp", *words, "--out", "here")
    assert (found, err) == (code, "lemmata: stopped; go on with: lemmata train mlp --resume --out here\n")
    found, out, err = call(capsys, "train", "mlp", "--resume", "--out", "here")
    assert (found, err) == (0, "")
    assert "going on at step 5 of 16 (epoch 1 of 1): mlp on moons" in out
    whole, resumed = (lemmata.load(folder).state_dict() for folder in (trained, "here"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_where_nothing_was_saved_resuming_says_that_it_starts_at_0(capsys, run):
    for part in ("final", "checkpoints"):
        shutil.rmtree(run / part)
    code, out, err = call(capsys, *resume(run))
    said = f"lemmata: there is nothing to resume in {run}/checkpoints: training starts at step 0\n"
    assert (code, err) == (0, said)
    assert "accuracy" in out


def test_resuming_under_other_conditions_says_so(capsys, run, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    code, _, err = call(capsys, *resume(run))
    assert code == 0
    assert err == (
        "lemmata: step 16 was saved under other conditions (threads 64, was 1): "
        "from here on the bits may differ from those of an unbroken run\n"
    )


# --- Files of examples ---


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", b"1," + b"2" * 200_000, "cannot be read: field larger than field limit (131072)"),
        ("x.csv", b"a,b,y\n", "x must hold examples of 2 numbers, got an array of shape (0, 2)"),
        ("x.csv", b"1e300,2\n", "x must be finite, found 1 values that are not"),
        ("x.csv", b"a,b,y\n1,2,inf\n", "must be an integer for each of the 1 examples"),
        ("x.csv", b"a,b,y\n1,2,1e300\n", "must be an integer for each of the 1 examples"),
        (
            "x.npy",
            b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (10",
            "cannot be read",
        ),
        ("x.npz", b"PK\x05\x06" + bytes(18), "it has no array x, only nothing"),
    ],
)
def test_files_of_every_bad_kind_are_one_sentence(capsys, trained, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    refused(capsys, said, "predict", trained, "--input", tmp_path / name)


def test_an_array_that_is_too_large_or_none_is_one_sentence(capsys, trained, tmp_path):
    huge = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**13}, 2), }}".ljust(117) + "\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + huge.encode())
    refused(capsys, "cannot be read", "predict", trained, "--input", tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x", "no array")
    refused(capsys, "x in it is no array", "predict", trained, "--input", tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", x=np.zeros((1, 2)), y=np.array([0.5]))
    refused(capsys, "must be an integer", "predict", trained, "--input", tmp_path / "y.npz")
