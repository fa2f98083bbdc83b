"""Initial weights: which parameters are drawn and how, against torch's own schemes; devices, dtypes, refusals."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from lemmata.feedforward import MLP
from lemmata.recurrent import GRU, LSTM, Elman
from lemmata.tricks import BatchNorm, LayerNorm, initialize, weight_normalized


def variance_of(values):
    return values.double().square().mean().item()


def told(model, *choice, **more):
    return {row.name: row for row in initialize(model, *choice, **more)}


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
@pytest.mark.parametrize(("scheme", "variance"), [("lecun", 1 / 400), ("glorot", 2 / 1000), ("he", 2 / 400)])
def test_a_linear_layer_has_the_variance_of_its_scheme(scheme, variance, distribution):
    layer = nn.Linear(400, 600)
    row = told(layer, scheme, distribution=distribution, gain=3.0)["weight"]
    assert row.variance == pytest.approx(9 * variance)
    assert row.rule == f"{scheme} {distribution}"
    assert variance_of(layer.weight) == pytest.approx(9 * variance, rel=0.02)  # of 240,000 weights: 7 deviations
    assert layer.weight.mean().item() == pytest.approx(0, abs=3 * math.sqrt(variance) / 80)
    largest = layer.weight.abs().max().item() / math.sqrt(9 * variance)
    assert largest <= math.sqrt(3) + 1e-6 if distribution == "uniform" else 3.5 < largest < 6.5
    assert not layer.bias.any()


@pytest.mark.parametrize(
    ("ours", "torchs", "more"),
    [
        ("glorot", nn.init.xavier_normal_, {}),
        ("he", nn.init.kaiming_normal_, {}),
        ("orthogonal", nn.init.orthogonal_, {}),
    ],
)
def test_the_weights_are_torchs_from_the_same_generator(ours, torchs, more):
    for layer in (nn.Linear(7, 5), nn.Conv2d(3, 8, 3), nn.Linear(5, 7, dtype=torch.float64)):
        initialize(layer, ours, generator=torch.Generator().manual_seed(4), **more)
        expected = torchs(torch.empty_like(layer.weight), generator=torch.Generator().manual_seed(4))
        torch.testing.assert_close(layer.weight, expected)


@pytest.mark.parametrize(
    ("layer", "inputs", "outputs"),
    [
        (nn.Conv1d(6, 8, 5), 30, 40),
        (nn.Conv2d(6, 8, 3, groups=2), 27, 36),
        (nn.Conv2d(6, 8, 4, stride=2), 96, 32),
        (nn.Conv3d(2, 3, 2), 16, 24),
        (nn.ConvTranspose2d(6, 8, 4, stride=2), 24, 128),
        (nn.ConvTranspose1d(6, 8, 4, groups=2), 12, 16),
        (nn.Bilinear(3, 4, 5), 12, 5),
    ],
)
def test_sums_of_convolutions_are_counted(layer, inputs, outputs):
    assert told(layer, "lecun")["weight"].variance == pytest.approx(1 / inputs)
    assert told(layer, "glorot")["weight"].variance == pytest.approx(2 / (inputs + outputs))


@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(16, 24, 3, stride=2, groups=4), nn.ConvTranspose2d(16, 24, 4, stride=2), nn.Conv1d(32, 8, 5)],
)
def test_convolutions_keep_the_variance_as_linear_layers_do(layer):
    # Inside, away from the border: 40 pictures, each output a sum of independent terms.
    initialize(layer.double(), "lecun", generator=torch.Generator().manual_seed(0))
    side = (40,) * len(layer.kernel_size)
    y = layer(torch.randn(20, layer.in_channels, *side, dtype=torch.float64))
    inner = y[(slice(None), slice(None), *(slice(6, -6),) * len(side))]
    assert variance_of(inner.detach()) == pytest.approx(1.0, rel=0.15)  # the deviation of so few weights is 0.04


def test_gates_and_attention_maps_are_matrices_of_their_own():
    rows = told(nn.LSTM(10, 20, num_layers=2, bidirectional=True, proj_size=5), "glorot")
    assert rows["weight_ih_l0"].variance == pytest.approx(2 / 30)
    assert rows["weight_hh_l0"].variance == pytest.approx(2 / 25)
    assert rows["weight_hr_l0"].variance == pytest.approx(2 / 25)
    assert rows["weight_ih_l1_reverse"].variance == pytest.approx(2 / 30)
    assert rows["bias_hh_l1"].rule == "zeros"
    forwards = told(nn.LSTM(10, 20, num_layers=2, proj_size=5), "lecun")
    names = ("weight_ih_l0", "weight_hh_l0", "weight_hr_l0", "weight_ih_l1")
    assert [forwards[name].variance for name in names] == pytest.approx([1 / 10, 1 / 5, 1 / 20, 1 / 5])
    cell = nn.GRUCell(3, 4)
    initialize(cell, "orthogonal", gain=2.0)
    for block in cell.weight_hh.chunk(3):
        torch.testing.assert_close(block @ block.T, 4 * torch.eye(4))
    for block in cell.weight_ih.chunk(3):
        torch.testing.assert_close(block.T @ block, 4 * torch.eye(3))
    attention = nn.MultiheadAttention(8, 2)
    assert told(attention, "glorot")["in_proj_weight"].variance == pytest.approx(2 / 16)
    initialize(attention, "orthogonal")
    for block in attention.in_proj_weight.chunk(3):
        torch.testing.assert_close(block @ block.T, torch.eye(8), atol=1e-5, rtol=0)
    apart = told(nn.MultiheadAttention(8, 2, kdim=6, vdim=4), "glorot")
    assert apart["k_proj_weight"].variance == pytest.approx(2 / 14)
    assert told(nn.MultiheadAttention(8, 2, kdim=6), "lecun")["k_proj_weight"].variance == pytest.approx(1 / 6)


@pytest.mark.parametrize(("layer", "gates"), [(LSTM(5, 6), 4), (GRU(5, 6), 3), (Elman(5, 6), 1)])
def test_our_recurrent_layers_keep_the_biases_of_their_gates(layer, gates):
    bias = layer.bias.detach().clone()
    rows = told(layer, "glorot")
    assert rows["recurrent_weight"].variance == pytest.approx(2 / 12)
    assert rows["input_weight"].variance == pytest.approx(2 / 11)
    assert told(layer, "lecun")["input_weight"].variance == pytest.approx(1 / 5)
    assert torch.equal(layer.bias, bias)
    assert rows["bias"].rule == "left as it was"
    initialize(layer, "orthogonal")
    blocks = layer.recurrent_weight.chunk(gates)
    for block in blocks:
        torch.testing.assert_close(block @ block.T, torch.eye(6), atol=1e-5, rtol=0)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix, self.bias = nn.Parameter(torch.ones(3, 3)), nn.Parameter(torch.ones(3))


def test_what_is_not_known_is_left_and_told():
    model = nn.ModuleDict({"own": Own(), "slope": nn.PReLU(), "batch": BatchNorm(4), "layer": LayerNorm(4)})
    for values in model.parameters():
        nn.init.constant_(values, 7.0)
    rows = {name: row.rule for name, row in told(model).items()}
    assert rows == {
        "own.matrix": "left as it was", "own.bias": "zeros", "slope.weight": "left as it was",
        "batch.weight": "ones", "batch.bias": "zeros", "layer.weight": "ones", "layer.bias": "zeros",
    }  # fmt: skip
    assert (model["own"].matrix == 7).all()
    assert (model["slope"].weight == 7).all()
    assert (model["batch"].weight == 1).all()


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.RMSNorm(4), nn.InstanceNorm1d(4, affine=True)]
)
def test_every_normalisation_starts_with_scale_one(norm):
    nn.init.constant_(norm.weight, 7.0)
    assert told(norm)["weight"].rule == "ones"
    assert (norm.weight == 1).all()


class NormalizedLinear(nn.Linear):
    """A layer of one's own, whose name is no reason to make its weights one."""


