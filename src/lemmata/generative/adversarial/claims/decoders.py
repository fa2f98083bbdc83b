"""What a decoder is sent by its critic, and how it makes an image: slopes and adjoints, without a training."""

import math

import torch
from torch import nn

from lemmata.convolution.convolution_layer import conv_nd, conv_transpose_nd
from lemmata.generative.adversarial.deconvolution_network import DeconvolutionNetwork
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.gan_losses import minimax_loss, non_saturating_loss
from lemmata.judge import all_of, at_most, claim, close, exactly, lie


def slopes(loss, logits):
    """The derivative of a loss of one example, at each logit."""
    leaf = logits.clone().requires_grad_()
    return torch.autograd.grad(torch.stack([loss(each) for each in leaf]).sum(), leaf)[0]


class Verdict(nn.Module):
    """A critic whose logits are around one number, wherever the example is."""

    def __init__(self, logit):
        super().__init__()
        self.logit = logit

    def forward(self, x):
        return self.logit + 0.01 * x.tanh().sum(1, keepdim=True)


def slope_of_decoder(draw, decoder_loss, logit):
    """The norm of the gradient in all weights of a decoder whose examples have about this logit."""
    torch.manual_seed(int(draw.integers(0, 2**31, 1)))
    decoder = nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        decoder.weight.copy_(torch.eye(2, 3))
    model = GAN((2,), latent=3, decoder_loss=decoder_loss, decoder=decoder, critic=Verdict(logit))
    found = model.loss(torch.zeros(500, 2, dtype=torch.float64), generator=torch.Generator().manual_seed(1))
    return torch.cat([each.flatten() for each in torch.autograd.grad(found, list(decoder.parameters()))]).norm()


@claim("gan.non_saturating")
@lie("the gradient goes to infinity where q = 1", printed="000/1", at_one=-math.inf)
@lie("the minimax loss is the steeper one where examples are rejected", steep=minimax_loss)
@lie("the slope is that of q itself", power=2.0)
def only_one_loss_is_steep_for_the_rejected(draw, at_one=-1.0, steep=non_saturating_loss, power=1.0):
    """Slopes in the logit by autograd, from sure of one kind to sure of the other; and of a decoder's weights."""
    logits = torch.cat([torch.tensor([-700.0, -8.0, 0.0, 8.0, 700.0]).double(), 5 * draw.normal(20)])
    q = logits.sigmoid()
    flat, steeper = slopes(minimax_loss, logits), slopes(steep, logits)
    decoders = {name: slope_of_decoder(draw, name, -8.0) for name in ("minimax", "non_saturating")}
    return all_of(
        close(flat, -(q**power), detail="minimax"),
        close(steeper, q - 1, ulps=1000, detail="non-saturating"),
        close(flat[4], torch.tensor(at_one).double(), detail="minimax, of an example that passes for real"),
        at_most(torch.stack([flat, slopes(non_saturating_loss, logits)]).sign(), 0.0, detail="both push logits up"),
        at_most(decoders["minimax"], 1e-3 * decoders["non_saturating"], detail="a decoder that is found out"),
    )


def by_transposition(weight, maps):
    return conv_transpose_nd(maps, weight, stride=2, padding=1)


def with_kernels_turned_round(weight, maps):
    return conv_transpose_nd(maps, weight.flip(2, 3), stride=2, padding=1)


def the_inner_product(down, up, x, y):
    return (down(x) * y).sum(), (x * up(y)).sum()


def there_and_back(down, up, x, y):
    return down(up(y)), y


@claim("gan.deconv")
@lie("the transposed convolution inverts the convolution", same=there_and_back)
@lie("with kernels turned round", upwards=with_kernels_turned_round)
@lie("nothing is cut off at the edges", padding=0)
def a_convolutional_network_upside_down(draw, same=the_inner_product, upwards=by_transposition, padding=1):
    """Each layer of decoders for images of several sizes, against the convolution whose adjoint it is."""
    pairs, layers, sizes, wanted, images = [], [], [], [], []
    for shape in ((1, 8, 8), (3, 16, 8), (1, 28, 28)):
        network = DeconvolutionNetwork(5, shape, channels=3, norm=False, dtype=torch.float64).eval()
        maps = torch.relu(network.seed(draw.normal(2, 5))).unflatten(1, network.seed_shape)
        for layer in network.layers:
            assert isinstance(layer, nn.ConvTranspose2d)
            assert layer.bias is not None
            x, y = draw.normal(2, layer.out_channels, *(2 * side for side in maps.shape[2:])), draw.normal(*maps.shape)
            bias = layer.bias.detach()[:, None, None]
            down = lambda x, layer=layer: conv_nd(x, layer.weight, stride=2, padding=1)  # noqa: E731
            up = lambda y, layer=layer, bias=bias: layer(y) - bias  # noqa: E731
            pairs.append([side.flatten() for side in same(down, up, x, y)])
            made = layer(maps) - bias
            layers.append([made.flatten(), upwards(layer.weight, maps).flatten()])
            sizes.append(list(made.shape[2:]))
            wanted.append([2 * (side - 1) - 2 * padding + 4 for side in maps.shape[2:]])
            maps = torch.relu(layer(maps))
        images.append(list(network(draw.normal(2, 5)).shape) == [2, *shape])
    return all_of(
        close(*map(torch.cat, zip(*pairs, strict=True)), ulps=1e5, detail="inner products on both sides"),
        close(*map(torch.cat, zip(*layers, strict=True)), ulps=1e4, detail="maps without their constants"),
        exactly(sizes, wanted, detail="sides after each layer"),
        exactly(images, [True] * 3, detail="shapes of the images"),
    )
