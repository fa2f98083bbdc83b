"""Torchvision's weights: as many, of the same names, from its files, with the same outputs where it is installed."""

import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from lemmata.convolution.alexnet import AlexNet
from lemmata.convolution.densenet import DenseNet
from lemmata.convolution.inception import GoogLeNet
from lemmata.convolution.resnet import ResNet
from lemmata.convolution.vgg import VGG

# What torchvision's functions of these names have, weights that learn only.
COUNTS = {
    "alexnet": (lambda **place: AlexNet(**place), 61_100_840),
    "vgg11": (lambda **place: VGG(depth=11, **place), 132_863_336),
    "vgg13": (lambda **place: VGG(depth=13, **place), 133_047_848),
    "vgg16": (lambda **place: VGG(depth=16, **place), 138_357_544),
    "vgg19": (lambda **place: VGG(depth=19, **place), 143_667_240),
    "vgg11_bn": (lambda **place: VGG(depth=11, batch_norm=True, **place), 132_868_840),
    "vgg13_bn": (lambda **place: VGG(depth=13, batch_norm=True, **place), 133_053_736),
    "vgg16_bn": (lambda **place: VGG(depth=16, batch_norm=True, **place), 138_365_992),
    "vgg19_bn": (lambda **place: VGG(depth=19, batch_norm=True, **place), 143_678_248),
    "googlenet": (lambda **place: GoogLeNet(**place), 13_004_888),
    "resnet18": (lambda **place: ResNet(depth=18, **place), 11_689_512),
    "resnet34": (lambda **place: ResNet(depth=34, **place), 21_797_672),
    "resnet50": (lambda **place: ResNet(depth=50, **place), 25_557_032),
    "resnet101": (lambda **place: ResNet(depth=101, **place), 44_549_160),
    "resnet152": (lambda **place: ResNet(depth=152, **place), 60_192_808),
    "densenet121": (lambda **place: DenseNet(depth=121, **place), 7_978_856),
    "densenet169": (lambda **place: DenseNet(depth=169, **place), 14_149_480),
    "densenet201": (lambda **place: DenseNet(depth=201, **place), 20_013_928),
}


@pytest.mark.parametrize("name", COUNTS)
def test_there_are_as_many_parameters_as_in_torchvision(name):
    make, count = COUNTS[name]
    assert sum(values.numel() for values in make(device="meta").parameters()) == count


@pytest.fixture(scope="module")
def models():
    """Torchvision's networks. A torchvision that was built for another torch fails to import with a RuntimeError."""
    try:
        return pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    except RuntimeError as error:
        pytest.skip(f"torchvision does not fit this torch: {error}")


def pair(models, name):
    """Theirs and ours with the same weights, which go from one to the other and back."""
    more = {"init_weights": False, "transform_input": False} if name == "googlenet" else {}
    theirs, ours = getattr(models, name)(weights=None, **more), COUNTS[name][0]()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    return theirs, ours


@pytest.mark.parametrize("name", COUNTS)
def test_torchvisions_weights_give_torchvisions_outputs(models, name):
    theirs, ours = pair(models, name)
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        expected = theirs.eval()(x)
        found = ours.eval()(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * max(1.0, expected.abs().max().item()))


@pytest.mark.parametrize("name", ["alexnet", "vgg11_bn", "googlenet", "resnet18", "resnet50", "densenet121"])
def test_a_training_step_is_torchvisions(models, name):
    theirs, ours = (network.double().train() for network in pair(models, name))
    x, answers = torch.randn(2, 3, 65, 65, dtype=torch.float64), []
    for network in (theirs, ours):
        torch.manual_seed(0)  # of the dropouts
        answer = ours.auxiliary_logits(x) if network is ours and name == "googlenet" else network(x)
        answers.append(torch.stack([torch.as_tensor(one) for one in answer]))
        answers[-1].square().sum().backward()
    if name == "googlenet":  # torchvision tells the second auxiliary classifier before the first
        answers[0] = answers[0][[0, 2, 1]]
    # The same sums, maybe in another order: a hundred layers of a thousand terms each, at most.
    torch.testing.assert_close(answers[1], answers[0], rtol=0, atol=1e-10 * answers[0].abs().max().item())
    gradients = dict(theirs.named_parameters())
    for key, values in ours.named_parameters():
        expected = gradients[key].grad
        torch.testing.assert_close(values.grad, expected, rtol=0, atol=1e-8 * expected.abs().max().item(), msg=key)
    buffers = dict(theirs.named_buffers())
    for key, values in ours.named_buffers():
        torch.testing.assert_close(values, buffers[key], msg=key)


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "googlenet"])
def test_files_as_torchvision_published_them_are_read(tmp_path, name):
    """They are older than some names: no counters of batches, and DenseNet's layers say norm.1 for norm1."""
    wanted, network = (COUNTS[name][0]() for _ in range(2))
    published = {
        re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", key): values
        for key, values in wanted.state_dict().items()
        if not key.endswith("num_batches_tracked")
    }
    assert ("features.denseblock1.denselayer1.norm.1.weight" in published) == (name == "densenet121")
    save_file(published, tmp_path / "network.safetensors")
    network.load_state_dict(load_file(tmp_path / "network.safetensors"))
    for key, values in wanted.state_dict().items():
        assert torch.equal(network.state_dict()[key], values), key
    with pytest.raises(RuntimeError, match="Unexpected key"):
        network.load_state_dict({**published, "norm.3.weight": torch.zeros(1)})


def keys(network):
    return [key for key in network.state_dict() if not key.endswith("num_batches_tracked")]


def test_names_are_those_of_torchvisions_files():
    assert keys(AlexNet(width=1, hidden=1))[::2] == [
        *(f"features.{n}.weight" for n in (0, 3, 6, 8, 10)), *(f"classifier.{n}.weight" for n in (1, 4, 6))
    ]  # fmt: skip
    vgg = keys(VGG(depth=11, batch_norm=True, width=1, hidden=1, device="meta"))
    normal = [f"features.1.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
    assert vgg[:6] == ["features.0.weight", "features.0.bias", *normal]
    assert vgg[-2:] == ["classifier.6.weight", "classifier.6.bias"]
    resnet = keys(ResNet(depth=50, device="meta"))
    assert resnet[0] == "conv1.weight"
    assert {"bn1.running_var", "layer1.0.downsample.1.bias", "layer4.2.conv3.weight", "fc.bias"} <= set(resnet)
    assert "layer1.1.downsample.0.weight" not in resnet
    densenet = set(keys(DenseNet(device="meta")))
    assert {"features.conv0.weight", "features.denseblock4.denselayer16.norm2.bias", "classifier.weight"} <= densenet
    assert {"features.transition3.norm.running_mean", "features.transition1.conv.weight"} <= densenet
    assert {"features.norm0.weight", "features.norm5.weight"} <= densenet
    google = set(keys(GoogLeNet(device="meta")))
    assert {"conv1.conv.weight", "inception3a.branch4.1.bn.bias", "aux2.fc2.bias", "fc.weight"} <= google
    assert {"inception5b.branch1.conv.weight", "inception4c.branch3.1.conv.weight", "aux1.conv.bn.weight"} <= google
