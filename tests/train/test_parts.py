"""The parts of the loop: order, schedules, options, devices, random numbers, the log, saved systems."""

import itertools
import json
import random

import numpy as np
import pytest
import torch
from torch import nn

from lemmata.train import Options, choose_device, evaluating, fit, load_run, restore_system, seeded
from lemmata.train.folder import free_folder, numbered_folders, read_record
from lemmata.train.optimizers import lr_factor
from lemmata.train.randomness import batch_indices
from lemmata.train.watch import Log, TensorBoard

X = torch.rand(40, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("examples", "size"), [(10, 3), (7, 7), (5, 9), (1, 1)])
def test_every_epoch_uses_every_example_once_in_an_order_of_its_own(examples, size):
    batches = -(-examples // size)
    epochs = [torch.cat([batch_indices(3, epoch, b, size, examples) for b in range(batches)]) for epoch in range(3)]
    assert all(sorted(epoch.tolist()) == list(range(examples)) for epoch in epochs)
    assert examples < 5 or not torch.equal(epochs[0], epochs[1])


def test_an_order_depends_on_seed_and_epoch_and_on_nothing_else():
    torch.manual_seed(1)
    first = batch_indices(0, 1, 0, 50, 50).clone()
    torch.manual_seed(2)
    batch_indices.__globals__["_epoch_order"].cache_clear()
    assert torch.equal(first, batch_indices(0, 1, 0, 50, 50))
    assert not torch.equal(first, batch_indices(1, 0, 0, 50, 50))


@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear"])
def test_rates_rise_to_one_and_never_rise_again(schedule):
    rates = [lr_factor(step, 50, schedule, warmup=10) for step in range(50)]
    assert rates[:10] == [(step + 1) / 10 for step in range(10)]
    assert rates[10] == 1
    assert all(0 < later <= earlier for earlier, later in itertools.pairwise(rates[10:]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"batch_size": 2.5}, "batch_size must be an integer, got float"),
        ({"lr": float("nan")}, "lr must be finite, got nan"),
        ({"keep": 1}, "keep must be >= 2, got 1"),
        ({"ema_decay": 1.0}, "ema_decay must be > 0 and < 1, got 1.0"),
        ({"clip": 0}, "clip must be > 0, got 0"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\), got 1.0"),
        ({"weight_decay": -1}, "weight_decay must be >= 0, got -1"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"seed": 2**60}, "seed must be <= 9007199254740991, got 1152921504606846976"),
        ({"lr": "0.1"}, "lr must be a number, got str"),
        ({"lr": 10**400}, "lr must be finite, got 1000"),
        ({"weight_decay": None}, "weight_decay must be a number, got NoneType"),
        ({"momentum": True}, "momentum must be a number, got bool"),
        ({"ema_decay": [0.5]}, "ema_decay must be a number, got list"),
        ({"save_seconds": 0}, "save_seconds must be > 0, got 0"),
        ({"save_seconds": None}, "save_seconds must be a number, got NoneType"),
        ({"device": 0}, "device must be a name such as auto, cpu or cuda, got 0"),
        ({"schedule": "cosin"}, "schedule must be one of constant, cosine, linear, got 'cosin'"),
    ],
)
def test_options_are_checked(words, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Options(**words)


def test_an_absent_device_is_named_with_those_that_are_there():
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"device 'tpu' is not here: use auto, cpu"):
        choose_device("tpu")


def test_bfloat16_is_refused_where_it_would_kill_the_process(monkeypatch):
    from lemmata.train import device

    monkeypatch.setattr(device, "_cpu_multiplies_bfloat16", lambda: False)
    with pytest.raises(ValueError, match="precision bfloat16 crashes torch on this CPU: use --precision float32"):
        fit(nn.Linear(3, 1), (X, X[:, :1]), options=Options(precision="bfloat16", device="cpu"))


