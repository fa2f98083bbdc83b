"""All networks for pictures: torch's habits, gradients, torchvision's numbers where it is installed, refusals."""

import re

import pytest
import torch

from lemmata.convolution.alexnet import AlexNet
from lemmata.convolution.densenet import DenseBlock, DenseNet
from lemmata.convolution.inception import GoogLeNet, InceptionModule
from lemmata.convolution.lenet import LeNet5, LeNet5Config
from lemmata.convolution.resnet import BasicResidualBlock, BottleneckResidualBlock, ResNet
from lemmata.convolution.unet import UNet
from lemmata.convolution.vgg import VGG

# Of each network: a small one, and the side of a picture that is enough for it.
SMALL = {
    "lenet": (lambda **place: LeNet5(channels=2, classes=3, **place), 32),
    "alexnet": (lambda **place: AlexNet(2, 3, width=2, hidden=8, **place), 63),
    "vgg": (lambda **place: VGG(2, 3, depth=11, width=2, hidden=8, **place), 32),
    "vgg_bn": (lambda **place: VGG(2, 3, depth=11, batch_norm=True, width=2, hidden=8, **place), 32),
    "googlenet": (lambda **place: GoogLeNet(2, 3, auxiliary=False, **place), 15),
    "resnet": (lambda **place: ResNet(2, 3, width=2, **place), 20),
    "resnet_small": (lambda **place: ResNet(2, 3, width=2, small=True, **place), 8),
    "densenet": (lambda **place: DenseNet(2, 3, growth=2, **place), 29),
    "densenet_small": (lambda **place: DenseNet(2, 3, growth=2, small=True, **place), 8),
    "unet": (lambda **place: UNet(2, 3, width=2, levels=2, **place), 8),
}


