"""The variational autoencoder: any networks, its verbs, both covariances, and what is refused."""

import pytest
import torch
from torch import nn

from lemmata.feedforward.mlp import MLP
from lemmata.generative.autoencoders.decoders import BernoulliOutput, GaussianOutput
from lemmata.generative.autoencoders.linear_vae import LinearVAE
from lemmata.generative.autoencoders.vae import MLPVAE, VAE, VAEConfig
from lemmata.train.loop import fit


def small(**words):
    torch.manual_seed(0)
    covariance = words.get("covariance", "diagonal")
    return VAE(MLP(6, 4 if covariance == "diagonal" else 5, widths=(8,)), MLP(2, 6, widths=(8,)), 2, **words)


def test_verbs_have_one_number_for_each_example():
    vae, x = small(), torch.randn(5, 6)
    assert vae.loss(x).shape == ()
    for found in (vae.elbo(x), vae.elbo(x, samples=3), vae.log_prob(x, samples=7)):
        assert found.shape == (5,)
    assert vae.sample(3).shape == (3, 6)
    assert vae(x[:1]).shape == vae.decode(vae.encode(x[:1])[0]).shape == (1, 6)
    assert vae(x[:0]).shape == (0, 6)


def test_one_seed_one_answer_and_the_global_stream_is_left_alone():
    vae, x = small(), torch.randn(5, 6)
    before = torch.get_rng_state()
    for verb in (
        lambda g: vae.elbo(x, 2, g),
        lambda g: vae.log_prob(x, 5, g),
        lambda g: vae.loss(x, generator=g),
        lambda g: vae.sample(3, generator=g),
    ):
        assert torch.equal(*(verb(torch.Generator().manual_seed(1)) for _ in range(2)))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_sampled_terms_come_to_the_exact_ones(covariance):
    torch.manual_seed(1)
    vae = LinearVAE(4, 2, variance=0.5, covariance=covariance, dtype=torch.float64)
    x = torch.randn(3, 4, dtype=torch.float64)
    with torch.no_grad():
        vae.encoder.spread += 0.3 * torch.randn_like(vae.encoder.spread)
        exact, evidence = vae.exact_terms(x), vae.exact_log_prob(x)
        assert torch.allclose(vae.elbo(x, samples=100_000), exact.value, atol=0.05)
        assert torch.allclose(vae.log_prob(x, samples=100_000), evidence, atol=0.05)
        assert bool((exact.value < evidence).all())
        assert float(vae.exact_loss(x)) == pytest.approx(-float(exact.value.mean()))


def test_a_full_covariance_is_a_triangular_factor():
    _, factor = small(covariance="full").encode(torch.randn(5, 6))
    assert factor.shape == (5, 2, 2)
    assert bool((factor.triu(1) == 0).all())
    assert bool((factor.diagonal(dim1=1, dim2=2) > 0).all())


def test_the_weight_counts_in_the_loss_and_not_in_the_bound():
    x = torch.randn(50, 6)
    plain, heavy = small(), small(kl_weight=3.0)
    draws = [torch.Generator().manual_seed(2) for _ in range(5)]
    assert torch.equal(plain.elbo(x, generator=draws[0]), heavy.elbo(x, generator=draws[1]))
    kl = plain.terms(x, generator=draws[2]).kl.mean()
    apart = heavy.loss(x, generator=draws[3]) - plain.loss(x, generator=draws[4])
    assert torch.allclose(apart, 2 * kl, rtol=1e-4)


def test_images_go_through_convolutions():
    encoder = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))
    decoder = nn.Sequential(nn.Linear(3, 64), nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 1, 2, stride=2))
    vae = VAE(encoder, decoder, 3, BernoulliOutput())
    x = (torch.rand(5, 1, 8, 8) > 0.5).float()
    assert vae(x).shape == vae.sample(5).shape == x.shape
    assert vae.log_prob(x, samples=4).shape == (5,)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes(dtype):
    vae = MLPVAE(6, latents=2, widths=(8,), output="gaussian", dtype=dtype)
    x = torch.randn(4, 6).to(dtype)
    assert vae.elbo(x).dtype == vae.sample(2).dtype == dtype


def test_fit_knows_the_loss_of_a_model():
    torch.manual_seed(0)
    codes = torch.randn(300, 2)
    x = codes @ torch.randn(2, 6) + 0.1 * torch.randn(300, 6)
    vae = MLPVAE(6, latents=2, widths=(16,), output="learnt_gaussian")
    before = float(vae.elbo(x).detach().mean())
    fit(vae, {"x": x}, epochs=60, lr=1e-2, device="cpu", progress=False)
    assert float(vae.elbo(x).detach().mean()) > before + 2
    assert float(vae.output.variance.detach()) < 0.8


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: small(kl_weight=-1.0), "kl_weight must be >= 0, got -1.0"),
        (lambda: small(covariance="spherical"), "covariance must be one of diagonal, full"),
        (lambda: VAE(MLP(6, 3), MLP(2, 6), 2)(torch.zeros(1, 6)), "encoder must give 4 numbers for 2 latents"),
        (lambda: VAE(MLP(6, 4), MLP(2, 5), 2).elbo(torch.zeros(1, 6)), "decoder must give 6 numbers"),
        (lambda: small().decode(torch.zeros(1, 3)), "z must have 2 latents"),
        (lambda: small().elbo(torch.zeros(2, 6), samples=0), "samples must be >= 1, got 0"),
        (lambda: small().log_prob(torch.zeros(2, 6), samples=0), "samples must be >= 1, got 0"),
        (lambda: small().sample(0), "n must be >= 1, got 0"),
        (lambda: VAEConfig(latents=0), "latents must be >= 1, got 0"),
        (lambda: VAEConfig(output="poisson"), "output must be one of"),
        (lambda: LinearVAE(4, 2, variance=0.0), "variance must be > 0"),
        (lambda: GaussianOutput(-1.0), "variance must be > 0"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
