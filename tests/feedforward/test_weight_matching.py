"""Weight matching: planted orders found, what cannot be matched, and the barrier between two trained networks."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.data import load
from lemmata.feedforward import MLP, interpolate_weights, loss_barrier, match_hidden_units


def likeness(first, second):
    return sum((a * b).sum().item() for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("widths", [(1,), (9,), (8, 5), (6, 7, 8)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_planted_order_is_found(widths, bias, dtype):
    mlp = MLP(5, 3, widths=widths, bias=bias, dtype=dtype)
    for layer in mlp.layers:
        nn.init.normal_(layer.weight)
    shuffled = mlp.permuted([torch.randperm(width) for width in widths])
    found = match_hidden_units(mlp, shuffled)
    if len(widths) == 1:  # for more layers a local maximum is promised, no more
        assert all(torch.equal(a, b) for a, b in zip(found.parameters(), mlp.parameters(), strict=True))
    x = torch.randn(20, 5, dtype=dtype)
    torch.testing.assert_close(found(x), shuffled(x))
    assert likeness(mlp, found) >= likeness(mlp, shuffled)


@pytest.mark.parametrize("widths", [(4,), (4, 4), (3, 4, 3)])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bias", [True, False])
def test_no_order_of_one_layer_is_better(widths, seed, bias):
    torch.manual_seed(seed)
    first, second = (MLP(3, 2, widths=widths, bias=bias, dtype=torch.float64) for _ in range(2))
    for values in (*first.parameters(), *second.parameters()):
        nn.init.normal_(values)
    found = match_hidden_units(first, second)
    still = [torch.arange(width) for width in widths]
    for layer, width in enumerate(widths):
        for order in itertools.permutations(range(width)):
            orders = [torch.tensor(order) if number == layer else each for number, each in enumerate(still)]
            assert likeness(first, found.permuted(orders)) <= likeness(first, found) + 1e-9


def test_networks_are_left_as_they_are():
    first, second = MLP(3, 2, widths=(6,)), MLP(3, 2, widths=(6,))
    before = [values.clone() for values in (*first.parameters(), *second.parameters())]
    match_hidden_units(first, second)
    interpolate_weights(first, second, 0.3)
    assert all(torch.equal(a, b) for a, b in zip(before, (*first.parameters(), *second.parameters()), strict=True))


def test_interpolation_ends_at_both_networks():
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    for fraction, expected in (
        (0.0, first.weight),
        (1.0, second.weight),
        (0.25, 0.75 * first.weight + 0.25 * second.weight),
    ):
        torch.testing.assert_close(interpolate_weights(first, second, fraction).weight, expected)


def test_buffers_lie_on_the_line_too():
    first, second = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    second.running_mean.fill_(8.0)
    second.num_batches_tracked.fill_(5)
    for fraction, mean, count in ((0.0, 0.0, 0), (0.25, 2.0, 0), (0.75, 6.0, 5), (1.0, 8.0, 5)):
        between = interpolate_weights(first, second, fraction)
        assert between.running_mean.tolist() == [mean, mean]
        assert int(between.num_batches_tracked) == count
    with pytest.raises(ValueError, match="the same parameters and buffers"):
        interpolate_weights(first, nn.BatchNorm1d(2, track_running_stats=False), 0.5)


def test_only_multilayer_perceptrons_are_matched(unchecked):
    mlp, linear = MLP(2, 1, widths=(3,)), nn.Linear(2, 1)
    with pytest.raises(TypeError, match="reference must be an MLP, got Linear"):
        match_hidden_units(linear, mlp)
    with pytest.raises(TypeError, match="other must be an MLP, got Linear"):
        match_hidden_units(mlp, linear)
    broken = MLP(2, 1, widths=(3,))
    broken.layers[0].weight.data[0] = torch.nan
    with pytest.raises(ValueError, match="weights must be finite, found 2 NaN values"):
        match_hidden_units(mlp, broken)
    with pytest.raises(TypeError, match=r"second must be an nn\.Module, got int"):
        interpolate_weights(mlp, 1, 0.5)
    with pytest.raises(ValueError, match=r"loss must give one number, got shape \(3,\): use its mean"):
        loss_barrier(mlp, mlp, lambda model: torch.zeros(3))


def test_the_barrier_is_the_rise_above_the_straight_line():
    first, second = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    first.weight.data.fill_(-1.0)
    second.weight.data.fill_(3.0)

    def loss(model):
        w = model.weight.item()
        return w if w <= 1 else 3 - 2 * (w - 1) if w > 1 else 0.0  # -1 at one end, -1 at the other; 3 just above 1

    assert loss_barrier(first, second, loss, points=5) == pytest.approx(2.0)  # at t = 1/2, w = 1
    assert loss_barrier(first, second, lambda model: model.weight.item() ** 2) == 0.0  # convex
    assert loss_barrier(first, second, lambda model: model.weight.item(), points=2) == 0.0


def trained(seed, x, y):
    torch.manual_seed(seed)
    mlp = MLP(64, 10, widths=(256,))
    optimizer = torch.optim.Adam(mlp.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        functional.cross_entropy(mlp(x), y).backward()
        optimizer.step()
    return mlp


def test_matching_takes_most_of_the_barrier_between_trained_networks_away():
    digits = load("digits")
    first, second = (trained(seed, digits.train.x, digits.train.y) for seed in (0, 1))

    def loss(model):
        return functional.cross_entropy(model(digits.test.x), digits.test.y)

    before = loss_barrier(first, second, loss, points=11)
    after = loss_barrier(first, match_hidden_units(first, second), loss, points=11)
    assert before > 0.1
    assert after < before / 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: match_hidden_units(MLP(3, 2, (4,)), MLP(3, 2, (5,))), "networks must have the same layers, got relu"),
        (lambda: match_hidden_units(MLP(3, 2, (4,)), MLP(3, 2, (4,), "tanh")), "the same layers, got relu .* and tanh"),
        (lambda: match_hidden_units(MLP(3, 2), MLP(3, 2), max_rounds=0), "max_rounds must be >= 1, got 0"),
        (lambda: interpolate_weights(nn.Linear(2, 1), nn.Linear(1, 2), 0.5), "networks must have the same parameters"),
        (lambda: interpolate_weights(nn.Linear(2, 1), nn.Linear(2, 1), float("nan")), "fraction must be finite"),
        (lambda: loss_barrier(nn.Linear(2, 1), nn.Linear(2, 1), lambda _: 0.0, 1), "points must be >= 2, got 1"),
    ],
)
def test_what_does_not_fit_is_said(act, said):
    with pytest.raises((ValueError, TypeError), match=said):
        act()


def test_a_barrier_of_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="loss must be finite"):
        loss_barrier(nn.Linear(2, 1), nn.Linear(2, 1), lambda model: float("nan"))
