"""Each example stands for itself: what mixes them is found, in the network and in the loss."""

import pytest
import torch
from tests.audit.probes.usage import Texts, alarms, asked, diabetes, digits, named, perceptron, trained
from torch import nn
from torch.nn import functional

PROBE = "loss_axis"


class Rows(nn.Module):
    """Pictures as sequences of rows, through a layer that may take the wrong axis for time."""

    def __init__(self, kind: str, batch_first: bool):
        super().__init__()
        self.kind = kind
        if kind == "lstm":
            self.layer = nn.LSTM(8, 16, batch_first=batch_first)
        else:
            self.layer = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.head = nn.Linear(16 if kind == "lstm" else 8, 10)

    def forward(self, x):
        x = x[:, 0]  # (batch, rows, columns)
        answer = self.layer(x)[0] if self.kind == "lstm" else self.layer(x, x, x)[0]
        return self.head(answer.mean(1))


class BatchSoftmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = perceptron()

    def forward(self, x):
        return self.inner(x).log_softmax(0)


def normed(**options):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32, **options), nn.ReLU(), nn.Linear(32, 10))


BROKEN = {
    "lstm": lambda: Rows("lstm", batch_first=False),
    "attention": lambda: Rows("attention", batch_first=False),
    "softmax": BatchSoftmax,
    "statistics": lambda: normed(track_running_stats=False),
}
SOUND = {
    "lstm": lambda: Rows("lstm", batch_first=True),
    "attention": lambda: Rows("attention", batch_first=True),
    "perceptron": perceptron,
    "statistics": normed,
    "dropout": lambda: nn.Sequential(nn.Dropout(0.5), perceptron()),
    "deep": lambda: nn.Sequential(nn.Flatten(), *[nn.Sequential(nn.Linear(64, 64), nn.Sigmoid()) for _ in range(20)]),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_examples_that_mix(name, dtype):
    torch.manual_seed(0)
    found = named(asked(BROKEN[name]().to(dtype), digits()[0], probe=PROBE), "examples apart")
    assert found.severity == "alarm"
    assert found.numbers["change"] > 0.05 * found.numbers["spread"]


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_examples_that_stand_apart(name, dtype):
    torch.manual_seed(0)
    assert named(asked(SOUND[name]().to(dtype), digits()[0], probe=PROBE), "examples apart").severity == "fine"


def test_a_random_network_in_evaluation_mode_is_not_called_mixed():
    class Drawn(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = perceptron()

        def forward(self, x):
            return self.inner(functional.dropout(x))

    assert alarms(asked(Drawn(), digits()[0], probe=PROBE)) == []


def test_a_batch_of_one_that_loses_its_axis():
    class Squeezed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = perceptron()

        def forward(self, x):
            return self.inner(x).squeeze()

    found = named(asked(Squeezed(), digits()[0], probe=PROBE), "batch of one")
    assert found.severity == "hint"
    assert "(10,) instead of (1, 10)" in found.verdict


PAIRLESS = {
    "mse": functional.mse_loss,
    "module": nn.L1Loss(),
    "means": lambda z, t: (z.mean() - t.mean()).square(),
    "by hand": lambda z, t: (z - t).square().mean(),
}


@pytest.mark.parametrize("name", PAIRLESS)
def test_losses_that_lose_the_pairs(name):
    torch.manual_seed(0)
    found = named(asked(perceptron(1, 10), diabetes(), probe=PROBE, loss=PAIRLESS[name]), "loss axes")
    assert (found.severity, found.weight) == ("alarm", 10)


def test_what_is_lost_with_the_pairs_is_the_fit():
    torch.manual_seed(0)
    (x, y), right = diabetes(), lambda z, t: functional.mse_loss(z[:, 0], t)
    with pytest.warns(UserWarning, match="broadcast"):
        blind = trained(perceptron(1, 10), (x, y), functional.mse_loss)
    seeing = trained(perceptron(1, 10), (x, y), right)
    assert right(seeing(x), y) < 0.7 * right(blind(x), y)


@pytest.mark.parametrize(
    "loss", [lambda z, t: functional.mse_loss(z[:, 0], t), lambda z, t: functional.huber_loss(z, t.reshape(z.shape))]
)
def test_losses_that_keep_the_pairs(loss):
    assert named(asked(perceptron(1, 10), diabetes(), probe=PROBE, loss=loss), "loss axes").severity == "fine"


def test_shapes_that_would_be_broadcast_are_a_hint_where_the_loss_is_ours():
    x, y = diabetes()
    assert named(asked(perceptron(1, 10), (x, y), probe=PROBE, loss="mse"), "target shape").severity == "hint"
    assert all(one.name != "target shape" for one in asked(perceptron(1, 10), (x, y[:, None]), probe=PROBE, loss="mse"))


def test_softmax_over_the_batch_in_the_loss():
    wrong = lambda z, t: functional.nll_loss(z.log_softmax(0), t)  # noqa: E731
    right = lambda z, t: functional.nll_loss(z.log_softmax(1), t)  # noqa: E731
    found = named(asked(perceptron(), digits()[0], probe=PROBE, loss=wrong), "loss axes")
    assert found.severity == "alarm"
    assert "over the batch" in found.verdict
    assert named(asked(perceptron(), digits()[0], probe=PROBE, loss=right), "loss axes").severity == "fine"


def test_softmax_over_time():
    tokens = torch.randint(0, 20, (64, 6), generator=torch.Generator().manual_seed(0))
    wrong = lambda z, t: functional.nll_loss(z.log_softmax(1).movedim(-1, 1), t)  # noqa: E731
    right = lambda z, t: functional.cross_entropy(z.flatten(0, 1), t.flatten())  # noqa: E731
    for logits in (False, True):
        assert alarms(asked(Texts(logits), (tokens, tokens), probe=PROBE, loss=wrong)) == ["loss axes"]
        assert alarms(asked(Texts(logits), (tokens, tokens), probe=PROBE, loss=right)) == []


@pytest.mark.parametrize(
    "loss", [nn.CrossEntropyLoss(reduction="sum"), lambda z, t: 32 * functional.cross_entropy(z, t)]
)
def test_a_sum_over_the_batch(loss):
    found = named(asked(perceptron(), digits()[0], probe=PROBE, loss=loss), "loss axes")
    if isinstance(loss, nn.Module):
        assert found.severity == "hint"
        assert found.numbers["ratio"] == pytest.approx(2, rel=1e-4)
    else:
        assert found.severity == "fine"


def test_one_loss_an_example_is_no_loss():
    loss = nn.CrossEntropyLoss(reduction="none")
    assert "16 numbers" in named(asked(perceptron(), digits()[0], probe=PROBE, loss=loss), "loss axes").verdict


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(weight=torch.arange(1.0, 11.0), label_smoothing=0.1),
        nn.MultiMarginLoss(),
        lambda z, t: functional.mse_loss(z, functional.one_hot(t, 10).float()),
        lambda z, t: functional.binary_cross_entropy_with_logits(z, functional.one_hot(t, 10).float()),
        lambda z, t: functional.cross_entropy(z, t).sqrt(),
        lambda z, t: ((1 - z.softmax(1).gather(1, t[:, None])) ** 2 * functional.cross_entropy(z, t)).mean(),
    ],
)
def test_sound_losses(loss):
    assert named(asked(perceptron(), digits()[0], probe=PROBE, loss=loss), "loss axes").severity == "fine"


def test_two_classes():
    x, y = diabetes()
    data = (x, (y > 0).float()[:, None])
    for last, loss in (((), nn.BCEWithLogitsLoss()), ((nn.Sigmoid(),), nn.BCELoss())):
        assert named(asked(perceptron(1, 10, *last), data, probe=PROBE, loss=loss), "loss axes").severity == "fine"


def test_several_outputs_for_one_target():
    x, y = diabetes()
    levels = torch.tensor([0.1, 0.5, 0.9])

    def quantiles(z, t):
        return torch.maximum(levels * (t[:, None] - z), (levels - 1) * (t[:, None] - z)).mean()

    def gaussian(z, t):
        return functional.gaussian_nll_loss(z[:, 0], t, z[:, 1].exp())

    for outputs, loss in ((3, quantiles), (2, gaussian)):
        assert named(asked(perceptron(outputs, 10), (x, y), probe=PROBE, loss=loss), "loss axes").severity == "fine"
    with pytest.raises(ValueError, match="cannot compare outputs"):
        asked(perceptron(4, 10), (x, y), probe=PROBE, loss=quantiles)
