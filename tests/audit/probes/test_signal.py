"""Weights of a wrong scale in deep networks are found, and their factor agrees with mean-field theory."""

import pytest
import torch
from torch import nn

from lemmata.audit import audit
from lemmata.audit.clock import Clock
from lemmata.audit.probes.signal import signal
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject
from lemmata.tricks import expected_profile, initialize

NAME = "signal through depth"


def deep(scale, activation=nn.ReLU, scheme="he", layers=20, width=64, norm=None):
    """A network whose weights are drawn `scale` times too large."""
    parts = []
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), *([] if norm is None else [norm(width)]), activation()]
    model = nn.Sequential(*parts, nn.Linear(width, 10))
    initialize(model, scheme, gain=scale, generator=torch.Generator().manual_seed(0))
    return model


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(100, 64, generator=generator), torch.randint(0, 10, (100,), generator=generator)


def asked(model, data, **more):
    return audit(model, data, probes=["signal"], **more)


@pytest.mark.parametrize(("activation", "scheme"), [(nn.ReLU, "he"), (nn.Tanh, "lecun"), (nn.GELU, "he")])
@pytest.mark.parametrize("scale", [3.0, 1 / 3])
def test_three_times_too_large_or_too_small_in_twenty_layers_is_an_alarm(activation, scheme, scale, data):
    found = asked(deep(scale, activation, scheme), data)[NAME]
    assert found.severity == "alarm"
    assert found.weight == 9
    word = "shrink" if scale < 1 else "grow"
    assert word in found.verdict
    assert "initialize(model" in found.advice
    # What a wide network of these variances does; the logarithm of a layer's factor scatters by about 1/8 at width 64.
    profile = expected_profile([64] * 20, activation.__name__.lower(), scheme, scale)
    back = float((profile.backward[0] / profile.backward[-1]) ** (1 / 36))
    assert found.numbers["backward_factor"] == pytest.approx(back, rel=0.15)
    assert found.numbers["backward_total"] == pytest.approx(found.numbers["backward_factor"] ** 18)


@pytest.mark.parametrize(("activation", "scheme"), [(nn.ReLU, "he"), (nn.Tanh, "lecun"), (nn.GELU, "he")])
def test_the_right_scale_is_fine(activation, scheme, data):
    report = asked(deep(1.0, activation, scheme), data)
    assert not report.alarms
    assert report[NAME].severity in ("fine", "hint")


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.BatchNorm1d])
@pytest.mark.parametrize("scale", [3.0, 1 / 3])
def test_normalisation_makes_up_for_the_scale(norm, scale, data):
    assert not asked(deep(scale, norm=norm), data).alarms


def test_convolutions_and_functions_are_seen_alike(data):
    class Pictures(nn.Module):
        def __init__(self, scale):
            super().__init__()
            kernels = [torch.randn(8, 8, 3, 3) * scale * (2 / 72) ** 0.5 for _ in range(19)]
            self.kernels, self.head = nn.ParameterList(map(nn.Parameter, kernels)), nn.Linear(8, 10)

        def forward(self, x):
            x = x.reshape(-1, 1, 8, 8).expand(-1, 8, 8, 8)
            for kernel in self.kernels:
                x = nn.functional.relu(nn.functional.conv2d(x, kernel, padding=1), inplace=True)
            return self.head(x.mean((2, 3)))

    torch.manual_seed(0)
    assert asked(Pictures(3.0), data)[NAME].severity == "alarm"
    assert not asked(Pictures(1.0), data).alarms


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_other_dtypes_regression_and_outputs_of_other_kinds(dtype, data):
    class Answer:
        def __init__(self, logits):
            self.logits = logits

    class Wrapped(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, first, second):
            return Answer(self.inner(torch.cat([first, second], 1)))

    x, _ = data
    targets = torch.randn(len(x), 10)
    for scale, severity in ((3.0, "alarm"), (1.0, "fine")):
        model = Wrapped(deep(scale)).to(dtype)
        report = audit(model, {"first": x[:, :30], "second": x[:, 30:], "y": targets}, probes=["signal"])
        assert report[NAME].severity == severity


def test_overflow_is_named_where_it_begins(data):
    model = nn.Sequential(*[layer for _ in range(5) for layer in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10))
    with torch.no_grad():
        for layer in (model[0], model[2]):
            layer.weight.fill_(1e20)
            layer.bias.fill_(1e20)
    report = asked(model, data)
    assert report[NAME].severity == "alarm"
    assert report[NAME].where == ["2"]
    assert "overflow float32 in layer 2" in report[NAME].verdict


def test_each_layer_is_told_by_its_law(data):
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10))
    with torch.no_grad():
        nn.init.kaiming_normal_(model[0].weight)
        nn.init.orthogonal_(model[2].weight)
        model[4].weight.normal_(0, 3 * (2 / 64) ** 0.5)
        model[6].weight.copy_(torch.randn(64, 1) @ torch.randn(1, 64))
    found = asked(model, data)["initialisation"]
    assert found.severity == "hint"
    assert found.where == ["4"]
    assert "1 of 5 layers" in found.verdict
    for word in ("1 normal he", "1 orthogonal", "1 uniform torch", "1 trained", "1 normal of another scale"):
        assert word in found.measured
    assert found.numbers["ratio_to_he.4"] == pytest.approx(3, rel=0.05)


def test_shallow_networks_have_no_depth_and_short_clocks_no_time(data):
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    assert "hidden layers to speak of depth, found 1" in asked(model, data)[NAME].verdict
    subject = Subject(deep(3.0), as_sample(data))
    subject.seconds = 1.0
    model.eval()
    stopped = Clock(1.0, now=lambda: 0.0)
    with pytest.raises(Exception, match="signals and gradients of every layer would take about 40 s"):
        list(signal.asks(subject, stopped))


def test_the_time_left_decides_how_many_weights_are_tried(data):
    subject = Subject(deep(1.0), as_sample(data))
    subject.seconds = 0.01
    enough, little = (list(signal.asks(subject, Clock(time, now=lambda: 0.0)))[-1] for time in (100.0, 2.0))
    assert [line.label for line in enough.figures[0].marks] == ["now", "drawn anew", "drawn by He's rule"]
    assert len(little.figures[0].marks) >= 1
    assert "wide network with this one's variances has 1 and 1" in enough.predicted


def test_the_model_is_left_as_found(data):
    model = deep(3.0, norm=nn.BatchNorm1d).train()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    model[0].weight.requires_grad_(False)
    asked(model, data)
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    assert model.training
    assert not model[0].weight.requires_grad
    assert all(values.grad is None for values in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
