"""Training on a GPU: the same laws, bfloat16 where it works, and numbers looked at several steps late."""

import pytest
import torch
from torch import nn

from lemmata.train import Diverged, Options, Watcher, fit

if not torch.cuda.is_available():
    pytest.skip("needs CUDA", allow_module_level=True)

X = torch.rand(400, 8, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1) > 4).long()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))


def options(**words):
    return Options(**{"epochs": 3, "batch_size": 32, "lr": 0.01} | words)


def weights(run):
    return torch.cat([parameter.detach().flatten() for parameter in run.system.parameters()])


def test_auto_takes_the_gpu_and_gives_the_same_bits_twice():
    first, second = (weights(fit(network(), (X, Y), options=options())) for _ in range(2))
    assert first.is_cuda
    assert torch.equal(first, second)


def test_resuming_on_the_gpu_gives_the_same_bits(tmp_path):
    whole = fit(network(), (X, Y), options=options(epochs=4, ema_decay=0.9, clip=1.0))
    fit(network(), (X, Y), options=options(epochs=2, ema_decay=0.9, clip=1.0), out=tmp_path)
    torch.manual_seed(5)
    later = fit(network(), (X, Y), options=options(epochs=4, ema_decay=0.9, clip=1.0), out=tmp_path, resume=True)
    assert torch.equal(weights(whole), weights(later))


def noisy(system, batch):
    return nn.functional.cross_entropy(system(batch.x), batch.y) * (1 + torch.rand((), device="cuda"))


class Dying(Watcher):
    """Ends the run at once when a step is saved."""

    def __init__(self, step):
        self.step = step

    def saved(self, step, path):
        if step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("save", [3, 5, 50])
def test_a_run_that_died_inside_an_epoch_goes_on_with_the_same_bits_and_log(tmp_path, save):
    """Numbers wait on the GPU to be looked at; of those that wait none may be lost with the process."""
    x, y = X.repeat(5, 1), Y.repeat(5)  # 125 steps an epoch, every twelfth told

    def train(out, watchers=(), **words):
        chosen = options(batch_size=16, save=save, ema_decay=0.9, clip=1.0)
        return fit(network(), (x, y), loss=noisy, options=chosen, out=tmp_path / out, watchers=watchers, **words)

    whole = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("cut", [Dying(3 * save)])
    torch.cuda.manual_seed(5)
    cut = train("cut", resume=True)
    assert torch.equal(weights(whole), weights(cut))
    assert (tmp_path / "whole" / "log.jsonl").read_text() == (tmp_path / "cut" / "log.jsonl").read_text()
    assert cut.messages == []


def test_a_run_of_the_gpu_goes_on_on_the_cpu_and_says_so(tmp_path):
    fit(network(), (X, Y), options=options(epochs=1), out=tmp_path)
    later = fit(network(), (X, Y), options=options(epochs=2, device="cpu"), out=tmp_path, resume=True)
    assert not weights(later).is_cuda
    (message,) = later.messages
    assert f"(device cpu, was {torch.cuda.get_device_name()})" in message


def test_bfloat16_learns_and_keeps_the_weights_in_float32():
    run = fit(network(), (X, Y), options=options(epochs=20, precision="bfloat16"))
    assert weights(run).dtype is torch.float32
    assert run.scores["loss"] < 0.5


def test_a_number_that_is_not_finite_is_found_late_but_placed_right():
    calls = []

    def loss(system, batch):
        calls.append(1)
        value = nn.functional.cross_entropy(system(batch.x), batch.y)
        return value * torch.nan if len(calls) == 7 else value

    with pytest.raises(Diverged, match="loss became nan at step 7 "):
        fit(network(), (X, Y), loss=loss, options=options())
