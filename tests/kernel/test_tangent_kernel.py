"""The tangent kernel of any network: its rules against the definition, its forms, blocks, memory, what it refuses."""

import pytest
import torch
from torch import nn

from lemmata.convolution.lenet import LeNet5
from lemmata.convolution.resnet import ResNet
from lemmata.feedforward.mlp import MLP
from lemmata.kernel import ntk, ntk_by_definition, tangent_rules
from lemmata.kernel.ntk_parametrisation import ntk_mlp
from lemmata.transformers.gpt import GPT


class LastToken(nn.Module):
    """Three outputs of a language model."""

    def __init__(self):
        super().__init__()
        self.gpt = GPT(vocab_size=7, depth=2, width=8, heads=2, max_length=6)

    def forward(self, x):
        return self.gpt(x)[:, -1, :3]


class LastState(nn.Module):
    """A recurrent layer, whose parameters no rule knows."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(3, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0][:, -1]


class Twice(nn.Module):
    """One layer that is used two times, once in place."""

    def __init__(self):
        super().__init__()
        self.layer, self.free = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.layer(torch.relu_(self.layer(x))) * self.free


def convolutions():
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1, groups=2), nn.BatchNorm2d(6), nn.ReLU(inplace=True),
        nn.Conv2d(6, 4, 3, stride=2, padding="valid", bias=False), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(),
        nn.Linear(36, 3),
    )  # fmt: skip


def sound():
    layers = [nn.Conv1d(2, 6, 4, padding="same", dilation=2), nn.ReLU(), nn.Conv1d(6, 3, 3, stride=2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(9, 2))


def encoder():
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Flatten(), nn.Linear(24, 2))


def words():
    return nn.Sequential(nn.Embedding(7, 5, padding_idx=2), nn.Linear(5, 1), nn.RMSNorm(1), nn.Flatten())


def normed():
    return nn.Sequential(nn.Linear(3, 8), nn.PReLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def dense():
    return MLP(inputs=3, outputs=3, widths=(8, 6))


def scaled():
    return ntk_mlp([3, 8, 2], bias_variance=0.3)


NETWORKS = {
    dense: (5, 3), normed: (5, 3), scaled: (5, 3), Twice: (4, 3), convolutions: (4, 2, 8, 8), sound: (4, 2, 8),
    lambda: LeNet5(classes=2, padding=2): (2, 1, 28, 28), lambda: ResNet(classes=2, width=4, small=True): (2, 3, 8, 8),
    encoder: (3, 3, 8), LastState: (3, 5, 3), words: 6, LastToken: 6,
}  # fmt: skip


def made(make):
    """A network in double precision with three or four examples and two others."""
    torch.manual_seed(0)
    shape = NETWORKS[make]
    x = torch.randint(0, 7, (4, shape)) if isinstance(shape, int) else torch.randn(shape, dtype=torch.float64)
    model = make().double().eval()
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.add_(0.3)
    return model, x


@pytest.mark.parametrize("make", NETWORKS)
def test_every_rule_equals_the_definition(make):
    model, x = made(make)
    if isinstance(model, ResNet):  # its first block has all kinds of layers; the definition would take too long
        for p in model.parameters():
            p.requires_grad_(p.numel() < 600)
    known = ntk_by_definition(model, x)
    size = float(known.abs().max())
    assert torch.allclose(ntk(model, x), known, rtol=0, atol=1e-10 * size)
    assert torch.allclose(ntk(model, x, x[:1], block=1), known[:, :1], rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("make", [dense, normed, convolutions, words])
@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_three_forms_are_contractions_of_one(make, block):
    model, x = made(make)
    full = ntk(model, x, block=block)
    diagonal = full.diagonal(dim1=2, dim2=3)
    assert torch.allclose(ntk(model, x, form="diagonal", block=block), diagonal, atol=1e-10 * float(full.abs().max()))
    trace = ntk(model, x, form="trace", block=block)
    assert trace.shape == (len(x), len(x))
    assert torch.allclose(trace, diagonal.sum(-1), atol=1e-10 * float(full.abs().max()))
    assert torch.allclose(full, full.permute(1, 0, 3, 2), atol=1e-10 * float(full.abs().max()))


def test_single_precision_keeps_five_digits():
    model, x = made(convolutions)
    known = ntk(model, x)
    found = ntk(model.float(), x.float()).double()
    assert float((found - known).abs().max()) < 1e-5 * float(known.abs().max())


def test_rules_say_what_they_do():
    assert set(tangent_rules(*made(dense)).values()) == {"product"}
    assert set(tangent_rules(*made(LastState)).values()) == {"autograd"}
    assert tangent_rules(*made(Twice)) == {"free": "autograd", "layer.weight": "gradients", "layer.bias": "gradients"}
    language = tangent_rules(*made(LastToken))
    assert [name for name, rule in language.items() if rule == "autograd"] == ["gpt.positions.weight"]


def test_frozen_parameters_are_left_out():
    model, x = made(dense)
    whole = ntk(model, x)
    first, *rest = model.parameters()
    first.requires_grad_(False)
    without = ntk(model, x)
    first.requires_grad_(True)
    for p in rest:
        p.requires_grad_(False)
    assert torch.allclose(ntk(model, x) + without, whole, atol=1e-12)


def test_the_network_is_left_as_it_was():
    model, x = made(convolutions)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ntk(model, x)
    assert all(before[name].equal(value) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_progress_counts_pairs_of_blocks():
    model, x = made(dense)
    told = []
    ntk(model, x, block=2, progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 6) for k in range(1, 7)]


def test_memory_is_kept_or_refused():
    model, x = made(dense)
    needed = 5 * 5 * 9 * 8
    assert torch.allclose(ntk(model, x, max_memory=needed + 20_000), ntk(model, x))
    with pytest.raises(ValueError, match=r'max_memory must be at least .* GiB for 5 x 5 .*, or form="trace"'):
        ntk(model, x, max_memory=needed)


def test_what_couples_examples_is_refused():
    model, x = made(convolutions)
    with pytest.raises(ValueError, match=r"1 couples the examples of a batch: call model.eval\(\) first"):
        ntk(model.train(), x)
    with pytest.raises(ValueError, match="leaves out units at random"):
        ntk(nn.Sequential(nn.Linear(3, 2), nn.Dropout()), torch.ones(2, 3))

    class Centred(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x - x.mean(0))

    with pytest.raises(ValueError, match="treat each example alike"):
        ntk(Centred(), torch.randn(3, 3))


def test_bad_input_is_answered_in_a_sentence():
    model, x = made(dense)
    with pytest.raises(ValueError, match="model must take one input, got 2, input1 and input2"):
        ntk(nn.Bilinear(3, 3, 1), x)
    with pytest.raises(ValueError, match=r"x1 must be .* not empty"):
        ntk(model, x[:0])
    with pytest.raises(ValueError, match="x1 must be finite, found 1 NaN"):
        ntk(model, torch.where(torch.arange(15).view(5, 3) == 4, torch.nan, x))
    with pytest.raises(ValueError, match="x2 must have examples of shape"):
        ntk(model, x, x[:, :2])
    with pytest.raises(ValueError, match="form must be one of"):
        ntk(model, x, form="whole")
    with pytest.raises(ValueError, match="requires_grad_"):
        ntk(nn.ReLU(), x)
    with pytest.raises(TypeError, match="must give one floating-point tensor, got tuple"):
        ntk(nn.RNN(3, 4).double(), torch.ones(2, 1, 3).double())


def test_one_example_and_one_output():
    model = nn.Linear(3, 1, dtype=torch.float64)
    assert ntk(model, torch.ones(1, 3).double()).tolist() == [[[[4.0]]]]
