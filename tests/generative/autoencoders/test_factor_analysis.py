"""Factor analysis and probabilistic PCA: parity with scikit-learn and torch, edges of the data, numbers, refusals."""

import math
import warnings

import pytest
import torch
from torch import nn

from lemmata.data import load
from lemmata.generative.autoencoders import FactorAnalysis, ProbabilisticPCA

KINDS = (FactorAnalysis, ProbabilisticPCA)


def generated(points=600, features=8, factors=3, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    spread = torch.linspace(-1, 1, features, dtype=torch.float64).exp()
    return 3 + 2 * normal(points, factors) @ normal(factors, features) + spread * normal(points, features)


def model(kind=FactorAnalysis, features=8, factors=3):
    return kind(features, factors, dtype=torch.float64)


# --- Peers ---


def test_scikit_learns_factor_analysis():
    decomposition = pytest.importorskip("sklearn.decomposition")
    x = generated()
    peer = decomposition.FactorAnalysis(3, tol=1e-4, max_iter=3000, svd_method="lapack").fit(x.numpy())
    ours, theirs = model().fit(x), torch.from_numpy(peer.get_covariance())
    assert peer.score(x.numpy()) <= ours.log_prob(x).mean().item() <= peer.score(x.numpy()) + 1e-3
    assert (ours.covariance - theirs).norm() < 1e-2 * theirs.norm()
    codes, own = torch.from_numpy(peer.transform(x.numpy())), ours.transform(x)
    cosines = (own * codes).sum(0).abs() / (own.norm(dim=0) * codes.norm(dim=0))
    assert cosines.min() > 0.99


def test_scikit_learns_score_and_codes_of_the_same_parameters():
    decomposition = pytest.importorskip("sklearn.decomposition")
    x, new = generated(), generated(seed=1)
    peer, ours = decomposition.FactorAnalysis(3).fit(x.numpy()), model()
    with torch.no_grad():
        ours.mean.copy_(torch.from_numpy(peer.mean_))
        ours.loadings.copy_(torch.from_numpy(peer.components_.T.copy()))
        ours.log_noise.copy_(torch.from_numpy(peer.noise_variance_).log())
    assert torch.allclose(ours.log_prob(new), torch.from_numpy(peer.score_samples(new.numpy())), atol=1e-9)
    assert torch.allclose(ours.transform(new), torch.from_numpy(peer.transform(new.numpy())), atol=1e-9)
    assert torch.allclose(ours.covariance, torch.from_numpy(peer.get_covariance()), atol=1e-9)


def test_scikit_learns_probabilistic_pca():
    decomposition = pytest.importorskip("sklearn.decomposition")
    x = generated()
    peer, ours = decomposition.PCA(3).fit(x.numpy()), model(ProbabilisticPCA).fit(x)
    unbiased = len(x) / (len(x) - 1)  # scikit-learn divides by one less
    assert torch.allclose(unbiased * ours.covariance, torch.from_numpy(peer.get_covariance()), atol=1e-8)
    assert ours.log_prob(x).mean().item() >= peer.score(x.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_densities_are_those_of_torch(kind):
    x, ours = generated(), model(kind).fit(generated())
    peer = torch.distributions.LowRankMultivariateNormal(ours.mean, ours.loadings, ours.noise)
    assert torch.allclose(ours.log_prob(x), peer.log_prob(x), atol=1e-8)
    drawn, density = ours.sample_and_log_prob(5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(density, peer.log_prob(drawn))


# --- The fit ---


def test_both_methods_reach_the_same_and_never_fall():
    x = generated()
    found = [model().fit(x, method=method, steps=5000) for method in ("lbfgs", "em")]
    for each in found:
        assert each.converged_
        assert min(b - a for a, b in zip(each.history_, each.history_[1:], strict=False)) > -1e-12
    quick, slow = (each.history_ for each in found)
    assert quick[-1] == pytest.approx(slow[-1], abs=1e-5)
    assert len(quick) < len(slow)


def test_the_gradient_vanishes_where_the_fit_ends():
    x = generated()
    ours = model().fit(x, tolerance=1e-7)
    ours.loss(x).backward()
    for parameter in ours.parameters():
        assert parameter.grad.abs().max() < 1e-6


def test_digits_have_pixels_without_noise_of_their_own():
    x = load("digits").train.x.flatten(1).double()
    with pytest.raises(ValueError, match=r"x must vary in every feature, but does not in 0, 32, 39: drop them"):
        FactorAnalysis(64, 5).fit(x)
    kept = x[:, x.std(0) > 0]
    ours = FactorAnalysis(kept.shape[1], 20, dtype=torch.float64).fit(kept, noise_floor=0.02)
    assert ours.converged_
    least = (ours.noise / kept.var(0, correction=0)).min().item()
    assert least == pytest.approx(0.02)  # a Heywood case: it would go on falling
    assert ProbabilisticPCA(64, 5).fit(x).noise.min() > 0  # which does not mind them


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_do_not_matter(scale):
    x = generated(200)
    units = torch.tensor([1.0, scale] * 4, dtype=torch.float64)
    plain, scaled = model().fit(x, tolerance=1e-7), model().fit(x * units, tolerance=1e-7)
    assert torch.allclose(scaled.loadings, plain.loadings * units[:, None], rtol=1e-3, atol=1e-3 * units.min())
    assert scaled.history_[-1] == pytest.approx(plain.history_[-1] - units.log().sum().item(), abs=1e-6)


def test_fewer_points_than_features_and_features_that_repeat():
    few = generated(6)
    assert math.isfinite(model().fit(few).loss(few).item())
    more = model(factors=8).fit(few)
    assert more.loadings[:, 6:].abs().max() == 0  # six points need no more factors
    twice = torch.cat([generated(50), generated(50)], 1)
    ours = model(features=16).fit(twice, noise_floor=1e-4)
    assert math.isfinite(ours.loss(twice).item())
    line = torch.outer(torch.arange(5.0), torch.ones(8))
    with pytest.raises(ValueError, match="x has no variance outside 3 directions: take fewer factors"):
        ProbabilisticPCA(8, 3).fit(line)
    assert ProbabilisticPCA(8, 3).fit(line, noise=0.1).loadings[:, 1:].abs().max() < 1e-5


def test_a_fit_that_does_not_come_to_rest_warns():
    with pytest.warns(UserWarning, match="the fit did not come to rest in 2 steps: raise steps or tolerance"):
        ours = model().fit(generated(), method="em", steps=2)
    assert not ours.converged_
    assert len(ours.history_) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model().fit(generated()).converged_


# --- Torch's ways ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(kind, dtype):
    x = generated()
    wide = model(kind).fit(x)
    low = kind(8, 3, dtype=dtype).fit(x)
    room = {torch.float32: 1e-4, torch.bfloat16: 0.1}[dtype]
    assert low.encode(x.to(dtype)).dtype == low(x.to(dtype)).dtype == low.sample(3).dtype == dtype
    assert low.loss(x.to(dtype)).item() == pytest.approx(wide.loss(x).item(), abs=10 * room)
    assert torch.allclose(low.encode(x.to(dtype)).double(), wide.encode(x), atol=room)


@pytest.mark.parametrize("kind", KINDS)
def test_state_generators_and_single_examples(kind):
    x, ours = generated(), model(kind).fit(generated())
    other = model(kind)
    other.load_state_dict(ours.state_dict())
    assert torch.equal(other.log_prob(x), ours.log_prob(x))
    seeds = [torch.Generator().manual_seed(1) for _ in range(2)]
    assert torch.equal(ours.sample(4, generator=seeds[0]), other.sample(4, generator=seeds[1]))
    assert torch.allclose(ours.encode(x[0]), ours.encode(x)[0])
    assert torch.allclose(ours.log_prob(x[0]), ours.log_prob(x)[0])
    posterior = ours.posterior(x)
    assert torch.allclose(posterior.mean, ours.encode(x))
    assert posterior.covariance.shape == (3, 3)
    assert torch.equal(ours.decode(ours.encode(x)), ours(x))


def test_gradcheck_of_the_density():
    ours = model(features=4, factors=2)
    x = generated(3, 4, 2).requires_grad_()

    def density(x, *parameters):
        return torch.distributions.LowRankMultivariateNormal(
            parameters[0], parameters[1], parameters[2].exp()
        ).log_prob(x)

    assert torch.autograd.gradcheck(lambda x: ours.log_prob(x), (x,))
    gradients = torch.autograd.grad(ours.log_prob(x).sum(), list(ours.parameters()))
    peers = torch.autograd.grad(density(x, *ours.parameters()).sum(), list(ours.parameters()))
    for own, peer in zip(gradients, peers, strict=True):
        assert torch.allclose(own, peer)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    with pytest.raises(ValueError, match="factors must be at most the 3 features, got 5: take fewer"):
        FactorAnalysis(3, 5)
    with pytest.raises(ValueError, match="factors must be below the 3 features, or the noise given"):
        ProbabilisticPCA(3, 3).fit(torch.randn(9, 3))
    with pytest.raises(ValueError, match="x must be finite, found 1 NaN value: remove or impute it"):
        FactorAnalysis(2, 1).fit(torch.tensor([[0.0, math.nan], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="x must hold at least 2 points, got 1"):
        FactorAnalysis(2, 1).fit(torch.randn(1, 2))
    with pytest.raises(ValueError, match="x must have 3 features on its last axis"):
        FactorAnalysis(3, 1).fit(torch.randn(5, 2))
    with pytest.raises(ValueError, match="method must be one of lbfgs, em, got 'adam'"):
        FactorAnalysis(2, 1).fit(torch.randn(5, 2), method="adam")
    with pytest.raises(ValueError, match="noise_floor must be > 0 and < 1, got 0"):
        FactorAnalysis(2, 1).fit(torch.randn(5, 2), noise_floor=0)
    with pytest.raises(ValueError, match="noise must be > 0, got -1"):
        ProbabilisticPCA(2, 1).fit(torch.randn(5, 2), noise=-1)
    with pytest.raises(TypeError, match="x must hold floating-point numbers"):
        FactorAnalysis(2, 1).log_prob(torch.ones(5, 2, dtype=torch.long))


def test_it_is_a_module_among_others():
    network = nn.Sequential(FactorAnalysis(8, 3), nn.Linear(8, 2))
    network(torch.randn(5, 8)).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
