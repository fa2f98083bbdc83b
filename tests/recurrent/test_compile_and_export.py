"""What check_module does not ask of recurrent layers: lengths, states and options compiled, and what is in a graph."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.export import Dim, export
from torch.func import functional_call, grad, vmap

from lemmata.recurrent import GRU, LRU, LSTM, Bidirectional, Elman

pytestmark = pytest.mark.usefixtures("unchecked")  # shape checks are not what is compiled
X, LENGTHS = torch.linspace(-2, 2, 4 * 6 * 3, dtype=torch.float64).sin().view(4, 6, 3), torch.tensor([6, 0, 3, 1])
LAYERS = {
    "relu without bias": lambda **kind: Elman(3, 5, "relu", bias=False, **kind),
    "lstm": lambda **kind: LSTM(3, 5, **kind),
    "gru that writes": lambda **kind: GRU(3, 5, update="write", **kind),
    "both ways": lambda **kind: Bidirectional(LSTM(3, 2, bias=False, **kind), GRU(3, 2, **kind)),
}


@pytest.fixture(autouse=True)
def _anew():
    torch._dynamo.reset()
    counters.clear()


def leaves(value):
    return [value] if isinstance(value, torch.Tensor) else [leaf for part in value for leaf in leaves(part)]


def total(found):
    return sum((leaf * torch.arange(leaf.numel()).view(leaf.shape).cos()).sum() for leaf in leaves(found))


def detached(state):
    return tuple(map(detached, state)) if isinstance(state, tuple) else state.detach().requires_grad_()


@pytest.mark.parametrize("name", LAYERS)
def test_a_compiled_layer_gives_values_and_gradients_with_lengths_and_states(name):
    layer = LAYERS[name](dtype=torch.float64)
    state, found = detached(layer(X[:, :2])[1]), []
    for run in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
        outputs = run(X, state, LENGTHS)
        found.append([*leaves(outputs), *torch.autograd.grad(total(outputs), [*layer.parameters(), *leaves(state)])])
    for expected, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("cell", [Elman, LSTM, GRU, LRU])
def test_all_lengths_are_compiled_as_one(cell):
    layer = torch.compile(cell(3, 5, dtype=torch.float64), fullgraph=True, backend="eager")
    for steps in (6, 5, 4, 3):
        total(layer(X[:, :steps])[0]).backward()
    assert counters["stats"]["unique_graphs"] == 2  # the first length, and every other


def test_a_compiled_layer_under_autocast_runs_in_its_dtype():
    layer, x = LSTM(3, 5), X.float()
    with torch.autocast("cpu", torch.bfloat16):
        outputs, _ = torch.compile(layer, fullgraph=True, backend="eager")(x, lengths=LENGTHS)
        torch.testing.assert_close(outputs.float(), layer(x, lengths=LENGTHS)[0].float(), rtol=0, atol=0.03)
    assert outputs.dtype is torch.bfloat16


@pytest.mark.parametrize(("cell", "kernel"), [(Elman, "rnn_tanh"), (LSTM, "lstm"), (GRU, "gru")])
def test_an_exported_layer_is_torchs_kernel_or_one_operator_for_all_lengths(cell, kernel):
    layer, axes = cell(3, 5, dtype=torch.float64), {0: Dim("batch"), 1: Dim("time")}
    for fixed in (True, False):
        program = export(layer, (X[:3],), dynamic_shapes=({0: axes[0]} if fixed else axes,))
        operators = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
        assert (f"aten.{kernel}.input" in operators, "lemmata.sequence_kernel.default" in operators) == (
            fixed,
            not fixed,
        )
        x = X if fixed else X[:, :4]
        torch.testing.assert_close(program.module()(x)[0], layer(x)[0])


@pytest.mark.parametrize("cell", [Elman, LSTM, GRU, LRU])
def test_gradients_of_each_sequence_by_vmap_are_those_of_one_after_another(cell):
    layer = cell(3, 5, dtype=torch.float64)
    weights = {name: values.detach() for name, values in layer.named_parameters()}

    def slope(x, length):
        return grad(lambda given: total(functional_call(layer, given, (x[None], None, length[None]))[0]))(weights)

    together = vmap(slope)(X, LENGTHS)
    for index, (x, length) in enumerate(zip(X, LENGTHS, strict=True)):
        for name, expected in slope(x, length).items():
            torch.testing.assert_close(together[name][index], expected)


@pytest.mark.parametrize("cell", [Elman, LSTM, GRU, LRU])
def test_a_layer_can_be_made_without_drawing_weights(cell):
    state = torch.get_rng_state()
    layer = nn.utils.skip_init(cell, 3, 5, dtype=torch.float64)
    assert torch.equal(torch.get_rng_state(), state)
    wanted = cell(3, 5, dtype=torch.float64)
    layer.load_state_dict(wanted.state_dict())
    assert torch.equal(layer(X)[0], wanted(X)[0])