class Counted(nn.Linear):
    """With integers among its parameters."""

    def __init__(self):
        super().__init__(3, 3)
        self.counts = nn.Parameter(torch.ones(3, dtype=torch.long), requires_grad=False)
        self.bias = nn.Parameter(torch.ones(3, dtype=torch.long), requires_grad=False)
        self.weight = nn.Parameter(torch.ones(3, 3, dtype=torch.long), requires_grad=False)


def test_layers_of_ones_own_are_those_they_inherit_from():
    layer = NormalizedLinear(400, 300)
    assert told(layer)["weight"].rule == "he normal"
    assert variance_of(layer.weight) == pytest.approx(2 / 400, rel=0.03)
    rows = told(Counted())
    assert {rows[name].rule for name in ("weight", "counts")} == {"left as it was"}


@pytest.mark.parametrize("scheme", ["he", "glorot", "orthogonal"])
def test_rows_of_an_embedding_have_variance_one(scheme):
    embedding = nn.Embedding(2000, 50, padding_idx=3)
    row = told(embedding, scheme, gain=0.5)["weight"]
    assert row.variance == 0.25
    assert "embedding" in row.rule
    assert variance_of(embedding.weight) == pytest.approx(0.25, rel=0.03)
    assert not embedding.weight[3].any()
    assert told(nn.Embedding(10, 3), "fixed", variance=0.01)["weight"].variance == pytest.approx(0.01)


