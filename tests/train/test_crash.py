"""Training that is killed, at any moment and again and again, ends with the same weights to the last bit.

This file is also a program: it loads torch once, then forks a training for every folder it is told, which gets killed.
A training writes a letter at every call that changes a file, so that kills can be aimed at the middle of one.
"""

import hashlib
import importlib
import os
import random
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import torch
from torch import nn

from lemmata.files import DRAFT
from lemmata.train.checkpoint import newest
from lemmata.train.loop import fit
from lemmata.train.options import Options
from lemmata.train.watch import Watcher

STEPS = 24


def train(folder, watchers=()):
    """A small network with dropout and Adam, saved at every step; the SHA-256 of the weights it ends with."""
    torch.manual_seed(0)
    x, system = torch.randn(96, 8), nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 1))
    options = Options(epochs=100, steps=STEPS, batch_size=16, optimizer="adam", schedule="cosine", save=1, device="cpu")
    resume = (folder / "run.json").exists()
    run = fit(system, (x, x.sum(1, keepdim=True)), options=options, out=folder, resume=resume, watchers=watchers)
    assert run.steps == STEPS
    return hashlib.sha256(b"".join(value.numpy().tobytes() for value in system.state_dict().values())).hexdigest()


# --- the program that is killed ---


def main():
    torch.set_num_threads(1)
    importlib.import_module("torch._dynamo")  # what the first optimiser of a process would load, for two seconds
    end_of_server, held = os.pipe()
    for line in sys.stdin:
        if pid := os.fork():
            os.waitpid(pid, 0)
            print("\ngone", flush=True)
        else:
            os.close(held)
            train_aloud(Path(line.rstrip("\n")))
            os.read(end_of_server, 1)  # stay: only somebody who is surely alive may be killed by number
            return


def train_aloud(folder):
    print(os.getpid(), flush=True)
    for name in ("write", "fsync", "replace", "unlink"):
        setattr(os, name, telling(name))
    try:
        print(f"={train(folder)}", flush=True)
    except BaseException:
        traceback.print_exc()
        print("=failed", flush=True)


def telling(name):
    real = getattr(os, name)

    def call(*arguments):
        print(name[0], end="", flush=True)
        return real(*arguments)

    return call


# --- the tests ---


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return train(tmp_path_factory.mktemp("uninterrupted") / "run")


@pytest.fixture(scope="module")
def server():
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, bufsize=0) as process:
        yield process
        process.kill()


def letter(server):
    heard = server.stdout.read(1)
    assert heard, "the program that trains is gone"
    return heard


def killed(server, folder, letters=sys.maxsize):
    """Train until so many letters came, then kill; the SHA-256 of the weights if the training was done before."""
    server.stdin.write(f"{folder}\n".encode())
    pid = int(server.stdout.readline())
    said = b""
    while len(said) < letters and not said.endswith(b"\n"):
        said += letter(server)
    os.kill(pid, signal.SIGKILL)
    while not said.endswith(b"\ngone\n"):
        said += letter(server)
    return said.decode().split("\n")[0].partition("=")[2] or None


def half_done(folder):
    """Whether a kill left a draft, or the tensors of a checkpoint without their JSON."""
    drafts = [path for path in folder.rglob(".*") if path.name.endswith(DRAFT)]
    orphans = [path for path in folder.rglob("*.safetensors") if not path.with_suffix(".json").exists()]
    return bool(drafts or orphans)


def kill_and_resume(server, folder, kills, rng):
    """The SHA-256 of the weights at the end, and how many of the kills fell into the middle of a write."""
    inside = 0
    for _ in range(kills):
        assert killed(server, folder, rng.randrange(1, 40)) is None
        inside += half_done(folder)
    return killed(server, folder), inside


def test_five_kills_change_nothing(server, tmp_path, reference):
    end, _ = kill_and_resume(server, tmp_path / "run", 5, random.Random(0))
    assert end == reference
    assert not half_done(tmp_path / "run")


@pytest.mark.long
def test_two_hundred_kills_change_nothing(server, tmp_path, reference):
    rng = random.Random(1)
    ends, inside = zip(*(kill_and_resume(server, tmp_path / str(n), 5, rng) for n in range(40)), strict=True)
    assert set(ends) == {reference}
    assert sum(inside) >= 20, "the kills were badly aimed"


class Interrupting(Watcher):
    """Sends this process a signal once a step is saved."""

    def __init__(self, at, number):
        self.at, self.number = at, number

    def saved(self, step, path):
        if step == self.at:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_polite_signal_keeps_a_checkpoint_and_changes_nothing(tmp_path, reference, number, raised):
    for step in (1, 7, 20):
        with pytest.raises(raised):
            train(tmp_path, [Interrupting(step, number)])
        assert newest(tmp_path / "checkpoints").step == step + 1  # the step that was under way is finished and kept
    assert train(tmp_path) == reference


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "unlink"])
def test_an_impatient_second_signal_in_the_middle_of_a_save_changes_nothing(tmp_path, reference, monkeypatch, call):
    calls, real = [], getattr(os, call)

    def interrupted(*arguments):
        calls.append(call)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path)
    assert train(tmp_path) == reference
    assert not half_done(tmp_path)


if __name__ == "__main__":
    main()
