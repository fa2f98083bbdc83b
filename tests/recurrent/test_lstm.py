"""What the claims about the LSTM do not say: bad choices, gradients, conversion of every module."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lemmata.recurrent import LSTM, GatedLayer

X = torch.linspace(-2, 2, 2 * 5 * 3, dtype=torch.float64).sin().view(2, 5, 3)
LENGTHS = torch.tensor([3, 5])
KINDS = {"standard": {}, "with U": {"cell_matrix": True}, "without bias": {"bias": False}}


def layer(**options):
    return LSTM(3, 4, **options).double()


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_gradients_are_those_of_differences(options):
    one = LSTM(3, 2, **options).double()
    names = [name for name, _ in one.named_parameters()]

    def run(x, hidden, cell, *weights):
        given = dict(zip(names, weights, strict=True))
        outputs, state = torch.func.functional_call(one, given, (x, (hidden, cell), torch.tensor([1, 2])))
        return outputs, *state

    leaves = [X[:, :2].clone(), torch.rand(2, 2).double(), torch.rand(2, 2).double(), *one.parameters()]
    assert torch.autograd.gradcheck(run, [leaf.detach().requires_grad_() for leaf in leaves])


def test_steps_can_be_differentiated_twice():
    one = LSTM(2, 2).double()
    x = torch.rand(1, 3, 2).double().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: one.by_steps(x)[0], x)


@pytest.mark.parametrize("bias", [True, False])
def test_values_gradients_states_and_lengths_are_torch_s(bias):
    module = nn.LSTM(3, 4, bias=bias, batch_first=True).double()
    one, start = LSTM.from_torch(module), (torch.rand(2, 4).double(), torch.rand(2, 4).double())
    packed = pack_padded_sequence(X, LENGTHS, batch_first=True, enforce_sorted=False)
    theirs, their_state = module(packed, tuple(part[None] for part in start))
    theirs = pad_packed_sequence(theirs, batch_first=True)[0]
    ours, our_state = one(X, start, LENGTHS)
    assert torch.equal(our_state[0][0], ours[0, 2])
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    for mine, its in zip(our_state, their_state, strict=True):
        torch.testing.assert_close(mine, its[0], rtol=1e-12, atol=1e-12)
    (ours.square().sum() + our_state[1].sum()).backward()
    (theirs.square().sum() + their_state[1].sum()).backward()
    torch.testing.assert_close(one.input_weight.grad, module.weight_ih_l0.grad)
    torch.testing.assert_close(one.recurrent_weight.grad, module.weight_hh_l0.grad)
    if bias:
        torch.testing.assert_close(one.bias.grad, module.bias_ih_l0.grad)
        torch.testing.assert_close(one.bias.grad, module.bias_hh_l0.grad)


@pytest.mark.parametrize("size", [1.0, 30.0])  # gates that hesitate, and gates that are sure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sequences_of_all_lengths_end_as_if_they_were_alone(dtype, size):
    torch.manual_seed(0)
    one, lengths = LSTM(3, 4).to(dtype), torch.tensor([7, 0, 1, 4, 7, 6])
    for weight in one.parameters():
        weight.data *= size
    x, start = torch.randn(6, 7, 3, dtype=dtype), (torch.randn(6, 4, dtype=dtype), torch.randn(6, 4, dtype=dtype))
    x[torch.arange(7) >= lengths[:, None]] = torch.nan
    for leaf in (x, *start):
        leaf.requires_grad_()
    goals = [torch.randn(shape, dtype=dtype) for shape in ((6, 7, 4), (6, 4), (6, 4))]
    leaves, found = (x, *start, *one.parameters()), []
    for run in (one, one.by_steps):
        outputs, (hidden, cell) = run(x, start, lengths)
        total = sum((value * goal).sum() for value, goal in zip((outputs, hidden, cell), goals, strict=True))
        found.append([outputs, hidden, cell, *torch.autograd.grad(total, leaves)])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e3 * torch.finfo(dtype).eps, atol=1e2 * torch.finfo(dtype).eps)
    assert torch.equal(found[0][2][1], start[1][1])
    assert not found[0][3][torch.arange(7) >= lengths[:, None]].any()


def test_every_layer_and_direction_of_a_torch_module_converts():
    module = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True).double().eval()
    outputs = X
    for number in (0, 1):
        ahead, back = (LSTM.from_torch(module, number, reverse=reverse) for reverse in (False, True))
        outputs = torch.cat([ahead(outputs)[0], back(outputs.flip(1))[0].flip(1)], dim=-1)
    torch.testing.assert_close(outputs, module(X)[0])
    assert not ahead.training


def test_there_and_back_again_gives_the_same_weights_in_the_same_dtype():
    one = LSTM(3, 4).eval()
    back = LSTM.from_torch(one.to_torch())
    assert all(torch.equal(back.state_dict()[name], weight) for name, weight in one.state_dict().items())
    assert not back.training
    assert one.to_torch().batch_first
    assert LSTM.from_torch(nn.LSTM(3, 4).double()).bias.dtype is torch.float64
    assert one.to_torch().weight_hh_l0.data_ptr() != one.recurrent_weight.data_ptr()


def test_the_forget_gate_starts_where_it_is_told():
    assert LSTM(3, 4).bias[4:8].tolist() == [1.0] * 4
    assert LSTM(3, 4, forget_bias=-2).bias[4:8].tolist() == [-2.0] * 4
    assert LSTM(3, 4).bias[:4].abs().max() <= 0.5
    assert LSTM(3, 4, bias=False).bias is None


def test_a_learnt_cell_matrix_starts_at_the_identity():
    plain, extra = LSTM(3, 4).double(), LSTM(3, 4, cell_matrix=True).double()
    assert torch.equal(extra.cell_weight.detach(), torch.eye(4).double())
    extra.load_state_dict(plain.state_dict() | {"cell_weight": torch.eye(4)})
    torch.testing.assert_close(extra(X), plain(X))


def test_blocks_are_found_by_name():
    one = LSTM(3, 4)
    assert [one.rows(block) for block in LSTM.BLOCKS] == [slice(4 * i, 4 * i + 4) for i in range(4)]
    one.set_bias("output", 3)
    assert one.bias[12:].tolist() == [3.0] * 4
    assert one.bias[8:12].abs().max() <= 0.5
    with pytest.raises(ValueError, match="block must be one of input, forget, candidate, output, got 'keep'"):
        one.rows("keep")


def test_what_is_printed():
    assert repr(LSTM(3, 4)) == "LSTM(inputs=3, hidden=4)"
    assert repr(LSTM(3, 4, bias=False, cell_matrix=True)) == "LSTM(inputs=3, hidden=4, bias=False, cell_matrix=True)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LSTM(3, 4, bias=1), TypeError, "bias must be True or False, got 1"),
        (lambda: LSTM(3, 4, cell_matrix="U"), TypeError, "cell_matrix must be True or False, got 'U'"),
        (lambda: LSTM(3, 4, forget_bias=torch.inf), ValueError, "forget_bias must be finite, got inf"),
        (lambda: layer()(X, X), ValueError, r"state must have the shape \(\(2, 4\), \(2, 4\)\), got \(2, 5, 3\)"),
        (lambda: layer(bias=False).set_bias("forget", 1), ValueError, "no bias to set: build it with bias=True"),
        (lambda: LSTM.from_torch(nn.GRU(3, 4)), TypeError, "module must be a torch.nn.LSTM, got GRU"),
        (lambda: LSTM.from_torch(nn.LSTM(3, 4, proj_size=2)), ValueError, "no projection .* got proj_size=2"),
        (lambda: LSTM.from_torch(nn.LSTM(3, 4), layer=1), ValueError, "layer must be <= 0, got 1"),
        (lambda: LSTM.from_torch(nn.LSTM(3, 4), reverse=True), ValueError, "the module runs in one direction only"),
        (lambda: layer(cell_matrix=True).to_torch(), ValueError, "no matrix U .* build LSTM with cell_matrix=False"),
        (lambda: GatedLayer(3, 4, True).advance(X, X), NotImplementedError, r"GatedLayer must define advance\("),
        (lambda: GatedLayer(3, 4, True).torch_weights(), NotImplementedError, r"must define torch_weights\("),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused_in_a_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_a_state_may_be_a_list(options):
    one = layer(**options)
    state = one(X)[1]
    for lengths in (None, LENGTHS):
        told, (hidden, cell) = one(X, list(state), lengths)
        outputs, (same_hidden, same_cell) = one(X, state, lengths)
        assert torch.equal(told, outputs)
        assert torch.equal(hidden, same_hidden)
        assert torch.equal(cell, same_cell)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_cell_rests_after_the_end_whatever_the_gates_say(dtype):
    torch.manual_seed(0)
    one, lengths = LSTM(3, 4).to(dtype), torch.tensor([2, 5, 0])
    x, start = torch.randn(3, 5, 3, dtype=dtype), (torch.zeros(3, 4, dtype=dtype), torch.ones(3, 4, dtype=dtype))
    for block, bias in (("forget", -50_000), ("input", 50_000)):  # it forgets everything, and writes what comes
        one.set_bias(block, bias)
    _, (_, cell) = one(x, start, lengths)
    _, (_, wanted) = one(x[:1, :2], tuple(part[:1] for part in start))
    torch.testing.assert_close(cell[:1], wanted)
    assert torch.equal(cell[2], start[1][2])
    cell.square().sum().backward()
    assert all(bool(weight.grad.isfinite().all()) for weight in one.parameters())
