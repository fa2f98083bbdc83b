"""The deep autoencoder: shapes, what linear layers compute, and what is refused."""

import pytest
import torch

from lemmata.generative.autoencoders import DeepAutoencoder, DeepAutoencoderConfig


def test_an_image_comes_back_in_its_shape():
    model, x = DeepAutoencoder(inputs=12, code=2, widths=[5, 3]), torch.rand(4, 3, 4)
    assert model(x).shape == x.shape
    assert model.encode(x).shape == (4, 2)
    assert torch.equal(model.decode(model.encode(x)), model(x).flatten(1))
    assert [tuple(layer.weight.shape) for layer in model.decoder.layers] == [(3, 2), (5, 3), (12, 5)]


def test_the_loss_adds_up_an_example_and_averages_a_batch():
    model, x = DeepAutoencoder(inputs=6, code=2, widths=(4,)), torch.rand(5, 6)
    assert torch.allclose(model.loss(x), torch.stack([model.loss(row[None]) for row in x]).mean())
    assert torch.allclose(model.loss(x), 6 * torch.nn.functional.mse_loss(model(x), x))


def test_with_identity_activations_it_has_the_rank_of_its_code():
    model = DeepAutoencoder(inputs=6, code=2, widths=(5,), activation="identity", dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x[None])[0], torch.rand(6).double())
    assert int(torch.linalg.matrix_rank(jacobian)) == 2


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused():
    with pytest.raises(ValueError, match="code must be >= 1, got 0"):
        DeepAutoencoder(6, code=0)
    with pytest.raises(TypeError, match="widths must be a tuple"):
        DeepAutoencoderConfig(widths=64)
    with pytest.raises(ValueError, match="did you mean silu"):
        DeepAutoencoderConfig(activation="sliu")
    with pytest.raises(ValueError, match="with 6 values each"):
        DeepAutoencoder(6)(torch.rand(2, 5))