def test_tied_weights_are_drawn_once():
    model = nn.ModuleDict({"embedding": nn.Embedding(11, 6), "head": nn.Linear(6, 11)})
    model["head"].weight = model["embedding"].weight
    rows = told(model, "he")
    assert set(rows) == {"embedding.weight", "head.bias"}


def test_a_parametrised_weight_is_drawn_as_it_is_read():
    layer = weight_normalized(nn.Linear(300, 400))
    rows = told(nn.Sequential(layer), "lecun")
    assert set(rows) == {"0.weight", "0.bias"}
    assert variance_of(layer.weight.detach()) == pytest.approx(1 / 300, rel=0.03)
    assert layer.parametrizations.weight.original0.shape == (400, 1)
    turned = parametrizations.orthogonal(nn.Linear(6, 6))
    initialize(turned, "orthogonal")
    torch.testing.assert_close(turned.weight @ turned.weight.T, torch.eye(6), atol=1e-5, rtol=0)


def test_a_parametrisation_that_makes_other_weights_is_told():
    turned = parametrizations.orthogonal(nn.Linear(300, 300))
    assert told(turned, "he")["weight"] == ("weight", "he normal, through its parametrisation", None)
    assert told(turned, "orthogonal")["weight"] == ("weight", "orthogonal", pytest.approx(1 / 300))
    divided = parametrizations.spectral_norm(nn.Linear(30, 30))
    assert told(divided, "he")["weight"].variance is None


def test_a_parametrisation_without_an_inverse_is_left_as_it_was():
    class Halved(nn.Module):
        def forward(self, weight):
            return weight / 2

    layer = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(layer, "weight", Halved())
    before = layer.weight.clone()
    rows = told(layer)
    assert rows["weight"].rule == "left as it was: its parametrisation has no right_inverse"
    assert rows["bias"].rule == "zeros"
    assert torch.equal(layer.weight, before)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("scheme", ["he", "orthogonal"])
def test_layers_without_weights_are_empty(scheme):
    for inputs, outputs in ((3, 0), (0, 3)):
        assert told(nn.Linear(inputs, outputs), scheme)["weight"] == ("weight", "empty", None)


def test_a_name_with_norm_in_it_makes_no_normalisation():
    class CosNormHead(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((3, 4), 7.0))

    head = CosNormHead()
    assert told(head)["weight"].rule == "left as it was"
    assert (head.weight == 7).all()


