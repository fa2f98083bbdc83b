"""Two processes compute what one does."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import torch
from torch import nn

from lemmata.train import Options, World, checkpoint, fit, seeded
from lemmata.train.randomness import random_state
from lemmata.train.training import Training

PROGRAM = """
import atexit, glob, json, os, signal, sys, torch
from torch import nn
from torch.nn import functional
from lemmata.train import Options, fit
def alive():  # threads of the group that a tensor's end could wake when Python is gone
    names = [open(task).read() for task in glob.glob("/proc/self/task/*/comm")]
    open(sys.argv[2] + os.environ["RANK"] + ".threads", "w").write("".join(name for name in names if "gloo" in name))
atexit.register(alive)  # the first to be told is the last to run
torch.manual_seed(0)
x = torch.rand(101, 6, dtype=torch.float64)  # the last batch of an epoch has 5 examples, and an odd split
system = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)).double()
words = json.loads(sys.argv[1])
examples = x, x.prod(1, keepdim=True)
resume, calls = sys.argv[3] == "resume", []
def loss(system, batch):
    calls.append(1)
    if len(calls) == 17 and os.environ["RANK"] == "1" and not resume:  # the ninth step, in the middle of an epoch
        os.kill(os.getpid(), signal.SIGTERM)  # one process alone: both must end after the same step
    return functional.mse_loss(system(batch.x), batch.y)
run = fit(system, examples, loss=loss, options=Options(**words), out=sys.argv[2], resume=resume)
"""
WORDS = {"epochs": 3, "batch_size": 16, "precision": "float64", "device": "cpu"}
WORDS |= {"lr": 0.01, "accumulate": 2, "clip": 0.5}


def start(tmp_path, words, folder, procs, resume=False):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(procs)]
    command = [*launch, str(program), json.dumps(words), str(folder), "resume" if resume else "new"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode == 0) == resume, done.stderr
    for rank in range(procs):  # torchrun ends a process that is still at work when another has failed
        left = folder.with_name(f"{folder.name}{rank}.threads")
        assert not (resume or left.exists()) or left.read_text() == ""


def final(folder):
    weights = checkpoint.newest(folder / "final").state["system"]
    return torch.cat([value.flatten() for value in weights.values()])


def alone(words):
    torch.manual_seed(0)
    x = torch.rand(101, 6, dtype=torch.float64)
    system = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    run = fit(system, (x, x.prod(1, keepdim=True)), options=Options(**words))
    return torch.cat([value.flatten() for value in run.system.state_dict().values()])


def test_two_processes_stopped_by_one_of_them_and_resumed_equal_one_at_the_same_global_batch(tmp_path):
    start(tmp_path, WORDS, tmp_path / "two", procs=2)
    assert checkpoint.newest(tmp_path / "two" / "checkpoints").step == 9
    start(tmp_path, WORDS, tmp_path / "two", procs=2, resume=True)
    assert (final(tmp_path / "two") - alone(WORDS)).abs().max() <= 1e-12
    lines = (tmp_path / "two" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines if '"event": "step"' in line] == list(range(1, 22))


def test_shares_cover_a_batch_and_weigh_it_right():
    indices = torch.arange(7)
    shares = [World(rank, 3).share(indices) for rank in range(3)]
    assert sorted(torch.cat([mine for mine, _ in shares]).tolist()) == list(range(7))
    assert [round(weight, 6) for _, weight in shares] == [round(3 * n / 7, 6) for n in (3, 2, 2)]


def test_a_process_without_examples_still_takes_part_with_no_weight():
    assert World(2, 3).share(torch.tensor([5, 6]))[1] == 0.0
    assert len(World(2, 3).share(torch.tensor([5, 6]))[0]) == 1


def test_every_process_goes_on_with_random_numbers_of_its_own():
    """Equal dropout on all shares would be less noise than one process has."""
    states = [torch.Generator().manual_seed(rank).get_state() for rank in range(2)]
    position = {"step": 3, "epoch": 0, "position": 3, "sums": {}, "count": 0, "epoch_sums": {}, "epoch_count": 0}
    position |= {"seconds": 1.0, "stopped": "finished"}
    position["best"] = {"scores": {}, "system": None, "since": 0}
    with seeded(7):
        state = {"learner": {}, "random": random_state(), "ranks": states, "stream": None}
        for rank, drawn in ((0, states[0]), (1, states[1]), (2, torch.get_rng_state())):  # 2 was not there before
            loop = object.__new__(Training)
            loop.system, loop.options, loop.world = None, Options(), World(rank, 3)
            loop.learner = SimpleNamespace(restore=lambda state: None)
            loop.data = SimpleNamespace(check=lambda *place: None, restore=lambda state, position: "")
            loop.restore(state, position)
            assert torch.equal(torch.get_rng_state(), drawn)
