"""What the claims about Elman's network and the deep transition do not say: bad choices, gradients, conversion."""

import pytest
import torch
from torch import nn

from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.deep_transition import DeepTransition
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.stacked import Stacked

LAYERS = {
    "fused": lambda: Elman(2, 3, "relu"),
    "looped": lambda: Elman(2, 3, "softsign", bias=False),
    "deep": lambda: DeepTransition(2, 3, (4, 5)),
}


@pytest.fixture(params=LAYERS)
def layer(request):
    return LAYERS[request.param]()


def test_gradients_are_those_of_finite_differences(layer):
    layer, x, state = layer.double(), torch.randn(2, 3, 2).double(), torch.randn(2, 3).double()
    lengths = torch.tensor([3, 1])
    inputs = (x.requires_grad_(), state.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, z: layer(x, z, lengths), inputs)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ACTIVATION_TABLE)
def test_whole_sequences_are_single_steps_for_every_activation(name, bias):
    x, start = torch.randn(3, 9, 2).double(), torch.randn(3, 5).double()
    for cell in (Elman(2, 5, name, bias=bias).double(), DeepTransition(2, 5, (4, 6), name, "elu", bias).double()):
        torch.testing.assert_close(cell(x, start), cell.by_steps(x, start))


def test_weights_start_uniform_on_one_over_the_root_of_the_units():
    torch.manual_seed(0)
    layer = Elman(9, 25)
    weights = torch.cat([values.detach().flatten() for values in layer.parameters()])
    assert len([*layer.parameters()]) == 3
    assert 0.9 / 5 <= float(weights.max()) <= 1 / 5
    assert -1 / 5 <= float(weights.min()) <= -0.9 / 5


def test_a_deep_transition_is_drawn_anew():
    layer = DeepTransition(3, 4, (6,))
    drawn = layer.transition.layers[0].weight.detach().clone()
    layer.reset_parameters()
    assert float((layer.transition.layers[0].weight.detach() - drawn).abs().max()) > 0.01


def test_the_seed_decides_the_initial_weights(layer):
    torch.manual_seed(3)
    layer.reset_parameters()
    first = [values.clone() for values in layer.parameters()]
    torch.manual_seed(3)
    layer.reset_parameters()
    assert all(a.equal(b) for a, b in zip(first, layer.parameters(), strict=True))


@pytest.mark.parametrize("bias", [True, False])
def test_a_deep_module_of_torch_that_runs_both_ways_is_taken_over_layer_by_layer(bias):
    theirs = nn.RNN(2, 3, num_layers=2, bidirectional=True, bias=bias, nonlinearity="relu", batch_first=True).double()
    ways = [[Elman.from_torch(theirs, layer, reverse) for reverse in (False, True)] for layer in range(2)]
    ours = Stacked(*(Bidirectional(*pair) for pair in ways))
    x, lengths = torch.randn(4, 6, 2).double(), torch.tensor([6, 1, 4, 2])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, last = theirs(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)
    outputs, states = ours(x, lengths=lengths)
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(torch.stack([state for pair in states for state in pair]), last)


def test_conversion_copies_weights_and_mode_and_there_and_back_is_the_same():
    ours = Elman(2, 3, "relu").eval()
    theirs = ours.to_torch()
    assert theirs.batch_first
    assert not theirs.training
    back = Elman.from_torch(theirs)
    assert not back.training
    assert back.state_dict().keys() == ours.state_dict().keys()
    assert all(back.state_dict()[name].equal(values) for name, values in ours.state_dict().items())
    with torch.no_grad():
        theirs.weight_hh_l0.zero_()
    assert bool(ours.recurrent_weight.any())
    assert bool(back.recurrent_weight.any())


def test_a_deep_transition_without_biases_collapses_too():
    deep, x = DeepTransition(2, 3, (4,), inner="identity", bias=False), torch.randn(1, 5, 2)
    assert deep.collapsed().bias is None
    torch.testing.assert_close(deep.collapsed()(x)[0], deep(x)[0])


def test_representations_name_what_was_chosen():
    assert repr(Elman(2, 3)) == "Elman(inputs=2, hidden=3, activation=tanh, bias=True)"
    assert "inputs=2, hidden=3, activation=relu" in repr(DeepTransition(2, 3, (4,), "relu"))


BAD = [
    (lambda: Elman(2, 2.5), TypeError, "hidden must be an integer, got float"),
    (lambda: Elman(2, 3, "rleu"), ValueError, "unknown activation 'rleu': did you mean relu?"),
    (lambda: Elman(2, 3, bias=1), TypeError, "bias must be True or False, got 1"),
    (lambda: Elman(2, 3)(torch.zeros(1, 4, 2), torch.zeros(1, 2)), ValueError, r"state must have the shape \(1, 3\)"),
    (lambda: Elman(2, 3, "gelu").to_torch(), ValueError, "torch.nn.RNN has no gelu: only tanh and relu"),
    (lambda: Elman.from_torch(nn.GRU(2, 3)), TypeError, "module must be a torch.nn.RNN, got GRU"),
    (lambda: Elman.from_torch(nn.RNN(2, 3), layer=1), ValueError, "layer must be <= 0, got 1"),
    (lambda: Elman.from_torch(nn.RNN(2, 3), reverse=True), ValueError, "reverse must be False"),
    (lambda: DeepTransition(2, 3, ()), ValueError, "widths must hold at least one number"),
    (lambda: DeepTransition(2, 3, (0,)), ValueError, "widths must be >= 1, got 0"),
    (lambda: DeepTransition(2, 3, inner="tan"), ValueError, "unknown activation 'tan': did you mean tanh?"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arguments_are_named_with_the_fix(unchecked, call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_cuda_agrees_with_the_cpu_without_a_warning(dtype, bias):
    layer, x = Elman(3, 5, bias=bias), torch.randn(2, 20, 3)
    expected, _ = layer.double().by_steps(x.double())
    found, _ = layer.to("cuda", dtype)(x.to("cuda", dtype))
    # cuDNN multiplies float32 numbers with ten bits of their fractions (TF32).
    tolerance = {torch.float32: 2e-3, torch.float64: 1e-12, torch.bfloat16: 5e-2}[dtype]
    torch.testing.assert_close(found.cpu().double(), expected, atol=tolerance, rtol=0)
