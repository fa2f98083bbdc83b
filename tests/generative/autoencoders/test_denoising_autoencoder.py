"""Denoising autoencoders: the Wiener filter as their optimum, noise, generators, images, and what is refused."""

import pytest
import torch
from torch import nn

from lemmata.generative.autoencoders import DenoisingAutoencoder, ImageDenoiser


def test_of_gaussian_data_the_best_linear_denoiser_is_wieners():
    generator, level = torch.Generator().manual_seed(0), 0.8
    variance = torch.tensor([4.0, 0.25]).double()
    x = variance.sqrt() * torch.randn(200_000, 2, generator=generator).double()
    model = DenoisingAutoencoder(nn.Linear(2, 2, bias=False, dtype=torch.float64), level)
    noisy = model.corrupt(x, generator)
    fitted = torch.linalg.lstsq(noisy, x).solution.mT
    wiener = torch.diag(variance / (variance + level**2))
    assert torch.allclose(fitted, wiener, atol=0.01)
    with torch.no_grad():
        model.network.weight.copy_(wiener)
    at = torch.tensor([[1.0, -2.0]]).double()
    assert torch.allclose(model.score(at), -at / (variance + level**2))  # of a normal law with both variances
    least = (variance * level**2 / (variance + level**2)).sum()
    assert float(model.loss(x, generator=generator).detach()) == pytest.approx(float(least), rel=0.02)


def test_noise_has_the_level_and_comes_from_the_generator():
    model, x = DenoisingAutoencoder(nn.Identity(), 0.3), torch.zeros(300, 10, 10)
    noise = model.corrupt(x, torch.Generator().manual_seed(0))
    assert float(noise.std()) == pytest.approx(0.3, rel=0.02)
    assert torch.equal(noise, model.corrupt(x, torch.Generator().manual_seed(0)))
    losses = [model.loss(x, generator=torch.Generator().manual_seed(4)) for _ in range(2)]
    assert torch.equal(losses[0], losses[1])
    assert float(losses[0]) == pytest.approx(100 * 0.09, rel=0.02)  # a network that does nothing leaves the noise


def test_a_denoiser_of_images_takes_any_size_and_sees_its_neighbourhood():
    torch.manual_seed(0)
    model = ImageDenoiser(channels=1, width=4, depth=3).double()
    assert model(torch.rand(2, 1, 5, 9).double()).shape == (2, 1, 5, 9)
    x = torch.rand(1, 1, 15, 15).double().requires_grad_()
    model(x)[0, 0, 7, 7].backward()
    seen = (x.grad[0, 0] != 0).nonzero()
    assert seen.min() >= 4
    assert seen.max() <= 10


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match=r"noise_level must be > 0, got -0.1"):
        DenoisingAutoencoder(nn.Identity(), -0.1)
    with pytest.raises(TypeError, match="network must be"):
        DenoisingAutoencoder(abs, 0.1)
    with pytest.raises(ValueError, match="network must return the shape of its input"):
        DenoisingAutoencoder(nn.Linear(2, 3), 0.1)(torch.zeros(1, 2))
    with pytest.raises(ValueError, match="depth must be >= 2, got 1"):
        ImageDenoiser(1, depth=1)
    with pytest.raises(ValueError, match="with at least 2 x 2 pixels"):
        ImageDenoiser(1)(torch.zeros(2, 1, 1, 5))
