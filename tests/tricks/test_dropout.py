"""Dropout: torch's kernel where it is the same, gradients, dtypes, every model that drops, bad input."""

import copy
import re

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrize

from lemmata.feedforward.mlp import MLP
from lemmata.tricks import Dropout, dropout_ensemble, scaled_for_inference


@pytest.mark.parametrize("p", [0, 0.3, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_one_probability_is_torchs_dropout(p: float, dtype: torch.dtype):
    x = torch.randn(50, 7, dtype=dtype)
    torch.manual_seed(1)
    ours = Dropout(p)(x)
    torch.manual_seed(1)
    assert torch.equal(ours, nn.Dropout(p)(x))
    assert Dropout(p).eval()(x) is x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("inverted", [True, False])
def test_several_probabilities_in_every_dtype(dtype: torch.dtype, inverted: bool):
    layer = Dropout([0.0, 1.0, 0.5], inverted)
    y = layer(torch.ones(2000, 3, dtype=dtype))
    assert y.dtype is dtype
    assert y[:, 0].eq(1).all()
    assert y[:, 1].eq(0).all()
    assert set(y[:, 2].tolist()) == ({0.0, 2.0} if inverted else {0.0, 1.0})
    quiet = layer.eval()(torch.ones(1, 3, dtype=dtype))
    assert quiet.tolist() == ([[1, 1, 1]] if inverted else [[1, 0, 0.5]])


def test_the_same_seed_drops_the_same_and_examples_drop_differently():
    layer, x = Dropout([0.5] * 40), torch.ones(3, 40)
    torch.manual_seed(3)
    first = layer(x)
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    assert not torch.equal(first[0], first[1])


def test_gradients_pass_where_units_are_kept():
    x = torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    layer = Dropout([0.2, 1.0, 0.7])

    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)
        return layer(x)

    assert torch.autograd.gradcheck(seeded, x)
    (slope,) = torch.autograd.grad(seeded(x).sum(), x)
    assert slope[:, 1].eq(0).all()  # nothing is divided by a keep probability of 0


def test_it_has_no_state_and_moves_with_its_model():
    layer = Dropout([0.25, 0.5])
    assert not layer.state_dict()
    assert copy.deepcopy(layer).double().keep.dtype is torch.double
    with torch.device("meta"):
        assert Dropout([0.25, 0.5])(torch.ones(2, 2)).shape == (2, 2)
    assert repr(Dropout(0.25, inverted=False)) == "Dropout(p=0.25, inverted=False)"


def test_it_comes_from_the_meta_device_with_its_probabilities():
    with torch.device("meta"):
        layers = nn.Sequential(Dropout([0.25, 0.5]), Dropout(0.75, inverted=False))
    layers.to_empty(device="cpu")
    assert [part.get_buffer("keep").tolist() for part in layers] == [[0.75, 0.5], 0.25]


def test_small_probabilities_drop_in_coarse_numbers_too():
    torch.manual_seed(0)
    layer = Dropout([0.001] * 10).bfloat16()
    dropped = int(layer(torch.ones(10_000, 10, dtype=torch.bfloat16)).eq(0).sum())
    assert 40 < dropped < 160  # 100 on average, with deviation 10


def test_weights_are_dropped_as_a_parametrisation():
    layer = nn.Linear(30, 20)
    parametrize.register_parametrization(layer, "weight", Dropout(0.5))
    whole = layer.get_parameter("parametrizations.weight.original")
    torch.manual_seed(0)
    dropped = layer.weight.eq(0)
    assert 200 < int(dropped.sum()) < 400
    layer.eval()
    assert torch.equal(layer.weight, whole)


# --- All networks ---


class Functional(nn.Module):
    """Drops by torch's function, twice, with batch normalisation between."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.dropout(x, p=0.25, training=self.training)
        return self.last(functional.dropout(self.norm(self.first(x)), 0.5, self.training))


@pytest.mark.parametrize(
    ("model", "units"),
    [
        (MLP(3, 2, widths=(2, 3), dropout=0.4), 5),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.3), nn.Linear(4, 2)), 4),
        (Functional(), 7),
        (MLP(3, 2, widths=(4,)), 0),
    ],
)
def test_every_model_that_drops_is_found(model: nn.Module, units: int):
    model, x = model.double(), torch.randn(3, 3, dtype=torch.double)
    found = dropout_ensemble(model, x)
    assert found.masks.shape == (2**units, units)
    assert found.probability.sum().item() == pytest.approx(1)
    assert found.outputs.shape == (2**units, 3, 2)
    assert model.training  # as it was
    for part in model.modules():  # normalisation uses its running statistics, in the ensemble too
        part.train(not isinstance(part, nn.BatchNorm1d))
    with torch.no_grad():
        many = model(x[:1].expand(20_000, 3))
    room = 6 * many.std(0) / 20_000**0.5 + 1e-9
    assert ((many.mean(0) - found.mean()[0]).abs() <= room).all()


def test_masks_go_to_their_layers_in_order_and_have_their_probabilities():
    model = nn.Sequential(nn.Dropout(0.25), nn.ReLU(), Dropout([0.0, 0.5], inverted=False), nn.Dropout(p=0.5))
    found = dropout_ensemble(model, torch.tensor([[1.0, 10.0]]))
    assert found.masks.shape == (64, 6)
    keep = torch.tensor([0.75, 0.75, 1.0, 0.5, 0.5, 0.5])
    masks = found.masks.double()
    wanted = torch.where(found.masks, keep, 1 - keep).double().prod(1)
    torch.testing.assert_close(found.probability, wanted)
    kept = masks[:, :2] * masks[:, 2:4] * masks[:, 4:] * torch.tensor([1.0, 10.0])  # by all three
    torch.testing.assert_close(found.outputs[:, 0].double(), kept / 0.75 / 0.5)


def test_masks_of_pictures_and_of_scalars_per_example():
    picture = nn.Sequential(Dropout(0.5), nn.Flatten(), nn.Linear(6, 1))
    assert dropout_ensemble(picture, torch.ones(2, 2, 3)).outputs.shape == (64, 2, 1)
    assert dropout_ensemble(Dropout([0.5]), torch.ones(2, 1)).outputs[:, :, 0].tolist() == [[0, 0], [2, 2]]


def test_many_networks_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch):
    model, x = MLP(2, 2, widths=(6,), dropout=0.5), torch.randn(3, 2)
    whole = dropout_ensemble(model, x)
    monkeypatch.setattr("lemmata.tricks.dropout.ROWS", 7)
    torch.testing.assert_close(dropout_ensemble(model, x).outputs, whole.outputs)


def test_a_unit_that_is_never_kept_has_networks_of_probability_0():
    model = nn.Sequential(Dropout([1.0, 0.0, 0.5]), nn.Softmax(-1))
    found = dropout_ensemble(model, torch.tensor([[5.0, 1.0, 1.0]]))
    assert sorted(found.probability.tolist()) == [0] * 6 + [0.5] * 2
    assert found.geometric_mean().isfinite().all()


class TimeFirst(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(x.transpose(0, 1), 0.5, self.training).transpose(0, 1)


def parametrised(*layers: nn.Module, by: nn.Module | None = None) -> nn.Sequential:
    parametrize.register_parametrization(layers[-1], "weight", Dropout(0.5) if by is None else by)
    return nn.Sequential(*layers)


@pytest.mark.parametrize(
    ("model", "x", "told"),
    [
        (parametrised(nn.Linear(4, 2)), torch.ones(2, 4), "must have a row for each example, got shape (2, 4) for"),
        (parametrised(nn.Linear(4, 2)), torch.ones(3, 4), "got shape (2, 4) for 3 examples: neither weights nor"),
        (TimeFirst(), torch.ones(2, 2, 1), "got shape (2, 8, 1) for 8 examples"),
        (nn.Sequential(nn.LSTM(2, 2, 2, dropout=0.5)), torch.ones(2, 2, 2), "inside LSTM(dropout=0.5), '0', cannot be"),
        (nn.MultiheadAttention(2, 1, dropout=0.5), torch.ones(2, 2, 2), "inside MultiheadAttention cannot be masked"),
    ],
)
def test_what_is_not_dropped_by_units_of_an_example_is_told(model: nn.Module, x: torch.Tensor, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        dropout_ensemble(model, x)


# --- One network ---


def test_weights_that_cannot_be_scaled_are_told():
    drop, layer, twin = Dropout(0.5, inverted=False), nn.Linear(3, 3), nn.Linear(3, 3)
    twin.weight = layer.weight
    for shared in ((drop, layer, nn.ReLU(), layer), (drop, layer, nn.ReLU(), twin)):
        with pytest.raises(ValueError, match="is used in 2 places: it can have one scale only"):
            scaled_for_inference(nn.Sequential(*shared))
    block, x = nn.Sequential(drop, layer), torch.randn(2, 3)
    twice = nn.Sequential(block, block).eval()  # the same dropout before it each time
    torch.testing.assert_close(scaled_for_inference(twice)(x), twice(x))
    with pytest.raises(ValueError, match="must be a parameter, not computed from others: use torch"):
        scaled_for_inference(parametrised(drop, nn.Linear(3, 3), by=nn.Tanh()))


def test_scaled_networks_are_those_of_evaluation():
    model = nn.Sequential(
        Dropout([0.2, 0.5, 0.9], inverted=False), nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5),
        nn.Unflatten(1, (2, 4)), Dropout(0.3, inverted=False), nn.Conv1d(2, 2, 3), nn.Flatten(), Dropout(0.5),
        nn.Linear(4, 2),
    )  # fmt: skip
    x, before = torch.randn(5, 3), copy.deepcopy(model.state_dict())
    single = scaled_for_inference(model)
    torch.testing.assert_close(single(x), model.eval()(x))
    assert not any(isinstance(part, Dropout | nn.Dropout) for part in single.modules())
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    torch.testing.assert_close(scaled_for_inference(nn.Sequential(model, nn.ReLU()))(x), model(x).relu())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Dropout(-0.1), "p must be in [0, 1], got -0.1"),
        (lambda: Dropout([0.1, float("nan")]), "p must be finite, got nan"),
        (lambda: Dropout([]), "p must be a number, or have one for each unit, got none"),
        (lambda: Dropout([0.1, 0.2])(torch.ones(2, 3)), "x must have 2 units on its last axis, got shape (2, 3)"),
        (lambda: dropout_ensemble(MLP(2, 1, widths=(21,), dropout=0.5), torch.ones(1, 2)), "which is 2^21 networks"),
        (lambda: dropout_ensemble(nn.Dropout(), torch.ones(0, 2)), "x must be a batch of one example or more"),
        (lambda: dropout_ensemble(nn.Dropout2d(), torch.ones(1, 2, 3, 3)), "dropout2d drops more than single units"),
        (
            lambda: scaled_for_inference(nn.Sequential(Dropout(0.5, inverted=False), nn.ReLU())),
            "dropout must stand right before a linear layer or a convolution, ReLU follows Dropout(p=0.5",
        ),
        (lambda: scaled_for_inference(nn.Sequential(Dropout(0.5, inverted=False))), "nothing follows Dropout"),
        (
            lambda: scaled_for_inference(nn.Sequential(nn.ReLU(), Dropout(0.5, inverted=False))),
            "nothing follows Dropout",
        ),
        (lambda: scaled_for_inference(Dropout(0.5, inverted=False)), "stands in no nn.Sequential"),
        (
            lambda: scaled_for_inference(nn.Sequential(Dropout([0.5, 0.1], inverted=False), nn.Conv1d(1, 1, 1))),
            "p must be one number before a convolution, got 2",
        ),
    ],
)
def test_bad_input_is_told(call, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("bad", "got"), [("0.5", "str"), (None, "NoneType"), (True, "bool"), ([[0.5]], "list")])
def test_probabilities_are_numbers(bad, got: str):
    with pytest.raises(TypeError, match=f"p must be a number, got {got}"):
        Dropout(bad)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_a_gpu():
    layer, x = Dropout([0.2, 0.5], inverted=False).cuda(), torch.ones(4000, 2, device="cuda")
    assert layer(x).mean(0).cpu().sub(torch.tensor([0.8, 0.5])).abs().max() < 0.05
    model = MLP(2, 2, widths=(4,), dropout=0.5).cuda()
    here, there = dropout_ensemble(model.cpu(), x[:3].cpu()).mean(), dropout_ensemble(model.cuda(), x[:3]).mean()
    torch.testing.assert_close(there.cpu(), here)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("inverted", [False, True])
def test_rates_of_units_are_as_fine_as_the_input(told, inverted):
    rates = [0.1, 0.3, 0.7]
    layer = Dropout(rates, inverted)
    layer = layer.double() if told else layer
    x = torch.ones(200, 3, dtype=torch.float64)
    found = (layer if inverted else layer.eval())(x).amax(0)
    keep = 1 - torch.tensor(rates, dtype=torch.float64)
    torch.testing.assert_close(found, 1 / keep if inverted else keep, rtol=1e-15, atol=0)
    model = nn.Sequential(Dropout(rates, inverted=False), nn.Linear(3, 1, bias=False, dtype=torch.float64))
    nn.init.ones_(model[1].weight)
    torch.testing.assert_close(scaled_for_inference(model)[1].weight[0].detach(), keep, rtol=1e-15, atol=0)
