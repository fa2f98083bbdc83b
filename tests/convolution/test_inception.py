"""GoogLeNet as a whole, by torch's functions from the names of its weights; its dropout, and its initial weights."""

import pytest
import torch
from torch.nn import functional

from lemmata.convolution import GoogLeNet


@pytest.fixture(scope="module")
def network():
    generator = torch.Generator().manual_seed(0)
    network = GoogLeNet(channels=2, classes=4, large=5, dtype=torch.float64)
    for values in network.state_dict().values():
        if values.ndim > 1:
            values.copy_(torch.randn(values.shape, generator=generator) * (2 / values[0].numel()) ** 0.5)
        elif values.ndim == 1:
            values.copy_(torch.rand(values.shape, generator=generator) + 0.5)
    return network.eval().requires_grad_(False)


def by_functions(state, x):
    """The logits, and those of the first and the second classifier in the middle."""

    def layer(name, maps, stride=1):
        side = state[f"{name}.conv.weight"].shape[-1]
        maps = functional.conv2d(maps, state[f"{name}.conv.weight"], None, stride, side // 2)
        mean, var, weight, bias = (state[f"{name}.bn.{p}"] for p in ("running_mean", "running_var", "weight", "bias"))
        return functional.batch_norm(maps, mean, var, weight, bias, eps=1e-3).relu()

    def linear(name, features):
        return functional.linear(features, state[f"{name}.weight"], state[f"{name}.bias"])

    def halved(maps, side=3):
        return functional.max_pool2d(maps, side, 2, ceil_mode=True)

    def modules(names, maps):
        for name in names:
            maps = torch.cat(
                [
                    layer(f"{name}.branch1", maps),
                    layer(f"{name}.branch2.1", layer(f"{name}.branch2.0", maps)),
                    layer(f"{name}.branch3.1", layer(f"{name}.branch3.0", maps)),
                    layer(f"{name}.branch4.1", functional.max_pool2d(maps, 3, 1, 1)),
                ],
                1,
            )
        return maps

    def classifier(name, maps):
        maps = layer(f"{name}.conv", functional.adaptive_avg_pool2d(maps, 4))
        return linear(f"{name}.fc2", linear(f"{name}.fc1", maps.flatten(1)).relu())

    maps = layer("conv3", layer("conv2", halved(layer("conv1", x, 2))))
    maps = modules(["inception3a", "inception3b"], halved(maps))
    first = modules(["inception4a"], halved(maps))
    second = modules(["inception4b", "inception4c", "inception4d"], first)
    last = modules(["inception5a", "inception5b"], halved(modules(["inception4e"], second), 2))
    return linear("fc", last.mean((2, 3))), classifier("aux1", first), classifier("aux2", second)


def test_the_network_is_what_its_names_say(network):
    x = torch.randn(2, 2, 71, 90, dtype=torch.float64)  # odd sides, which poolings round up
    answers, wanted = torch.stack(network.auxiliary_logits(x)), torch.stack(by_functions(network.state_dict(), x))
    # The same sums in another order: 22 layers of at most some thousand terms.
    torch.testing.assert_close(answers, wanted, rtol=0, atol=1e-10 * wanted.abs().max().item())
    assert torch.equal(network(x), answers[0])


def test_features_are_dropped_in_training_only():
    network = GoogLeNet(channels=1, classes=1, dropout=0.5)
    with torch.no_grad():
        for linear in (network.fc, network.aux1.fc2, network.aux2.fc2):
            linear.weight.fill_(1.0)
            linear.bias.zero_()
        for hidden in (network.aux1.fc1, network.aux2.fc1):
            hidden.weight.zero_()
            hidden.bias.fill_(1.0)
        network.inception5b.branch1.bn.bias.fill_(3.0)  # of which the mean over all places is far from 0
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.eval()  # statistics of their own, so that only dropout makes examples differ
    x = torch.zeros(200, 1, 15, 15)
    last, first, second = network.auxiliary_logits(x)
    whole = network.eval()(x[:1])
    # 384 features of 3 each of which half is kept, twice as large: a deviation of 3 * 384 ** 0.5 = 59 for an example,
    # which 200 examples tell to 1 / 20.
    assert last.mean().item() == pytest.approx(whole.item(), abs=6 * 59 / 200**0.5)
    assert last.std().item() == pytest.approx(59, rel=0.3)
    # 1,024 units of 1, of which 0.3 are kept, larger by 1 / 0.3: a deviation of (1024 * 0.7 / 0.3) ** 0.5 = 49.
    for middle in (first, second):
        assert middle.mean().item() == pytest.approx(1024, abs=6 * 49 / 200**0.5)
        assert middle.std().item() == pytest.approx(49, rel=0.3)


def test_initial_weights_have_a_deviation_of_a_hundredth():
    torch.manual_seed(0)
    network = GoogLeNet(classes=10)
    for name, values in network.named_parameters():
        if values.ndim > 1:  # the deviation of n numbers is itself off by 1 / sqrt(2 n) of it
            assert values.std().item() == pytest.approx(0.01, rel=6 / (2 * values.numel()) ** 0.5), name
    with torch.no_grad():
        for values in network.parameters():
            values.fill_(7.0)
    network.reset_parameters()
    assert not any((values == 7).any() for values in network.parameters())
    assert set(network.conv1.bn.weight.tolist()) == {1.0}
