"""What layers with gates share: the same numbers on every device, and the same layer from the same seed."""

import functools

import pytest
import torch

from lemmata.recurrent.gru import GRU
from lemmata.recurrent.lstm import LSTM

X = torch.linspace(-2, 2, 2 * 5 * 3, dtype=torch.float64).sin().view(2, 5, 3)
LAYERS = {
    "GRU, reset before": functools.partial(GRU, 3, 4, reset="before"),
    "GRU, reset after": functools.partial(GRU, 3, 4, reset="after"),
    "LSTM": functools.partial(LSTM, 3, 4),
    "LSTM with U": functools.partial(LSTM, 3, 4, cell_matrix=True),
}
every_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("lengths", [None, torch.tensor([3, 5])], ids=["whole", "lengths"])
@every_layer
def test_the_device_gives_what_the_processor_gives(make, lengths, dtype):
    one = make().double()
    expected = one(X, lengths=lengths)[0]
    one = one.to("cuda", dtype)
    found = one(X.to("cuda", dtype), lengths=None if lengths is None else lengths.cuda())[0]
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-3, torch.bfloat16: 0.05}[dtype]  # cuDNN multiplies in TF32
    torch.testing.assert_close(found.double().cpu(), expected, atol=tolerance, rtol=0)
    found.sum().backward()  # without a warning about scattered weights
    assert one.bias.grad is not None


@every_layer
def test_the_same_seed_draws_the_same_layer(make):
    layers = []
    for _ in range(2):
        torch.manual_seed(3)
        layers.append(make())
    one, other = (layer.state_dict() for layer in layers)
    assert list(one) == list(other)
    assert all(torch.equal(one[name], other[name]) for name in one)
    fresh = make()
    assert not torch.equal(fresh.input_weight, layers[0].input_weight)
    fresh.load_state_dict(one)
    assert torch.equal(fresh(X.float())[0], layers[0](X.float())[0])


def test_weights_start_uniform_on_one_over_the_root_of_the_units():
    torch.manual_seed(0)
    layer = GRU(40, 400)
    ends = torch.stack([p.detach().abs().max() for p in layer.parameters()]) * 20
    assert bool((ends <= 1).all())
    assert bool((ends >= 0.95).all())  # of so many weights the largest stands close to the end of the interval
    assert float(-layer.input_weight.detach().min() * 20) >= 0.95


@every_layer
def test_all_ways_to_run_a_layer_agree(make):
    layer = make().double()
    start = layer(X)[1]
    for lengths in (None, torch.tensor([3, 0])):
        expected = layer.by_steps(X, start, lengths)
        torch.testing.assert_close(layer(X, start, lengths), expected)
        torch.testing.assert_close(layer.hoisted(X, start, lengths), expected)


@pytest.mark.parametrize(("name", "last"), [("GRU, reset after", "inner_bias"), ("LSTM with U", "cell_weight")])
def test_parameters_keep_their_names(name, last):
    assert list(LAYERS[name]().state_dict()) == ["input_weight", "recurrent_weight", "bias", last]
