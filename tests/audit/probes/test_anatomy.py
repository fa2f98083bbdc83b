"""Costs against torch's own count; units that repeat others; outputs that never move."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lemmata.audit import audit
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.probes.anatomy import anatomy
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject
from lemmata.data.registry import load


@pytest.fixture(scope="module")
def digits():
    columns = load("digits").train.columns
    return columns["x"][:200], columns["y"][:200]


def dense():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))


def pictures(norm=nn.Identity):
    layers = [nn.Conv2d(1, 16, 3), norm(16), nn.ReLU(), nn.Conv2d(16, 16, 3, groups=16), nn.ReLU()]
    return nn.Sequential(nn.Unflatten(1, (1, 8)), *layers, nn.Flatten(), nn.Linear(256, 10))


def asked(model, data, **more):
    return audit(model, data, probes=["anatomy"], **more)


def test_costs_are_those_of_torch(digits):
    model = pictures()
    found = asked(model, digits, batch_size=10, optimizer="adam", lr=1e-3)["anatomy"]
    with FlopCounterMode(display=False) as counter:
        model(digits[0][:1])
    assert found.numbers["operations"] == counter.get_total_flops()
    parameters = sum(values.numel() for values in model.parameters())
    assert found.numbers["parameters"] == parameters
    assert found.numbers["layers"] == 3
    # Kept are what each of the three layers is given and what the first activation made; that of the second is the
    # input of the last layer, flat.
    kept = 4 * (64 + 16 * 36 + 16 * 16)
    assert found.numbers["kept_bytes"] == pytest.approx(kept, rel=0.01)
    assert found.numbers["batch_bytes"] == pytest.approx(4 * 4 * parameters + 10 * kept, rel=0.01)
    assert "batches of 10" in found.verdict


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [1.0, 2.7])
def test_a_copied_unit_is_an_alarm_and_its_twin_is_not(factor, dtype, digits):
    for make, layer in ((dense, 1), (pictures, 1), (lambda: pictures(nn.BatchNorm2d), 1), (dense, 3)):
        model = make().to(dtype)
        assert asked(model, digits)["duplicate units"].severity == "fine"
        with torch.no_grad():
            model[layer].weight[7] = factor * model[layer].weight[3]
            model[layer].bias[7] = factor * model[layer].bias[3]
        (found,) = asked(model, digits).alarms
        assert found.name == "duplicate units"
        assert found.where == [str(layer)]
        assert found.numbers["repeated"] == 1
        assert "3 and 7" in found.verdict


def test_columns_of_a_plain_product_are_units_too():
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Parameter(torch.randn(9, 16)), nn.Parameter(torch.randn(2, 16))

        def forward(self, x):
            return torch.relu(x @ self.first) @ self.second.T

    model, x = Product(), torch.randn(70, 9)
    assert asked(model, (x, torch.randint(0, 2, (70,))))["duplicate units"].severity == "fine"
    with torch.no_grad():
        model.first[:, 11] = 3 * model.first[:, 4]
    (found,) = asked(model, (x, torch.randint(0, 2, (70,)))).alarms
    assert found.where == ["first"]
    assert "4 and 11" in found.verdict


def test_weights_filled_with_one_number_are_an_alarm(digits):
    model = dense()
    nn.init.constant_(model[3].weight, 0.1)
    nn.init.zeros_(model[3].bias)
    (found,) = asked(model, digits).alarms
    assert "all 32 units of layer 3 are the same" in found.verdict
    assert found.weight > 8


def test_what_only_looks_alike_is_no_alarm(digits):
    mirrored, zeros, depthwise, copies = dense(), dense(), pictures(), dense()
    with torch.no_grad():
        mirrored[1].weight[7] = -mirrored[1].weight[3]  # one half of an absolute value
        mirrored[1].bias[7] = -mirrored[1].bias[3]
        zeros[1].weight[5:9] = 0.0  # pruned
        zeros[1].bias[5:9] = 0.0
        depthwise[4].weight.copy_(depthwise[4].weight[:1].clone())  # one filter for each channel, as for a blur
        depthwise[4].bias.zero_()
        copies[1].weight[7] = copies[1].weight[3] * (1 + 1e-3 * torch.randn(64))  # near is not the same
    for model in (mirrored, zeros, depthwise, copies):
        assert asked(model, digits)["duplicate units"].severity == "fine"
    line = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 1))
    nn.init.zeros_(line[0].bias)  # units of one number can only differ by a factor
    x = torch.randn(100, 1)
    assert asked(line, (x, x.square()))["duplicate units"].severity == "fine"


def test_weights_of_few_values_agree_by_chance():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.randint(-1, 2, (64, 4)))
        model[0].bias.zero_()
    assert asked(model, (torch.randn(100, 4), torch.randint(0, 2, (100,))))["duplicate units"].severity == "fine"


def test_kernels_for_pixel_shuffle_begin_equal():
    kernel = nn.Conv2d(1, 4, 3, padding=1)
    with torch.no_grad():
        kernel.weight.copy_(kernel.weight[:1].clone())
        kernel.bias.zero_()
    x = torch.randn(50, 1, 4, 4)
    target = nn.functional.interpolate(x, scale_factor=2)
    assert not asked(nn.Sequential(kernel, nn.PixelShuffle(2)), (x, target)).alarms
    assert asked(nn.Sequential(kernel, nn.Flatten()), (x, target.flatten(1))).alarms


def test_outputs_that_never_move_are_an_alarm(digits):
    model = dense()
    assert asked(model, digits)["constant outputs"].severity == "fine"
    with torch.no_grad():
        model[3].bias.fill_(-100.0)
    assert asked(model, digits)["constant outputs"].severity == "alarm"
    zero = dense()
    nn.init.zeros_(zero[5].weight)  # a head that begins with zeros is a choice
    assert asked(zero, digits)["constant outputs"].severity == "hint"


def test_outputs_that_move_for_few_examples_are_no_alarm():
    model = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    with torch.no_grad():
        model[0].weight.fill_(1.0)
        model[0].bias.fill_(-1.0)
    x = torch.linspace(-1.0, 0.9, 1000)[:, None]
    x[5] = 2.0  # the only one that gets through
    assert asked(model, (x, x.clone()))["constant outputs"].severity == "fine"
    assert asked(model, (x[6:], x[6:].clone()))["constant outputs"].severity == "alarm"


def test_other_models_and_data():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = nn.Embedding(9, 8), nn.LSTM(8, 16, batch_first=True), nn.Linear(20, 1)

        def forward(self, tokens, more):
            return (self.head(torch.cat([self.rnn(self.embed(tokens))[0][:, -1], more], 1)),)

    data = {"tokens": torch.randint(0, 9, (64, 5)), "more": torch.randn(64, 4), "y": torch.randn(64, 1)}
    report = asked(Two(), data)
    assert not report.alarms
    assert report["anatomy"].numbers["layers"] == 3


def test_time_and_left_as_found(digits):
    model = pictures(nn.BatchNorm2d).train()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    asked(model, digits)
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    assert model.training
    subject = Subject(model, as_sample(digits))
    subject.seconds = 1.0
    with pytest.raises(OutOfTime, match="the operations of a batch would take about 8"):
        list(anatomy.asks(subject, Clock(1.0, now=lambda: 0.0)))
