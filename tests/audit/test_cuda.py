"""The audit on a GPU: the same faults, the same order at the end, within the budget."""

import json
import time

import pytest
import torch
from torch import nn

from lemmata.audit import audit
from lemmata.audit.demo import faulty
from lemmata.data import load
from lemmata.lab.cli import main

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def test_the_faults_of_the_demo_are_found_there_too():
    demo = faulty()
    demo["model"].cuda()
    before = {name: value.clone() for name, value in demo["model"].state_dict().items()}
    generator = torch.cuda.get_rng_state()
    report = audit(**demo)
    names = {one.name for one in report.alarms}
    assert names >= {"dead units", "outputs and loss", "step size", "calibration", "copies in test"}
    assert report.facts["model"].endswith("on cuda:0")
    assert all(torch.equal(value, before[name]) for name, value in demo["model"].state_dict().items())
    assert torch.equal(torch.cuda.get_rng_state(), generator)
    assert report.seconds < 1.2 * report.budget


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_healthy_network_passes(dtype):
    data = load("digits")
    layers = [nn.Flatten(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)]
    model = nn.Sequential(*layers).to("cuda", dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = (data.train.x - 0.3).to("cuda", dtype), data.train.y.cuda()
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x).float(), y).backward()
        optimizer.step()
    started = time.perf_counter()
    report = audit(
        model.eval(),
        (data.train.x - 0.3, data.train.y),
        (data.test.x - 0.3, data.test.y),
        optimizer=optimizer,
        budget=20,
    )
    assert report.alarms == [], str(report)
    assert time.perf_counter() - started < 1.2 * 20


def test_the_command_takes_a_device(tmp_path, monkeypatch, capsys):
    (tmp_path / "net.py").write_text("from torch import nn\nnet = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "net.py:net", "--data", "digits", "--device", "cuda", "--budget", "10", "--json"]) in (0, 1)
    assert "cuda:0" in json.loads(capsys.readouterr().out)["facts"]["model"]