@pytest.mark.parametrize("scheme", ["he", "orthogonal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_dtypes_stay_and_short_ones_are_rounded(scheme, dtype):
    layer, wide = nn.Linear(64, 64, dtype=dtype), nn.Linear(64, 64)
    for one in (layer, wide):
        initialize(one, scheme, generator=torch.Generator().manual_seed(1))
    assert layer.weight.dtype is dtype
    if dtype in (torch.bfloat16, torch.float16):
        assert torch.equal(layer.weight, wide.weight.to(dtype))


def test_generators_and_the_global_stream_decide_the_weights():
    first, second = MLP(20, 5), MLP(20, 5)
    for mlp in (first, second):
        state = torch.random.get_rng_state()
        initialize(mlp, "glorot", generator=torch.Generator().manual_seed(3))
        assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    torch.manual_seed(5)
    initialize(first)
    torch.manual_seed(5)
    initialize(second)
    assert torch.equal(first.layers[0].weight, second.layers[0].weight)


@pytest.mark.parametrize("scheme", ["he", "orthogonal"])
def test_a_model_without_storage_and_frozen_ones_are_welcome(scheme):
    meta = MLP(20, 5, device="meta")
    rows = initialize(meta, scheme, generator=torch.Generator())
    assert len(rows) == len(list(meta.parameters()))
    assert all(values.is_meta for values in meta.parameters())
    frozen = nn.Linear(3, 3).requires_grad_(False)
    before = frozen.weight.clone()
    initialize(frozen, scheme)
    assert not torch.equal(frozen.weight, before)
    assert not frozen.weight.requires_grad


def test_a_layer_may_have_one_output():
    assert told(nn.Linear(5, 1), "lecun")["weight"].variance == pytest.approx(1 / 5)
    assert told(nn.Linear(1, 1), "orthogonal")["weight"].variance == 1.0


def test_rows_can_be_read():
    assert [str(row) for row in initialize(nn.Linear(100, 3))] == ["weight: he normal, variance 0.02", "bias: zeros"]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: initialize([nn.Linear(2, 2)]), "model must be an nn.Module, got list"),
        (lambda: initialize(nn.Linear(2, 2), "xavier"), "scheme must be one of lecun, glorot, he, orthogonal, fixed"),
        (lambda: initialize(nn.Linear(2, 2), distribution="cauchy"), "distribution must be one of normal, uniform"),
        (
            lambda: initialize(nn.Linear(2, 2), generator=3),
            "generator must be a torch.Generator, got int: use torch.Ge",
        ),
        (lambda: initialize(nn.Linear(2, 2), gain=0), "gain must be > 0, got 0"),
        (lambda: initialize(nn.Linear(2, 2), gain=math.nan), "gain must be finite, got nan"),
        (lambda: initialize(nn.Linear(2, 2), "fixed"), "scheme 'fixed' needs a variance"),
        (lambda: initialize(nn.Linear(2, 2), "he", variance=1.0), "scheme 'he' has a variance of its own"),
        (lambda: initialize(nn.Linear(2, 2), "fixed", variance=1, gain=2), "scheme 'fixed' has no gain, got 2"),
        (lambda: initialize(nn.Linear(2, 2), "fixed", variance=-1.0), "variance must be >= 0, got -1.0"),
        (lambda: initialize(nn.LazyLinear(2)), "weight has no shape yet: give the model a first batch"),
    ],
)
def test_bad_choices_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("scheme", ["he", "orthogonal"])
def test_a_generator_of_the_cpu_gives_a_gpu_the_same_weights(scheme):
    here, there = nn.Linear(30, 20), nn.Linear(30, 20, device="cuda")
    for layer in (here, there):
        initialize(layer, scheme, generator=torch.Generator().manual_seed(2))
    assert torch.equal(here.weight, there.weight.cpu())
    initialize(there, scheme, generator=torch.Generator("cuda").manual_seed(2))
    assert there.weight.isfinite().all()
