"""Pruning: parity with torch, zeros that stay, what is kept and given back, and which answers bad input gets."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils import prune as torch_prune

import lemmata
from lemmata.marks import usual_settings
from lemmata.train import Options, run_experiment
from lemmata.transformers import GPT
from lemmata.tricks import (
    PrunedMLP,
    apply_masks,
    lottery_ticket,
    masks_of,
    prune,
    remove_masks,
    shuffled_masks,
    weight_normalized,
)
from lemmata.tricks.recipes_pruning import BASELINES, TicketConfig, train_ticket


def network() -> nn.Sequential:
    image = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten())
    return nn.Sequential(image, nn.Linear(4 * 36, 20), nn.LayerNorm(20), nn.Linear(20, 3)).double()


X = torch.randn(6, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
PLACES = [("0.0", "weight"), ("1", "weight"), ("3", "weight")]


@pytest.mark.parametrize("scope", ["global", "layer"])
def test_masks_are_torchs_round_after_round(scope: str):
    ours, theirs = network(), network()
    theirs.load_state_dict(ours.state_dict())
    places = [(theirs.get_submodule(path), name) for path, name in PLACES]
    for fraction in (0.25, 0.5, 0.33):
        prune(ours, fraction, scope=scope)
        if scope == "global":
            torch_prune.global_unstructured(places, torch_prune.L1Unstructured, amount=fraction)
        else:
            for layer, name in places:
                torch_prune.l1_unstructured(layer, name, fraction)
        masks = masks_of(ours)
        assert all(torch.equal(masks[f"{p}.{n}"], theirs.get_submodule(p).weight_mask.bool()) for p, n in PLACES)
    assert torch.equal(ours(X), theirs(X))
    ours(X).square().sum().backward()
    theirs(X).square().sum().backward()
    for path, _ in PLACES:
        mine, other = ours.get_submodule(path), theirs.get_submodule(path)
        assert torch.equal(mine.parametrizations.weight.original.grad, other.weight_orig.grad)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_zeros_stay_zeros_under_momentum_and_decay(optimizer):
    model = network()
    words = {"momentum": 0.9} if optimizer is torch.optim.SGD else {}
    steps = optimizer(model.parameters(), lr=0.01, weight_decay=0.1, **words)  # made before anything is pruned
    for number in range(6):
        if number % 2 == 0:
            prune(model, 0.3)
        before = {path: model.get_submodule(path).weight.detach().clone() for path, _ in PLACES}
        steps.zero_grad()
        model(X).square().mean().backward()
        steps.step()
        for path, _ in PLACES:
            weight, mask = model.get_submodule(path).weight, masks_of(model)[f"{path}.weight"]
            assert bool((weight[~mask] == 0).all())
            assert bool((weight[mask] != before[path][mask]).all())


def test_equal_magnitudes_go_in_the_order_in_which_they_stand():
    layer = nn.Linear(6, 1)
    nn.init.ones_(layer.weight)
    assert prune(layer, 0.5).weight.tolist() == [[0, 0, 0, 1, 1, 1]]


def test_rewinding_gives_back_all_but_the_masks():
    model = network()
    start = copy.deepcopy(model.state_dict())
    prune(model, 0.5)
    middle = copy.deepcopy(model.state_dict())  # of a model that is pruned already, which will do as well
    for values in model.parameters():
        values.data.add_(1)
    for state in (start, middle):
        prune(model, 0.5, rewind=state)
        plain = remove_masks(copy.deepcopy(model), zeros=False).state_dict()
        assert all(torch.equal(plain[name], values) for name, values in start.items())
    left = sum(int(mask.sum()) for mask in masks_of(model).values())
    assert left == 2976 / 8  # the weights of both linear layers and of the convolution, halved three times


def test_copies_are_pruned_apart():
    first = prune(network(), 0.5)
    second = copy.deepcopy(first)
    prune(second, 0.9)
    remove_masks(second)
    assert {"0.0.weight", "1.weight", "3.weight"} <= set(second.state_dict())
    assert float((first[1].weight == 0).double().mean()) < 0.7
    apply_masks(third := copy.deepcopy(first), {"1.bias": torch.zeros(20, dtype=torch.bool)})
    assert first(X).shape == third(X).shape == (6, 3)
    assert "1.bias" in masks_of(third)
    assert "1.bias" not in masks_of(first)


def test_masks_travel_with_the_state():
    first = prune(network(), 0.7)
    second = prune(network(), 0.0)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(X), second(X))
    assert all(torch.equal(mask, masks_of(second)[path]) for path, mask in masks_of(first).items())


def test_undoing_gives_the_very_weights():
    model = network()
    before = copy.deepcopy(model.state_dict())
    remove_masks(prune(model, 0.8), zeros=False)
    assert type(model[1]) is nn.Linear
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())


@pytest.mark.parametrize("build", [lambda: nn.LSTM(3, 5, batch_first=True), lambda: nn.GRU(3, 5, batch_first=True)])
def test_recurrent_layers_run_with_their_zeros(build):
    model = prune(build(), 0.5)
    plain = remove_masks(copy.deepcopy(model))
    x = torch.randn(2, 4, 3)
    assert torch.allclose(model(x)[0], plain(x)[0])
    assert float((plain.weight_hh_l0 == 0).double().mean()) > 0.2


def test_attention_runs_with_its_zeros():
    model, x = prune(nn.MultiheadAttention(8, 2, batch_first=True), 0.5).eval(), torch.randn(2, 4, 8)
    plain = remove_masks(copy.deepcopy(model))
    assert torch.allclose(model(x, x, x)[0], plain(x, x, x)[0], atol=1e-6)


def test_embeddings_and_what_shares_their_table_are_left_alone():
    model = GPT(vocab_size=11, max_length=8, width=16, depth=1, heads=2)
    prune(model, 0.5)
    tables = {path for path, part in model.named_modules() if isinstance(part, nn.Embedding)}
    assert tables
    assert not {f"{path}.weight" for path in tables} & masks_of(model).keys()
    assert len(masks_of(model)) > 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_every_dtype_is_pruned(dtype: torch.dtype):
    layer = prune(nn.Linear(10, 10, dtype=dtype), 0.4)
    assert layer.weight.dtype is dtype
    assert int((layer.weight == 0).sum()) == 40


def test_chance_and_shuffled_masks_keep_their_number_and_repeat_themselves():
    def generator():
        return torch.Generator().manual_seed(3)

    model = network()
    twin = copy.deepcopy(model)
    first, second = (masks_of(prune(m, 0.6, by="random", generator=generator())) for m in (model, twin))
    assert all(torch.equal(first[path], second[path]) for path in first)
    shuffled = shuffled_masks(first, generator())
    assert all(shuffled[path].sum() == mask.sum() for path, mask in first.items())
    assert any(not torch.equal(shuffled[path], mask) for path, mask in first.items())


def test_a_weight_that_is_not_finite_is_zero_where_it_is_masked():
    layer = apply_masks(nn.Linear(2, 1), {"weight": torch.tensor([[False, True]])})
    layer.parametrizations.weight.original.data[0, 0] = torch.inf
    out = layer(torch.ones(1, 2))
    out.backward()
    assert bool(out.isfinite().all())
    assert layer.parametrizations.weight.original.grad[0, 0] == 0


def test_nothing_and_everything_can_be_pruned():
    assert bool((prune(network(), 0)[1].weight != 0).all())
    assert all(not mask.any() for mask in masks_of(prune(network(), 1)).values())


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_words():
    shared = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    shared[1].weight = shared[0].weight
    broken = nn.Linear(2, 2)
    broken.weight.data[0, 0] = torch.nan
    for model, words, message in (
        (network(), {"fraction": 1.5}, "fraction must be in"),
        (network(), {"by": "size"}, "by must be one of"),
        (network(), {"scope": "all"}, "scope must be one of"),
        (network(), {"weights": ["9.weight"]}, "weights must name parameters of the model, got '9.weight'"),
        (nn.ReLU(), {}, "the model has no weights to prune"),
        (shared, {}, "0.weight and 1.weight are one tensor"),
        (broken, {}, "weights must not be NaN"),
        (weight_normalized(nn.Linear(2, 2)), {"weights": ["weight"]}, "weights must name parameters"),
        (network(), {"rewind": {}}, "rewind must have 0.0.weight of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            prune(model, **{"fraction": 0.5, **words})
        assert not masks_of(model)
    for make in (lambda: prune(3, 0.5), lambda: masks_of(3), lambda: remove_masks(3), lambda: apply_masks(3, {})):
        with pytest.raises(TypeError, match=r"model must be an nn\.Module, got int"):
            make()
    for mask in (torch.ones(2, 3, dtype=torch.bool), torch.ones(3, 2)):
        with pytest.raises(ValueError, match="must be bool of shape"):
            apply_masks(nn.Linear(2, 3), {"weight": mask})


def test_a_search_leaves_the_initial_values():
    def train(model):
        for values in model.parameters():
            values.data.mul_(3)

    model = network()
    before = model[1].weight.detach().clone()
    lottery_ticket(model, train, fraction=0.5, rounds=2, scope="layer")
    mask = masks_of(model)["1.weight"]
    assert int(mask.sum()) == mask.numel() / 4
    assert torch.equal(model[1].weight, before * mask)


# --- The recipe ---

SMALL = TicketConfig(widths=(64,), rounds=6, fraction=0.4, search_epochs=5)
SHORT = Options(epochs=2, batch_size=64, lr=1e-2, device="cpu", evaluate=2)


def accuracy(config: TicketConfig) -> float:
    experiment = train_ticket("digits", config, SHORT)
    return run_experiment(replace(experiment, picture=None)).scores["accuracy"]


def test_a_ticket_learns_more_than_its_mask_and_than_chance():
    ticket, fresh, random = (accuracy(replace(SMALL, start=start)) for start in ("ticket", "fresh", "random"))
    assert ticket > fresh + 0.05
    assert fresh > random + 0.05


@pytest.mark.long
@pytest.mark.measures("tricks.recipes_pruning", "the same mask, fresh weights", "as many weights in random places")
def test_the_baselines_of_digits_are_as_written():
    config, options = usual_settings(train_ticket, "pruned_mlp")
    names = {"fresh": "the same mask, fresh weights", "random": "as many weights in random places"}
    for start, name in names.items():
        scores = []
        for seed in range(5):
            chosen = replace(options, seed=seed, device="cpu", evaluate=options.epochs)
            experiment = replace(train_ticket("digits", replace(config, start=start), chosen), picture=None)
            scores.append(run_experiment(experiment).scores["accuracy"])
        assert sum(scores) / 5 == pytest.approx(BASELINES["digits"][name], abs=0.01)


def test_a_run_goes_on_with_the_same_ticket_and_is_loaded_with_its_masks(tmp_path):
    small = replace(SMALL, rounds=2, search_epochs=1)
    for folder, epochs in (("once", [2]), ("twice", [1, 2])):
        for number, last in enumerate(epochs):
            experiment = train_ticket("digits", small, replace(SHORT, epochs=last))
            run_experiment(experiment, out=tmp_path / folder, resume=number > 0)
    first, second = (lemmata.load(tmp_path / folder) for folder in ("once", "twice"))
    assert isinstance(first, PrunedMLP)
    assert abs(first.kept - 0.36) < 0.01
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_a_masked_perceptron_is_not_permuted_wrongly():
    with pytest.raises(ValueError, match="undo that first"):
        PrunedMLP(4, 2, widths=(3,)).permuted([torch.tensor([2, 0, 1])])
