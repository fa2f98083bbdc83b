"""What the backpropagation lab must get right: both sweeps, every gradient, what they cost, and descent that ends."""

import subprocess
import sys

import pytest
import torch

pytest.importorskip("fastapi", reason="the page is not installed")

from lemmata.lab.site.work.backpropagation_lab import DIVERGED, LAST, NAMES, State, learned, show, still


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "softplus"])
@pytest.mark.parametrize("seed", [0, 3])
def test_every_number_is_that_of_autograd(activation, seed):
    state = State(activation=activation, seed=seed, x1=0.7, x2=-1.3, target=0.4)
    told, network = show(state), state.network().requires_grad_()
    hidden = [state.example().requires_grad_()]
    for layer in network:
        hidden.append(layer(hidden[-1]))
    loss = state.loss(hidden[-1])
    deltas = torch.autograd.grad(loss, hidden, retain_graph=True)
    assert told["loss"] == pytest.approx(loss.item())
    for layer, value, delta in zip(told["layers"], hidden, deltas, strict=True):
        assert layer["values"] == pytest.approx(value[0].tolist())
        assert layer["deltas"] == pytest.approx(delta[0].tolist())
    gradients = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()))])
    assert [one["gradient"] for one in told["weights"]] == pytest.approx(gradients.tolist())
    values = torch.cat([p.detach().flatten() for p in network.parameters()])
    assert [one["value"] for one in told["weights"]] == pytest.approx(values.tolist())
    assert told["off"] < 1e-15


def test_a_gradient_is_delta_times_input_as_the_page_says():
    told = show(State(seed=7))
    assert len(told["weights"]) == 20
    for one in told["weights"]:
        delta = told["layers"][one["layer"] + 1]["deltas"][one["to"]]
        source = 1.0 if one["from"] is None else told["layers"][one["layer"]]["values"][one["from"]]
        assert one["gradient"] == pytest.approx(delta * source)


def test_steps_are_told_and_counted():
    told = show(State(at=4))
    assert told["at"] == 4
    assert len(told["steps"]) == LAST + 1
    assert [layer["name"] for layer in told["layers"]] == list(NAMES)
    costs = dict(told["costs"])
    assert costs["one pass"] == 25  # 14 weights, 6 biases, 5 activations
    assert costs["backpropagation"] <= 3 * costs["one pass"] < costs["forward mode"] < costs["differences"]
    assert costs["differences"] == 41 * costs["one pass"]


def test_descent_lowers_the_loss_and_ends_where_it_diverges():
    losses = [sweep.loss.item() for sweep in learned(State(descents=30))[1]]
    assert len(losses) == 31
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-3 * losses[0]
    lost = State(descents=40, lr=1)
    assert learned(lost)[1][-1].loss > DIVERGED
    told = show(lost)
    assert told["loss"] > DIVERGED
    assert "leaves the picture" in told["figures"]["descent"].title


def test_the_pictures_are_those_of_the_numbers():
    told = show(State())
    back = told["figures"]["sizes"].marks[2]
    assert back.y[-1] == pytest.approx(abs(told["layers"][-1]["deltas"][0]))
    assert still(State()) == told["figures"]["sizes"]
    one, reverse, forward, differences = (mark.y for mark in told["figures"]["growth"].marks)
    assert all(r <= 3 * o for o, r in zip(one, reverse, strict=True))
    assert forward[-1] / one[-1] > 1000
    assert differences[-1] > forward[-1]


def test_the_same_in_python_runs(tmp_path):
    script = tmp_path / "shown.py"
    script.write_text(show(State(activation="relu"))["python"])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("69")
