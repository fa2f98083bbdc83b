"""The classic networks: each as its formula has it, read from the names of its weights, and its parameters counted."""

import torch
from torch.nn import functional

from lemmata.convolution.alexnet import AlexNet
from lemmata.convolution.densenet import DenseBlock, DenseNet
from lemmata.convolution.inception import GoogLeNet, InceptionModule
from lemmata.convolution.lenet import LeNet5
from lemmata.convolution.resnet import ResNet
from lemmata.convolution.unet import UNet
from lemmata.convolution.vgg import VGG
from lemmata.judge import all_of, claim, close, exactly, lie


class Weights:
    """A network's state dict, and layers by the names in it: an independent path to the same numbers."""

    def __init__(self, network):
        self.state = network.state_dict()

    def convolve(self, name, x, stride=1, padding=0):
        return functional.conv2d(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"), stride, padding)

    def linear(self, name, x):
        return functional.linear(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def normalise(self, name, x, eps=1e-5):
        mean, var, weight, bias = (
            self.state[f"{name}.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + eps).sqrt() * weight + bias


def _draw_weights(draw, network):
    """The network with drawn weights, constants and running statistics, ready to predict."""
    with torch.no_grad():
        for values in network.state_dict().values():
            if values.ndim > 1:
                values.copy_(draw.normal(*values.shape) * (2 / values[0].numel()) ** 0.5)
            elif values.ndim == 1:
                values.copy_(draw.uniform(*values.shape, low=0.5, high=1.5))  # positive, as variances must be
    return network.eval().requires_grad_(False)


def _parameter_count(network):
    return sum(values.numel() for values in network.parameters())


def _same_sums(found, formula):
    """The same sums in another order: at most some hundred layers of at most some thousand terms."""
    return close(found, formula, ulps=1e5, scale=formula.abs().amax())


@claim("conv.lenet5")
@lie("sixty thousand parameters", count=60_000)
@lie("max pooling gives the same outputs", pool=functional.max_pool2d)
def two_convolutions_and_three_full_layers(draw, count=61_706, pool=functional.avg_pool2d, network=LeNet5):
    """By torch's functions from the same weights, for tanh and sigmoid; sizes and parameters counted."""
    x, found, formula, sizes = draw.normal(3, 1, 32, 32), [], [], [32]
    for name, phi in (("tanh", torch.tanh), ("sigmoid", torch.sigmoid)):
        lenet = _draw_weights(draw, network(activation=name, dtype=torch.float64))
        weights, maps = Weights(lenet), x
        for layer in ("conv1", "conv2"):
            outcome = phi(weights.convolve(layer, maps))
            maps = pool(outcome, 2)
            sizes += [outcome.shape[-1], maps.shape[-1]]
        hidden = phi(weights.linear("fc2", phi(weights.linear("fc1", maps.flatten(1)))))
        found.append(lenet(x))
        formula.append(weights.linear("fc3", hidden))
    return all_of(
        exactly(_parameter_count(lenet), count),
        exactly(sizes, [32, 28, 14, 10, 5, 28, 14, 10, 5]),
        _same_sums(torch.stack(found), torch.stack(formula)),
    )


@claim("conv.alexnet")
@lie("as many parameters with first kernels of 7 x 7", side=7)
@lie("the layers of 4096 units counted without constants", count=61_092_648)
@lie("the same outputs while units are dropped", training=True)
@lie("poolings that do not overlap", pooled=3)
def five_convolutions_with_overlapping_poolings(
    draw, count=61_100_840, side=11, training=False, pooled=2, network=AlexNet
):
    """By torch's functions from the same weights, in a narrow network; torchvision's count, in the whole one."""
    narrow = _draw_weights(draw, network(channels=2, classes=5, width=4, hidden=32, dtype=torch.float64)).train(
        training
    )
    weights, x = Weights(narrow), draw.normal(3, 2, 127, 127)
    maps = x
    for layer, stride, padding, last in ((0, 4, 2, 1), (3, 1, 2, 1), (6, 1, 1, 0), (8, 1, 1, 0), (10, 1, 1, 1)):
        maps = weights.convolve(f"features.{layer}", maps, stride, padding).relu()
        maps = functional.max_pool2d(maps, 3, pooled) if last else maps
    hidden = functional.adaptive_avg_pool2d(maps, 6).flatten(1)
    hidden = weights.linear("classifier.4", weights.linear("classifier.1", hidden).relu()).relu()
    whole = network(device="meta")
    return all_of(
        exactly(_parameter_count(whole), count),
        exactly(tuple(Weights(whole).state["features.0.weight"].shape), (64, 3, side, side)),
        _same_sums(narrow(x), weights.linear("classifier.6", hidden)),
    )


@claim("conv.vgg")
@lie("138 million parameters", count=138_000_000)
@lie("all sixteen layers are convolutions", convolutions=16)
@lie("no padding is needed to keep the size", padding=0)
def stages_of_small_kernels(draw, count=138_357_544, convolutions=13, padding=1, network=VGG):
    """By torch's functions from the same weights, in a narrow network; layers and parameters of the whole one."""
    narrow = _draw_weights(draw, network(channels=2, classes=5, width=2, hidden=16, dtype=torch.float64))
    weights, x = Weights(narrow), draw.normal(1, 2, 224, 256)  # something is left even without padding
    maps, place = x, 0
    for layers in (2, 2, 3, 3, 3):
        for _ in range(layers):
            maps, place = weights.convolve(f"features.{place}", maps, padding=padding).relu(), place + 2
        maps, place = functional.max_pool2d(maps, 2), place + 1
    hidden = functional.adaptive_avg_pool2d(maps, 7).flatten(1)
    hidden = weights.linear("classifier.3", weights.linear("classifier.0", hidden).relu()).relu()
    whole = network(device="meta")
    matrices = [tuple(values.shape) for values in whole.parameters() if values.ndim > 1]
    return all_of(
        exactly(_parameter_count(whole), count),
        exactly([sum(len(shape) == axes for shape in matrices) for axes in (4, 2)], [convolutions, 3]),
        exactly([shape[0] for shape in matrices], [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6 + [4096] * 2 + [1000]),
        _same_sums(narrow(x), weights.linear("classifier.6", hidden)),
    )


def beside(branches):
    return torch.cat(branches, dim=1)


def added(branches):
    return branches[0] + branches[1] + branches[2] + branches[3]


@claim("conv.inception")
@lie("the reduced channels are part of the output", width=368)
@lie("the auxiliary classifiers are not counted", count=6_624_904)
@lie("branches are added", join=added, raises=RuntimeError)
def four_branches_are_concatenated(draw, width=256, count=13_004_888, join=beside, module=InceptionModule):
    """By torch's functions from the same weights; channels of the first module, parameters of GoogLeNet."""
    found, formula = [], []
    for large in (3, 5):
        small = _draw_weights(draw, module(6, 5, 3, 7, 2, 4, 3, large=large, dtype=torch.float64))
        weights, x = Weights(small), draw.normal(2, 6, 9, 11)

        def layer(name, x, side, weights=weights):
            return weights.normalise(f"{name}.bn", weights.convolve(f"{name}.conv", x, 1, side // 2), 1e-3).relu()

        branches = [layer("branch1", x, 1), layer("branch2.1", layer("branch2.0", x, 1), 3)]
        branches += [layer("branch3.1", layer("branch3.0", x, 1), large)]
        branches += [layer("branch4.1", functional.max_pool2d(x, 3, 1, 1), 1)]
        found.append(small(x))
        formula.append(join(branches))
    first = module(192, 64, 96, 128, 16, 32, 32, device="meta")(torch.empty(1, 192, 28, 28, device="meta"))
    return all_of(
        exactly(tuple(first.shape), (1, width, 28, 28)),
        exactly(_parameter_count(GoogLeNet(device="meta")), count),
        _same_sums(torch.stack(found), torch.stack(formula)),
    )


def _residual_block(weights, name, x, layers, stride, skip):
    """One block, whose weights say whether its input is projected; the 3 x 3 layer next to last has the stride."""
    change = x
    for number in range(1, layers + 1):
        side = weights.state[f"{name}.conv{number}.weight"].shape[-1]
        here = stride if number == layers - 1 else 1
        change = weights.convolve(f"{name}.conv{number}", change.relu() if number > 1 else x, here, side // 2)
        change = weights.normalise(f"{name}.bn{number}", change)
    if f"{name}.downsample.0.weight" in weights.state:
        x = weights.normalise(f"{name}.downsample.1", weights.convolve(f"{name}.downsample.0", x, stride))
    return (skip * x + change).relu()


@claim("conv.resnet")
@lie("the same weights without shortcuts", skip=0.0)
@lie("the projections are not counted", count=11_515_688)
def blocks_add_a_change_to_their_input(draw, skip=1.0, count=11_689_512, network=ResNet):
    """Blocks of two and of three layers by torch's functions from the same weights; no weights, and all counted."""
    outcomes = []
    for depth, layers, blocks in ((18, 2, (2, 2, 2, 2)), (50, 3, (3, 4, 6, 3))):
        narrow = _draw_weights(draw, network(channels=2, classes=5, depth=depth, width=4, dtype=torch.float64))
        weights, x = Weights(narrow), draw.normal(2, 2, 33, 40)
        maps = weights.normalise("bn1", weights.convolve("conv1", x, 2, 3)).relu()
        maps = functional.max_pool2d(maps, 3, 2, 1)
        for stage, number in enumerate(blocks, start=1):
            for block in range(number):
                stride = 2 if block == 0 and stage > 1 else 1
                maps = _residual_block(weights, f"layer{stage}.{block}", maps, layers, stride, skip)
        outcomes.append(_same_sums(narrow(x), weights.linear("fc", maps.mean((2, 3)))))
        still, inside = narrow.layer1[1], draw.normal(2, 4 if depth == 18 else 16, 8, 8).relu()
        for values in still.parameters():
            values.zero_()
        outcomes.append(exactly(still(inside), inside))
    return all_of(exactly(_parameter_count(network(depth=18, device="meta")), count), *outcomes)


def all_before(maps):
    return torch.cat(maps, dim=1)


def input_and_last(maps):
    return torch.cat(maps[:1] + maps[1:][-1:], dim=1)


@claim("conv.densenet")
@lie("maps are added, and their number does not grow", grown=0.0)
@lie("a layer sees the input and the last layer only", seen=input_and_last, raises=RuntimeError)
@lie("the constants of the last layer are not counted", count=7_977_856)
def every_layer_sees_all_before_it(draw, grown=1.0, count=7_978_856, seen=all_before, block=DenseBlock):
    """By torch's functions from the same weights; widths of the layers, and the parameters of DenseNet-121."""
    n, growth, layers = 5, 3, 6
    dense = _draw_weights(draw, block(n, growth, layers, dtype=torch.float64))
    weights, x = Weights(dense), draw.normal(2, n, 7, 9)
    maps = [x]
    for number in range(1, layers + 1):
        name = f"denselayer{number}"
        few = weights.convolve(f"{name}.conv1", weights.normalise(f"{name}.norm1", seen(maps)).relu())
        maps.append(weights.convolve(f"{name}.conv2", weights.normalise(f"{name}.norm2", few).relu(), padding=1))
    outcome, formula = dense(x), torch.cat(maps, dim=1)
    widths = [weights.state[f"denselayer{number}.conv1.weight"].shape[1] for number in range(1, layers + 1)] + [
        outcome.shape[1]
    ]
    return all_of(
        exactly(widths, [n + grown * growth * number for number in range(layers + 1)]),
        exactly(_parameter_count(DenseNet(depth=121, device="meta")), count),
        exactly(outcome[:, :n], x),
        _same_sums(outcome, formula),
    )


def middle(maps, rows, columns):
    top, left = (maps.shape[2] - rows) // 2, (maps.shape[3] - columns) // 2
    return maps[:, :, top : top + rows, left : left + columns]


def corner(maps, rows, columns):
    return maps[:, :, :rows, :columns]


@claim("conv.unet")
@lie("the size is kept without padding", size=572)
@lie("nothing passes over the shortcuts", skip=0.0)
@lie("the corner is cut out", crop=corner)
def maps_of_the_way_down_come_back(draw, size=388, skip=1.0, crop=middle, network=UNet):
    """By torch's functions from the same weights, with and without padding; the original's sizes."""
    outcomes = []
    for same, rows, columns in ((True, 16, 24), (False, 60, 76)):
        small = _draw_weights(draw, network(2, 3, width=2, levels=2, same=same, dtype=torch.float64))
        weights, x = Weights(small), draw.normal(2, 2, rows, columns)

        def twice(name, x, weights=weights, padding=int(same)):
            first = weights.convolve(f"{name}.0", x, padding=padding).relu()
            return weights.convolve(f"{name}.2", first, padding=padding).relu()

        one = twice("down.0", x)
        two = twice("down.1", functional.max_pool2d(one, 2))
        hidden = twice("down.2", functional.max_pool2d(two, 2))
        for level, before in enumerate((two, one)):
            kernel, constant = (weights.state[f"up.{level}.{part}"] for part in ("weight", "bias"))
            hidden = functional.conv_transpose2d(hidden, kernel, constant, stride=2)
            kept = skip * crop(before, *hidden.shape[2:])
            hidden = twice(f"join.{level}", torch.cat([kept, hidden], dim=1))
        outcomes.append(_same_sums(small(x), weights.convolve("head", hidden)))
    original = network(same=False, device="meta")(torch.empty(1, 1, 572, 572, device="meta"))
    kept = network(device="meta")(torch.empty(1, 1, 96, 64, device="meta"))
    return all_of(exactly(tuple(original.shape[2:]), (size, size)), exactly(tuple(kept.shape[2:]), (96, 64)), *outcomes)
