"""DenseNet as a whole, by torch's functions from the names of its weights; its dropout, and its initial weights."""

import pytest
import torch
from torch.nn import functional

from lemmata.convolution import DenseBlock, DenseNet


def drawn(network, seed=0):
    """Weights that keep sizes as they are, and running statistics of no layer alike."""
    generator = torch.Generator().manual_seed(seed)
    for values in network.state_dict().values():
        if values.ndim > 1:
            values.copy_(torch.randn(values.shape, generator=generator) * (2 / values[0].numel()) ** 0.5)
        elif values.ndim == 1:
            values.copy_(torch.rand(values.shape, generator=generator) + 0.5)
    return network.eval().requires_grad_(False)


def by_functions(state, x, small, blocks=(6, 12, 24, 16)):
    def normal(name, maps):
        mean, var, weight, bias = (state[f"{name}.{p}"] for p in ("running_mean", "running_var", "weight", "bias"))
        return functional.batch_norm(maps, mean, var, weight, bias).relu()

    def convolve(name, maps, stride=1, padding=0):
        return functional.conv2d(maps, state[f"features.{name}.weight"], None, stride, padding)

    maps = normal("features.norm0", convolve("conv0", x, 1 if small else 2, 1 if small else 3))
    maps = maps if small else functional.max_pool2d(maps, 3, 2, 1)
    for number, layers in enumerate(blocks, start=1):
        for layer in range(1, layers + 1):
            name = f"denseblock{number}.denselayer{layer}"
            few = convolve(f"{name}.conv1", normal(f"features.{name}.norm1", maps))
            new = convolve(f"{name}.conv2", normal(f"features.{name}.norm2", few), padding=1)
            maps = torch.cat([maps, new], 1)
        if number < len(blocks):
            name = f"transition{number}"
            maps = functional.avg_pool2d(convolve(f"{name}.conv", normal(f"features.{name}.norm", maps)), 2)
    features = normal("features.norm5", maps).mean((2, 3))
    return functional.linear(features, state["classifier.weight"], state["classifier.bias"])


@pytest.mark.parametrize(("small", "side"), [(False, 37), (True, 17)])
def test_the_network_is_what_its_names_say(small, side):
    network = drawn(DenseNet(channels=2, classes=5, growth=3, small=small, dtype=torch.float64))
    x = torch.randn(2, 2, side, side + 30, dtype=torch.float64)
    wanted = by_functions(network.state_dict(), x, small)
    # The same sums in another order: 120 layers of at most some hundred terms.
    torch.testing.assert_close(network(x), wanted, rtol=0, atol=1e-10 * wanted.abs().max().item())


def test_new_maps_are_dropped_in_training_only():
    block = DenseBlock(inputs=4, growth=50, layers=1, dropout=0.3)
    x = torch.rand(20, 4, 5, 5)
    new = block(x)[:, 4:]
    # 25,000 entries, of which a fraction 0.3 is dropped: a deviation of 0.003.
    assert (new == 0).double().mean().item() == pytest.approx(0.3, abs=6 * 0.003)
    assert (block.eval()(x)[:, 4:] == 0).double().mean() == 0


def test_initial_weights_are_hes_for_what_enters_a_convolution():
    torch.manual_seed(0)
    network = DenseNet()
    for name, values in network.named_parameters():
        if values.ndim == 4:
            wanted = (2 / values[0].numel()) ** 0.5
            # The deviation of n numbers is itself off by 1 / sqrt(2 n) of it.
            assert values.std().item() == pytest.approx(wanted, rel=6 / (2 * values.numel()) ** 0.5), name
    assert not network.classifier.bias.any()


def test_drawing_anew_forgets_what_was_learnt():
    network = DenseNet(channels=1, classes=2, growth=2, small=True)
    with torch.no_grad():
        for values in network.parameters():
            values.fill_(7.0)
    network.reset_parameters()
    assert not any((values == 7).any() for values in network.parameters())
    assert set(network.features.norm5.weight.tolist()) == {1.0}
