"""What the claim about minGRU and minLSTM does not say: bad choices, gradients, initial weights."""

import pytest
import torch

from lemmata.recurrent.input_gated import InputGatedLayer
from lemmata.recurrent.min_gru import MinGRU
from lemmata.recurrent.min_lstm import MinLSTM

BOTH = pytest.mark.parametrize("cell", [MinGRU, MinLSTM])


def made(cell, *args, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return cell(*args, **options).double(), torch.randn(3, 6, args[0], dtype=torch.float64)


@BOTH
def test_gradients_are_exact(cell):
    layer, x = made(cell, 2, 2)
    x = x[:2, :3].requires_grad_()
    state = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x, z, w, b: run(layer, x, z, w, b), (x, state, layer.input_weight, layer.bias)
    )


def run(layer, x, state, weight, bias):
    return torch.func.functional_call(layer, {"input_weight": weight, "bias": bias}, (x, state))[0]


@BOTH
def test_the_global_seed_decides(cell):
    first, _ = made(cell, 3, 4, memory=50.0)
    again, _ = made(cell, 3, 4, memory=50.0)
    assert first.input_weight.equal(again.input_weight)
    assert first.bias.equal(again.bias)
    assert repr(first) == f"{cell.__name__}(inputs=3, hidden=4)"


@BOTH
@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_named(cell):
    with pytest.raises(TypeError, match="bias must be True or False, got 1"):
        cell(3, 4, bias=1)
    with pytest.raises(ValueError, match="memory must be > 1, got 1"):
        cell(3, 4, memory=1)
    with pytest.raises(ValueError, match="memory is set in the biases: use bias=True"):
        cell(3, 4, bias=False, memory=10)
    layer = cell(3, 4)
    with pytest.raises(ValueError, match=r"state must have the shape \(2, 4\), got \(2, 3\)"):
        layer(torch.zeros(2, 5, 3), torch.zeros(2, 3))


@pytest.mark.parametrize("cell", [MinGRU, MinLSTM])
def test_weights_start_like_those_of_a_linear_layer(cell):
    torch.manual_seed(0)
    layer = cell(100, 60)
    for values in (layer.input_weight.detach(), layer.bias.detach()):
        # The ends of hundreds of uniform numbers.
        assert [float(values.min()), float(values.max())] == pytest.approx([-0.1, 0.1], abs=0.03)
    assert not layer.initial_state(2).any()
    assert cell(2, 3, bias=False).bias is None
    assert len(layer.bias) == len(cell.BLOCKS) * 60


@pytest.mark.parametrize("cell", [MinGRU, MinLSTM])
def test_times_of_forgetting_grow_by_one_factor_from_unit_to_unit(cell):
    kept = cell(2, 5, memory=1000.0).double().gates(torch.zeros(2).double()).keep.detach()
    torch.testing.assert_close(1 / (1 - kept), 1000 ** (torch.arange(1, 6).double() / 6), rtol=0, atol=0.01)


@pytest.mark.parametrize("cell", [MinGRU, MinLSTM])
def test_single_precision_scans_agree_with_the_loop(cell):
    torch.manual_seed(0)
    layer, x = cell(3, 5), torch.randn(2, 257, 3)
    outputs, state = layer(x)
    torch.testing.assert_close(outputs, layer.by_steps(x)[0], rtol=0, atol=1e-6)
    assert torch.equal(state, outputs[:, -1])


def test_equal_gates_keep_one_half_even_where_both_underflow():
    assert bool((MinLSTM(1, 3).keep(torch.full((6,), -200.0)) == 0.5).all())


def test_the_base_class_asks_for_a_gate():
    class Gateless(InputGatedLayer):
        BLOCKS = ("update", "candidate")

    with pytest.raises(NotImplementedError, match=r"Gateless must define keep\(total\)"):
        Gateless(2, 3)(torch.zeros(1, 1, 2))
    with pytest.raises(NotImplementedError, match=r"Gateless must define bias_for_fraction\(fraction\)"):
        Gateless(2, 3, memory=5.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("cell", [MinGRU, MinLSTM])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cuda_agrees_with_the_cpu(cell, dtype):
    layer, x = made(cell, 16, 32)
    expected = layer(x)[0]
    found = layer.to("cuda", dtype)(x.to("cuda", dtype))[0]
    assert found.dtype is dtype
    torch.testing.assert_close(found.cpu().double(), expected, atol=20 * torch.finfo(dtype).eps, rtol=0.0)