def test_seeded_draws_repeat_and_leave_no_trace():
    def draws():
        return torch.rand(1).item(), np.random.rand(), random.random()  # noqa: NPY002

    with seeded(4):
        first = draws()
    torch.manual_seed(9), np.random.seed(9), random.seed(9)  # noqa: NPY002
    outside = draws()
    torch.manual_seed(9), np.random.seed(9), random.seed(9)  # noqa: NPY002
    with seeded(4):
        assert draws() == first
    assert draws() == outside


def test_parts_that_were_frozen_stay_so_after_evaluating_even_if_it_fails():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2))
    model[2].eval()
    with evaluating(model):
        assert not any(part.training for part in model.modules())
        assert not model(torch.ones(3, 2)).requires_grad
    with pytest.raises(RuntimeError), evaluating(model):
        model(torch.ones(3, 5))
    assert [part.training for part in model.modules()] == [True, True, True, False]
    assert model(torch.ones(3, 2)).requires_grad


def test_a_log_that_was_cut_in_the_middle_goes_on_from_the_checkpoint(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"ste')
    log = Log(path)
    log.started({"step": 2})
    log.stepped(3, 0, {"loss": 0.5})
    log.closed()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]


def test_tensorboard_is_asked_for_by_name_when_it_is_absent(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match="pip install tensorboard"):
        TensorBoard(tmp_path)


def test_free_folders_are_numbered_and_never_shared(tmp_path):
    assert [free_folder(tmp_path, "mlp").name for _ in range(3)] == ["mlp-1", "mlp-2", "mlp-3"]
    (tmp_path / "mlp-9").mkdir()
    assert free_folder(tmp_path, "mlp").name == "mlp-10"
    for name in ("mlp-11-backup", "mlp-old-12", "mlp-²", "mlp-013", "mlp--14", "mlp-1e2", "xmlp-15"):
        (tmp_path / name).mkdir()
    assert sorted(numbered_folders(tmp_path, "mlp")) == [1, 2, 3, 9, 10]
    assert free_folder(tmp_path, "mlp").name == "mlp-11"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not the folder of a run: it has no run.json"),
        ("{", "cannot be read"),
        ("[]", "is damaged"),
        ('{"format": 99}', "was made by a newer lemmata: pip install --upgrade lemmata"),
    ],
)
def test_a_record_that_cannot_be_used_says_why(tmp_path, text, message):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_record(tmp_path)


def test_a_class_of_ones_own_is_restored_by_hand(tmp_path):
    run = fit(nn.Linear(3, 1), (X, X[:, :1]), options=Options(epochs=1, device="cpu"), out=tmp_path)
    with pytest.raises(ValueError, match=r"a Linear, which cannot .* lemmata\.load\(.*, model=Linear\(\.\.\.\)\)"):
        load_run(tmp_path)
    mine = nn.Linear(3, 1)
    assert restore_system(mine, tmp_path) == ""
    assert torch.equal(mine.weight, run.system.weight)
    assert torch.equal(load_run(tmp_path, model=nn.Linear(3, 1)).weight, run.model.weight)
    with pytest.raises(ValueError, match=r"the weights in .* do not fit Linear"):
        restore_system(nn.Linear(4, 1), tmp_path)


def test_half_trained_weights_can_be_used(tmp_path):
    run = fit(nn.Linear(3, 1), (X, X[:, :1]), options=Options(epochs=2, save=1, device="cpu"), out=tmp_path)
    for path in (tmp_path / "final").iterdir():
        path.unlink()
    mine = nn.Linear(3, 1)
    said = f"{tmp_path}/final is empty, though the run has ended: restore it from a copy; "
    assert restore_system(mine, tmp_path) == said + f"step 2 of {tmp_path}/checkpoints is used instead"
    assert torch.equal(mine.weight, run.system.weight)
    (tmp_path / "result.json").unlink()  # as if it were training still
    assert restore_system(mine, tmp_path) == ""


def test_a_folder_without_weights_says_so(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1}')
    with pytest.raises(ValueError, match="holds no checkpoint: train again"):
        restore_system(nn.Linear(3, 1), tmp_path)
