"""Where networks have their parameters, and what a narrow layer saves."""

import itertools

import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from lemmata.convolution.alexnet import AlexNet
from lemmata.convolution.inception import InceptionModule
from lemmata.convolution.lenet import LeNet5
from lemmata.convolution.receptive_fields import receptive_field
from lemmata.convolution.vgg import VGG
from lemmata.judge import all_of, always, claim, close, exactly, lie


def _share_of_full_layers(network):
    """Parameters of the fully connected layers, in hundredths of all."""
    full = [p for part in network.modules() if isinstance(part, nn.Linear) for p in part.parameters()]
    return 100 * sum(p.numel() for p in full) / sum(p.numel() for p in network.parameters())


@claim("conv.pyramid")
@lie("most parameters of VGG-16 lie in its convolutions", vgg=10.6)
@lie("most parameters of LeNet-5 lie in its convolutions", lenet=4.2)
@lie("most parameters of AlexNet lie in its convolutions", alexnet=4.0)
@lie("half as many channels at the end", channels=256)
def maps_shrink_and_channels_grow(draw, lenet=95.8, alexnet=96.0, vgg=89.4, channels=512):
    """Parameters of the whole networks, counted; sizes and channels along the trunk of VGG-16."""
    shares = [_share_of_full_layers(network(device="meta")) for network in (LeNet5, AlexNet, VGG)]
    shapes = [layer.shape for layer in receptive_field(VGG(device="meta").features, (3, 224, 224)).layers]
    wide, high = [shape[0] for shape in shapes], [shape[1] for shape in shapes]
    return all_of(
        close(shares, [lenet, alexnet, vgg], within=0.05),  # one decimal is printed
        always([b >= a for a, b in itertools.pairwise(wide)] + [b <= a for a, b in itertools.pairwise(high)]),
        exactly([wide[0], wide[-1], high[0], high[-1]], [64, channels, 224, 7]),
    )


def _counted_multiplications(model, *shape):
    """Counted by torch while the model runs without numbers; it counts an addition for each of them."""
    with FlopCounterMode(display=False) as counter:
        model(torch.empty(1, *shape, device="meta"))
    return counter.get_total_flops() // 2


def _if_narrow(inputs, outputs, k, r):
    return r * (inputs + k * k * outputs) < k * k * inputs * outputs


def _always_cheaper(inputs, outputs, k, r):
    return True


@claim("conv.inception.bottleneck")
@lie("the reduction costs nothing", reduced=10_035_200)
@lie("the kernel counts as one", direct=4_816_896)
@lie("it always saves", saves=_always_cheaper)
def narrow_layers_save_multiplications(draw, direct=120_422_400, reduced=12_443_648, saves=_if_narrow):
    """The third branch of an Inception module and one layer in its place; all small layers; one pixel at a time."""
    branch = InceptionModule(192, 64, 96, 128, 16, 32, 32, device="meta").eval().branch3
    whole = nn.Conv2d(192, 32, 5, padding=2, bias=False, device="meta")
    cheaper, predicted = [], []
    for inputs, outputs, k, r in itertools.product((1, 2, 8), (1, 3, 8), (1, 3), (1, 2, 8)):
        one = nn.Conv2d(inputs, outputs, k, padding=k // 2, device="meta")
        narrow = nn.Sequential(
            nn.Conv2d(inputs, r, 1, device="meta"), nn.Conv2d(r, outputs, k, padding=k // 2, device="meta")
        )
        cheaper.append(_counted_multiplications(narrow, inputs, 4, 4) < _counted_multiplications(one, inputs, 4, 4))
        predicted.append(saves(inputs, outputs, k, r))
    x, w = draw.normal(2, 6, 5, 4), draw.normal(3, 6)
    return all_of(
        exactly(
            [_counted_multiplications(whole, 192, 28, 28), _counted_multiplications(branch, 192, 28, 28)],
            [direct, reduced],
        ),
        exactly(cheaper, predicted),
        close(functional.conv2d(x, w[:, :, None, None]), torch.einsum("bihw,oi->bohw", x, w)),
    )
