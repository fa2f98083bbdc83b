"""What the claims about the GRU do not say: bad choices, gradients, conversion of every kind of module."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lemmata.recurrent import GRU

X = torch.linspace(-2, 2, 2 * 5 * 3, dtype=torch.float64).sin().view(2, 5, 3)
LENGTHS = torch.tensor([3, 5])
KINDS = [
    {"reset": reset, "update": update, "bias": bias}
    for reset, update, bias in itertools.product(("before", "after"), ("keep", "write"), (True, False))
]
every_kind = pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(map(str, options.values())))


def layer(**options):
    return GRU(3, 4, **options).double()


@every_kind
def test_gradients_are_those_of_differences(options):
    one = GRU(3, 2, **options).double()
    names = [name for name, _ in one.named_parameters()]

    def run(x, state, *weights):
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(one, given, (x, state, torch.tensor([1, 2])))

    leaves = [X[:, :2].clone(), torch.rand(2, 2).double(), *one.parameters()]
    assert torch.autograd.gradcheck(run, [leaf.detach().requires_grad_() for leaf in leaves])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("update", ["keep", "write"])
def test_values_gradients_states_and_lengths_are_torch_s(bias, update):
    module = nn.GRU(3, 4, bias=bias, batch_first=True).double()
    one, start = GRU.from_torch(module).with_update(update), torch.rand(2, 4).double()
    packed = pack_padded_sequence(X, LENGTHS, batch_first=True, enforce_sorted=False)
    theirs, their_state = module(packed, start[None])
    theirs = pad_packed_sequence(theirs, batch_first=True)[0]
    ours, our_state = one(X, start, LENGTHS)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(our_state, their_state[0], rtol=1e-12, atol=1e-12)
    (ours.square().sum() + our_state.sum()).backward()
    (theirs.square().sum() + their_state.sum()).backward()
    signs = torch.ones(12, 1).double()
    signs[one.rows("update")] = 1.0 if update == "keep" else -1.0
    torch.testing.assert_close(one.input_weight.grad, signs * module.weight_ih_l0.grad)
    torch.testing.assert_close(one.recurrent_weight.grad, signs * module.weight_hh_l0.grad)
    if bias:
        torch.testing.assert_close(one.bias.grad, signs[:, 0] * module.bias_ih_l0.grad)
        torch.testing.assert_close(one.inner_bias.grad, module.bias_hh_l0.grad[8:])


def test_every_layer_and_direction_of_a_torch_module_converts():
    module = nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True).double().eval()
    outputs = X
    for number in (0, 1):
        ahead, back = (GRU.from_torch(module, number, reverse=reverse) for reverse in (False, True))
        outputs = torch.cat([ahead(outputs)[0], back(outputs.flip(1))[0].flip(1)], dim=-1)
    torch.testing.assert_close(outputs, module(X)[0])
    assert not ahead.training


def test_there_and_back_again_gives_the_same_weights_in_the_same_dtype():
    one = GRU(3, 4, reset="after").eval()
    back = GRU.from_torch(one.to_torch())
    assert all(torch.equal(back.state_dict()[name], weight) for name, weight in one.state_dict().items())
    assert (back.reset, back.update, back.training) == ("after", "keep", False)
    assert one.to_torch().batch_first
    assert GRU.from_torch(nn.GRU(3, 4).double()).bias.dtype is torch.float64


def test_a_converted_copy_has_weights_of_its_own():
    one = GRU(3, 4)
    same, other = one.with_update("keep"), one.with_update("write")
    assert (same.update, other.update, one.update) == ("keep", "write", "keep")
    assert torch.equal(same.bias, one.bias)
    assert torch.equal(other.bias[4:8], -one.bias[4:8])
    for copied in (same, other):
        assert all(a.data_ptr() != b.data_ptr() for a, b in zip(copied.parameters(), one.parameters(), strict=True))


def test_what_is_printed():
    assert repr(GRU(3, 4)) == "GRU(inputs=3, hidden=4, reset='after', update='keep')"
    assert repr(GRU(3, 4, bias=False)) == "GRU(inputs=3, hidden=4, bias=False, reset='after', update='keep')"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GRU(3, 2.0), TypeError, "hidden must be an integer, got float"),
        (lambda: GRU(3, 4, bias=None), TypeError, "bias must be True or False, got None"),
        (lambda: GRU(3, 4, reset="late"), ValueError, "reset must be one of after, before, got 'late'"),
        (lambda: GRU(3, 4, update="z"), ValueError, "update must be one of keep, write, got 'z'"),
        (lambda: GRU(3, 4).with_update("both"), ValueError, "update must be one of keep, write, got 'both'"),
        (lambda: layer()(X, X[0, 0]), ValueError, r"state must have the shape \(2, 4\), got \(3,\)"),
        (lambda: GRU.from_torch(nn.LSTM(3, 4)), TypeError, "module must be a torch.nn.GRU, got LSTM"),
        (lambda: GRU.from_torch(nn.GRU(3, 4), layer=-1), ValueError, "layer must be >= 0, got -1"),
        (lambda: GRU.from_torch(nn.GRU(3, 4), reverse=1), TypeError, "reverse must be True or False, got 1"),
        (lambda: GRU(3, 4, reset="before").to_torch(), ValueError, r"only GRU\(reset='after'\) converts"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused_in_a_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