def parameters(network):
    return sum(values.numel() for values in network.parameters())


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_gives_the_same_weights_and_the_state_dict_all_of_them(name):
    make, side = SMALL[name]
    torch.manual_seed(1)
    first = make()
    torch.manual_seed(1)
    second = make()
    for key, values in first.state_dict().items():
        assert torch.equal(values, second.state_dict()[key]), key
    other = make()
    assert not torch.equal(next(other.parameters()), next(first.parameters()))
    other.load_state_dict(first.state_dict())
    x = torch.randn(1, 2, side, side)
    assert torch.equal(other.eval()(x), first.eval()(x))


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_learns(name):
    make, side = SMALL[name]
    network = make(dtype=torch.float64)
    x = torch.randn(4, 2, side, side, dtype=torch.float64, requires_grad=True)
    network(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.abs().max() > 0
    lacking = [key for key, values in network.named_parameters() if values.grad is None]
    assert lacking == []


@pytest.mark.parametrize("name", SMALL)
def test_what_is_no_batch_of_pictures_is_refused(name, unchecked):
    make, side = SMALL[name]
    network = make()
    wanted = "x must be (batch, 2, height, width), got shape"
    with pytest.raises(ValueError, match=re.escape(f"{wanted} (2, {side}, {side}): use x[None] for one picture")):
        network(torch.zeros(2, side, side))
    with pytest.raises(ValueError, match=re.escape(f"{wanted} (4, 1, {side}, {side})")):
        network(torch.zeros(4, 1, side, side))
    with pytest.raises(TypeError, match=re.escape("x must be a tensor, got list")):
        network([[0.0]])
    with pytest.raises(TypeError, match=re.escape("got torch.uint8: use x.float() / 255")):
        network(torch.zeros(1, 2, side, side, dtype=torch.uint8))


@pytest.mark.parametrize("block", [InceptionModule(2, 1, 1, 1, 1, 1, 1), DenseBlock(2, growth=1, layers=1)])
def test_blocks_alone_refuse_what_is_no_batch_of_their_maps(block, unchecked):
    with pytest.raises(ValueError, match=re.escape("x must be (batch, 2, height, width), got shape (2, 8, 8)")):
        block(torch.zeros(2, 8, 8))
    with pytest.raises(ValueError, match=re.escape("x must be (batch, 2, height, width), got shape (4, 3, 8, 8)")):
        block(torch.zeros(4, 3, 8, 8))


@pytest.mark.parametrize("name", ["alexnet", "vgg", "googlenet", "densenet", "densenet_small"])
def test_pictures_that_would_vanish_are_refused(name):
    make, side = SMALL[name]
    with pytest.raises(ValueError, match=f"sides of at least {side} pixels, got {side} x {side - 1}"):
        make()(torch.zeros(1, 2, side, side - 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ResNet(depth=20), "depth must be one of 18, 34, 50, 101, 152, got 20"),
        (lambda: ResNet(depth="18"), "depth must be one of 18, 34, 50, 101, 152, got '18'"),
        (lambda: BottleneckResidualBlock(8, 6), "outputs must be a multiple of 4, got 6"),
        (lambda: BasicResidualBlock(0, 8), "inputs must be >= 1, got 0"),
        (lambda: BasicResidualBlock(8, 8, stride=0), "stride must be >= 1, got 0"),
        (lambda: InceptionModule(2, 1, 1, 1, 1, 0, 1), "fives must be >= 1, got 0"),
        (lambda: VGG(depth=12), "depth must be one of 11, 13, 16, 19, got 12"),
        (lambda: DenseNet(depth=100), "depth must be one of 121, 169, 201, got 100"),
        (lambda: GoogLeNet(large=7), "large must be 3 or 5, got 7"),
        (lambda: AlexNet(dropout=1.0), "dropout must be in [0, 1), got 1.0"),
        (lambda: LeNet5(classes=0), "classes must be >= 1, got 0"),
        (lambda: LeNet5Config(activation="steps"), "unknown activation 'steps'"),
        (lambda: ResNet(channels=-1), "channels must be >= 1, got -1"),
        (lambda: UNet(levels=0), "levels must be >= 1, got 0"),
        (lambda: LeNet5()(torch.zeros(1, 1, 28, 28)), "x must be 32 x 32 pixels, got 28 x 28: use padding=2"),
        (lambda: LeNet5(padding=2)(torch.zeros(1, 1, 32, 32)), "x must be 28 x 28 pixels, got 32 x 32"),
        (lambda: UNet(levels=3)(torch.zeros(1, 1, 24, 20)), "sides that are multiples of 8, got 24 x 20"),
        (lambda: UNet(same=False)(torch.zeros(1, 1, 571, 572)), "even before every pooling, got 571 x 572"),
        (lambda: UNet(levels=2, same=False)(torch.zeros(1, 1, 40, 44)), "even before every pooling, got 40 x 44"),
        (lambda: GoogLeNet(auxiliary=False).auxiliary_logits(torch.zeros(1, 3, 32, 32)), "auxiliary must be True"),
    ],
)
def test_settings_and_sizes_that_cannot_be_are_refused(unchecked, make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_auxiliary_classifiers_answer_beside_the_last_one():
    network = GoogLeNet(classes=4).eval()
    x = torch.randn(2, 3, 32, 32)
    last, first, second = network.auxiliary_logits(x)
    assert first.shape == second.shape == (2, 4)
    assert torch.equal(last, network(x))


def test_a_unet_has_the_parameters_of_the_original():
    double = [9 * (a + b) * b + 2 * b for a, b in ((1, 64), (64, 128), (128, 256), (256, 512), (512, 1024))]
    joined = [9 * (2 * n + n) * n + 2 * n for n in (512, 256, 128, 64)]
    up = [4 * 2 * n * n + n for n in (512, 256, 128, 64)]
    assert parameters(UNet(device="meta")) == sum(double + joined + up) + 64 * 2 + 2


@pytest.mark.parametrize("name", ["resnet", "vgg", "densenet_small", "unet"])
def test_initial_outputs_are_of_the_size_of_the_inputs(name):
    make, side = SMALL[name]
    torch.manual_seed(0)
    outputs = make()(torch.randn(64, 2, side, side))
    assert outputs.isfinite().all()
    assert outputs.std() < 30


@pytest.mark.parametrize(
    "make", [lambda: VGG(depth=11, width=16, hidden=64), lambda: ResNet(width=16), lambda: ResNet(depth=50, width=16)]
)
def test_initial_weights_are_hes_for_what_leaves_a_convolution(make):
    torch.manual_seed(0)
    network = make()
    for name, values in network.named_parameters():
        if values.ndim == 4:  # the deviation of n numbers is itself off by 1 / sqrt(2 n) of it
            wanted = (2 / values[:, 0].numel()) ** 0.5
            assert values.std().item() == pytest.approx(wanted, rel=6 / (2 * values.numel()) ** 0.5), name
        elif isinstance(network, VGG) and values.ndim == 2:
            assert values.std().item() == pytest.approx(0.01, rel=6 / (2 * values.numel()) ** 0.5), name
        elif isinstance(network, VGG):
            assert not values.any(), name


@pytest.mark.parametrize("name", ["vgg", "vgg_bn", "resnet"])
def test_drawing_anew_forgets_what_was_learnt(name):
    network = SMALL[name][0]()
    with torch.no_grad():
        for values in network.parameters():
            values.fill_(7.0)
    network.reset_parameters()
    assert not any((values == 7).any() for values in network.parameters())


@pytest.mark.parametrize("network", [AlexNet, VGG])
def test_both_hidden_layers_are_dropped_at_the_same_rate(network):
    parts = network(width=1, hidden=2).classifier
    assert [part.p for part in parts if isinstance(part, torch.nn.Dropout)] == [0.5, 0.5]
    parts = network(width=1, hidden=2, dropout=0.2).classifier
    assert [part.p for part in parts if isinstance(part, torch.nn.Dropout)] == [0.2, 0.2]
