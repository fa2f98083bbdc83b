"""Adversarial networks: shapes, generators, networks of one's own, and the critics that are refused."""

import pytest
import torch
from torch import nn

from lemmata.generative.adversarial.deconvolution_network import DeconvolutionNetwork
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.strided_critic import StridedCritic
from lemmata.generative.adversarial.wgan import WGAN
from lemmata.tricks.batch_norm import BatchNorm

KINDS = (GAN, WGAN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "network"), [((3,), "mlp"), ((8, 8), "mlp"), ((8, 8), "convolution"), ((3, 12, 20), "convolution")]
)
def test_examples_of_every_shape(kind, shape, network):
    model = kind(shape, latent=4, network=network, widths=(8,), channels=4)
    samples = model.sample(5, generator=torch.Generator().manual_seed(0))
    assert samples.shape == (5, *shape)
    assert not samples.requires_grad
    assert torch.equal(samples, model.sample(5, generator=torch.Generator().manual_seed(0))) or network == "convolution"
    if len(shape) > 1:
        assert 0 <= float(samples.min()) <= float(samples.max()) <= 1
    assert model(samples).shape == (5,)
    for loss in (model.loss(samples), model.critic_loss(samples)):
        assert loss.shape == ()
        assert loss.isfinite()


@pytest.mark.parametrize("kind", KINDS)
def test_the_decoders_loss_does_not_look_at_the_data(kind):
    model = kind((2,), latent=3, widths=(8,))
    losses = [model.loss(x, generator=torch.Generator().manual_seed(1)) for x in (torch.zeros(9, 2), torch.ones(9, 2))]
    assert torch.equal(*losses)


@pytest.mark.parametrize("kind", KINDS)
def test_networks_of_ones_own(kind):
    model = kind((2,), latent=3, decoder=nn.Linear(3, 2), critic=nn.Linear(2, 1))
    assert [type(part) for part in (model.decoder, model.critic)] == [nn.Linear, nn.Linear]
    assert model.loss(torch.zeros(4, 2)).isfinite()


def test_a_critic_that_gives_probabilities_is_refused():
    for last in (nn.Sigmoid(), nn.LogSigmoid()):
        with pytest.raises(
            ValueError, match=f"critic must give logits, but ends in {type(last).__name__}: leave it out"
        ):
            GAN((2,), critic=nn.Sequential(nn.Linear(2, 1), last))
    GAN((2,), critic=nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 1)))  # in the middle it is an activation


def test_a_critic_that_looks_at_other_examples_is_refused():
    for norm in (nn.BatchNorm1d(4), BatchNorm(4)):
        with pytest.raises(ValueError, match="critic must judge each example by itself, but 1 is a BatchNorm"):
            WGAN((2,), critic=nn.Sequential(nn.Linear(2, 4), norm, nn.Linear(4, 1)))
    WGAN((2,), critic=nn.Sequential(nn.Linear(2, 4), nn.LayerNorm(4), nn.Linear(4, 1)))


def test_clipped_weights_are_clipped_from_the_beginning():
    model = WGAN((2,), widths=(8,), constraint="clipping", largest_weight=0.02)
    assert max(float(weight.detach().abs().max()) for weight in model.critic.parameters()) <= 0.02
    assert float(next(model.decoder.parameters()).detach().abs().max()) > 0.02


def test_only_the_penalty_draws_mixtures():
    x = torch.randn(6, 2)
    for constraint in ("clipping", "spectral"):
        model = WGAN((2,), latent=3, widths=(8,), constraint=constraint).eval()
        fake = model.sample(6, generator=torch.Generator().manual_seed(0))
        said = model.critic_loss(x, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(said, -model.distance(x, fake))


@pytest.mark.parametrize("norm", [True, False])
def test_the_decoder_halves_sides_until_they_are_small(norm):
    network = DeconvolutionNetwork(5, (1, 32, 16), channels=2, norm=norm)
    assert network.seed_shape == (16, 2, 1)
    assert [layer.out_channels for layer in network.layers] == [8, 4, 2, 1]
    assert StridedCritic((1, 32, 16), channels=2)(network(torch.randn(3, 5))).shape == (3, 1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GAN((2,), network="convolution"), "network must be mlp for examples that are no images"),
        (lambda: GAN((), latent=2), "shape must be that of one example"),
        (lambda: GAN((2,), decoder_loss="hinge"), "decoder_loss must be one of non_saturating, minimax"),
        (lambda: WGAN((2,), constraint="hope"), "constraint must be one of penalty, clipping, spectral"),
        (lambda: WGAN((2,), penalty_weight=0.0), "penalty_weight must be > 0, got 0.0"),
        (lambda: DeconvolutionNetwork(3, (1, 7, 8)), "shape must have even sides, got 7 x 8: pad the images"),
        (lambda: DeconvolutionNetwork(3, (8, 8)), r"shape must be \(channels, height, width\), got \(8, 8\)"),
        (lambda: StridedCritic((1, 8, 8))(torch.zeros(2, 1, 8, 6)), r"x must be images of shape \(1, 8, 8\)"),
        (lambda: GAN((2,))(torch.zeros(3, 5)), r"x must be \(batch, 2\), got shape \(3, 5\)"),
        (lambda: GAN((2,)).sample(0), "n must be >= 1, got 0"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
