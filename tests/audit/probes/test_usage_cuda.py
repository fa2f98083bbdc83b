"""The usage probes on a GPU: the same verdicts, and no label that ends the process."""

import pytest
import torch
from tests.audit.probes.usage import alarms, asked, diabetes, digits, perceptron, trained
from torch import nn
from torch.nn import functional

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore:RNN module weights"),  # torch leaves those of halves as they are
]


class Rows(nn.Module):
    """Rows of a picture through a recurrent layer, whose backward pass cuDNN has in training mode only."""

    def __init__(self, batch_first: bool = True, cut: bool = False):
        super().__init__()
        self.cells, self.head, self.cut = nn.LSTM(8, 16, batch_first=batch_first), nn.Linear(16, 10), cut

    def forward(self, x):
        hidden = self.cells(x[:, 0])[0].mean(1)
        return self.head(hidden.detach() if self.cut else hidden)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_faults_and_twins(dtype):
    torch.manual_seed(0)
    train, test = digits()
    x, y = train
    dropping = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.8))
    dropping = trained(dropping.append(nn.Linear(64, 10)), train, steps=300).train()
    cases = [
        ("labels", perceptron(), (x, y + 1), "label range"),
        ("labels", perceptron(), train, None),
        ("softmax_before_loss", perceptron(10, 64, nn.Softmax(1)), train, "outputs and loss"),
        ("softmax_before_loss", perceptron(), train, None),
        ("loss_axis", Rows(batch_first=False), train, "examples apart"),
        ("loss_axis", Rows(), train, None),
        ("unused_parameters", Rows(cut=True), train, "gradient reach"),
        ("unused_parameters", Rows(), train, None),
        ("evaluation_mode", dropping, train, "evaluation mode"),
        ("symmetry", perceptron(), train, None),
        ("shuffled_labels", perceptron(), (x, y.roll(5)), "labels and inputs"),
        ("shuffled_labels", perceptron(), train, None),
    ]
    for probe, model, data, fault in cases:
        findings = asked(model.to("cuda", dtype), data, test, probe=probe, loss="cross_entropy")
        assert alarms(findings) == ([] if fault is None else [fault]), probe
        assert not any("could not be measured" in one.verdict for one in findings)


def test_a_loss_of_ones_own():
    model = perceptron(1, 10).cuda()
    assert alarms(asked(model, diabetes(), probe="loss_axis", loss=functional.mse_loss)) == ["loss axes"]
    (x, y), _ = digits()
    weighted = nn.CrossEntropyLoss(weight=torch.ones(10, device="cuda"))
    assert alarms(asked(perceptron().cuda(), (x, y + 1), probe="labels", loss=weighted)) == ["label range"]
    assert alarms(asked(perceptron().cuda(), (x, y), probe="labels", loss=weighted)) == []
