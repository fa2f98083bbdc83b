"""Every system of the chapter gives on a GPU what it gives on the CPU, and answers where its data lie."""

import pytest
import torch
from torch import nn

from lemmata.convolution import (
    TCN,
    VGG,
    AlexNet,
    DenseNet,
    GoogLeNet,
    LeNet5,
    Pool,
    ResNet,
    SkipGram,
    TextCNN,
    UNet,
    WaveNet,
    conv_input_gradient,
    conv_nd,
    conv_transpose_nd,
    conv_weight_gradient,
    convolution_matrix,
    convolve,
    cooccurring_pairs,
    correlate,
    fourier_transform,
    gradient_field,
    inverse_fourier_transform,
    pool_nd,
    receptive_field,
    thinned,
    toeplitz_matrix,
    unigram_distribution,
)
from lemmata.lab.cli import main

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def layer(x, weight, bias):
    """By every method; both choices, too."""
    how = {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}
    methods = ("definition", "im2col", "torch", "fft", "auto", "measured")
    return tuple(conv_nd(x, weight, bias, method=method, **how) for method in methods)


def backward(x, weight, delta):
    how = {"stride": 2, "padding": 1, "groups": 2}
    found = conv_input_gradient(x.shape[2:], weight, delta, **how), conv_weight_gradient(x, 3, delta, **how)
    return *found, conv_transpose_nd(delta, weight, **how)


def pooled(x):
    kinds = "max", "min", "average", "softmax"
    learnt = Pool(2, learn_beta=True, device=x.device, dtype=x.dtype)
    return *(pool_nd(x, 3, kind, stride=2, padding=1, method="definition") for kind in kinds), learnt(x).detach()


def fourier(f, t):
    transform, u = fourier_transform(f, t)
    return transform, u, *inverse_fourier_transform(transform, u)


def fields(x):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2, dtype=x.dtype), nn.AvgPool2d(2)).to(x.device)
    size = torch.tensor(receptive_field(model, (2, 12, 12)).size, device=x.device)
    return size, gradient_field(model, x, (1, 1))


def words(tokens):
    distribution = unigram_distribution(tokens, 7)
    kept = thinned(tokens, 7, threshold=0.1, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    model = SkipGram(7, 4, dtype=torch.float64).to(tokens.device)
    model.sweep(cooccurring_pairs(kept), distribution, generator=torch.Generator().manual_seed(0))
    some = tokens[:5]
    return distribution, kept, model.given.weight.detach(), model(some).detach(), model.nearest(some, 2)


def sounds(x):
    torch.manual_seed(0)
    network = WaveNet(levels=5, channels=4, depth=3, dtype=torch.float64).to(x.device)
    return network(x).detach(), network.generate(x, 20, 0.0), network.generate_by_definition(x, 20, 0.0)


def trained(make):
    """Outputs and all gradients of a network, as it predicts."""

    def call(x):
        torch.manual_seed(0)
        network = make().eval().to(x.device, torch.float64)
        y = network(x)
        y.square().mean().backward()
        return y.detach(), *(values.grad for values in network.parameters() if values.grad is not None)

    return call


TOKENS = torch.randint(1, 5, (3, 20))
CASES = {
    "layer": (layer, (normal(2, 4, 11, 12), normal(6, 2, 3, 4), normal(6))),
    "backward": (backward, (normal(2, 4, 9, 9), normal(6, 2, 3, 3), normal(2, 6, 5, 5))),
    "signals": (lambda f, h: (convolve(f, h), correlate(h, f), toeplitz_matrix(h, 9)), (normal(9), normal(4))),
    "whole signals": (lambda f, h: convolve(f, h), (torch.arange(9), torch.arange(4))),
    "matrix": (lambda w: convolution_matrix(w, (6, 5), padding=1, stride=2).to_dense(), (normal(3, 2, 3, 3),)),
    "pooling": (pooled, (normal(2, 3, 9, 8),)),
    "fourier": (fourier, (normal(3, 16), torch.linspace(-2, 3, 16, dtype=torch.float64))),
    "fields": (fields, (normal(1, 2, 12, 12),)),
    "skip-gram": (words, (torch.randint(7, (60,)),)),
    "WaveNet": (sounds, (TOKENS,)),
    "text CNN": (trained(lambda: TextCNN(5, 2)), (TOKENS,)),
    "TCN": (trained(lambda: TCN(3, 2)), (normal(2, 20, 3),)),
    "U-Net": (trained(lambda: UNet(2, 3, width=4, levels=2)), (normal(2, 2, 16, 16),)),
    "LeNet-5": (trained(lambda: LeNet5(padding=2)), (normal(2, 1, 28, 28),)),
    "ResNet": (trained(lambda: ResNet(3, 5, width=8)), (normal(2, 3, 64, 64),)),
    "DenseNet": (trained(lambda: DenseNet(3, 5, growth=4)), (normal(2, 3, 64, 64),)),
    "AlexNet": (trained(lambda: AlexNet(classes=5)), (normal(1, 3, 64, 64),)),
    "GoogLeNet": (trained(lambda: GoogLeNet(classes=5)), (normal(1, 3, 64, 64),)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gpu_agrees_with_the_cpu(case):
    call, arguments = CASES[case]
    here, there = call(*arguments), call(*(argument.cuda() for argument in arguments))
    for cpu, gpu in zip(*(each if isinstance(each, tuple) else (each,) for each in (here, there)), strict=True):
        assert gpu.is_cuda
        torch.testing.assert_close(gpu.cpu(), cpu)


@pytest.mark.parametrize("make", [ResNet, DenseNet, VGG])
def test_half_precision_under_autocast_is_near_single(make):
    network = make(channels=3, classes=5).eval().cuda()
    x = torch.randn(2, 3, 64, 64, device="cuda")
    with torch.no_grad():
        single = network(x)
        with torch.autocast("cuda", torch.bfloat16):
            half = network(x)
    assert half.dtype == torch.bfloat16
    assert float((half - single).norm() / single.norm()) < 0.1  # 2^-8 a rounding, some tens of layers


@pytest.mark.parametrize("name", ["lenet", "resnet", "densenet", "unet", "tcn", "wavenet", "textcnn", "skipgram"])
def test_recipes_train_on_the_gpu_to_their_last_picture(name, tmp_path, capsys):
    assert main(["train", name, "--device", "cuda", "--steps", "2", "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert not capsys.readouterr().err
