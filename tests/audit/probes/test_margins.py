"""The probe of margins: exact for linear networks; ties, tokens and several kinds of outputs."""

import pytest
import torch
from torch import nn

from lemmata.audit import audit


def asked(model, data, test=None, name="margins"):
    return audit(model, data, test, probes=["margins"], budget=60.0)[name]


def half_space(distance, number=400, scale=1.0):
    """Points on both sides of a plane, none nearer than a distance, and the network that parts them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(number, 3, generator=generator)
    y = (x[:, 0] > 0).long()
    x[:, 0] += distance * x[:, 0].sign()
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(scale * torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
        model.bias.zero_()
    return model, (x, y)


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_of_a_linear_network_it_is_the_distance_to_the_plane(scale):
    model, (x, y) = half_space(0.5, scale=scale)
    found = asked(model, (x, y))
    spread = (x - x.mean(0)).square().sum(1).mean().sqrt()
    assert found.numbers["median_distance"] == pytest.approx((x[:, 0].abs().median() / spread).item(), rel=1e-4)
    assert found.numbers["wrong"] == 0
    assert found.severity == "fine"


def test_thin_margins_are_a_hint():
    """A thousandth of the spread lies between the examples and the plane."""
    model, (x, y) = half_space(0.0)
    x[:, 0] = 0.001 * x[:, 0].sign()
    found = asked(model, (x, y))
    assert found.severity == "hint"
    assert found.verdict.startswith("thin margins")


def test_wrong_examples_are_counted():
    model, (x, y) = half_space(0.5)
    y[:40] = 1 - y[:40]
    assert asked(model, (x, y)).numbers["wrong"] == pytest.approx(0.1)


def test_ties_are_a_hint():
    model, data = half_space(0.5, scale=0.0)
    found = asked(model, data, name="ties of classes")
    assert found.severity == "hint"
    assert found.numbers["ties"] == 1.0


def test_tokens_have_margins_in_logits():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(20, 3))
    found = asked(model, (torch.randint(0, 10, (100, 5)), torch.randint(0, 3, (100,))))
    assert found.severity == "fine"
    assert found.numbers["median_margin"] > 0


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_recurrent_networks(layer):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = layer(3, 8, batch_first=True), nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.layer(x)[0][:, -1])

    torch.manual_seed(0)
    found = asked(Last(), (torch.randn(100, 6, 3), torch.randint(0, 2, (100,))))
    assert found.severity in ("fine", "hint")
    assert 0.2 < found.numbers["wrong"] < 0.8


def test_one_output_many_labels_and_few_examples():
    torch.manual_seed(0)
    x, bits = torch.randn(100, 4), torch.randint(0, 2, (100, 5))
    assert asked(nn.Linear(4, 5), (x, bits)).numbers["examples"] == 100
    assert asked(nn.Linear(4, 5), (x[:20], bits[:20])).severity == "skipped"
    pixels = nn.Conv2d(1, 3, 1)
    assert asked(pixels, (torch.randn(64, 1, 4, 4), torch.randint(0, 3, (64, 4, 4)))).numbers["examples"] == 64


def test_the_model_is_left_as_found():
    model, data = half_space(0.5)
    asked(model.train(), data)
    assert model.training
    assert model.weight.grad is None
