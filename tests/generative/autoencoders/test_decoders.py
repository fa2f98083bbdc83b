"""Output distributions: torch's own agree, nothing breaks near ½ or far out, and grey values are no bits."""

import pytest
import torch
from torch import distributions

from lemmata.generative.autoencoders.decoders import BernoulliOutput, ContinuousBernoulliOutput, GaussianOutput

RAW = torch.cat([torch.tensor([0.0, 1e-9, -1e-6, 1e-3, -0.2499, 0.2501, 0.5, -3.0]), torch.linspace(-60, 60, 41)])
RAW = RAW.double()


@pytest.mark.parametrize("raw", [RAW, RAW.float()])
def test_a_continuous_bernoulli_is_torchs_and_its_moments_are_its_integrals(raw):
    output, x = ContinuousBernoulliOutput(), torch.linspace(0, 1, 4001, dtype=torch.float64)
    density = torch.stack([output.log_prob(x[:, None], one.double().expand(4001, 1)) for one in raw], 1).exp()
    mass, mean = (torch.trapezoid(each, x, dim=0) for each in (density, density * x[:, None]))
    assert torch.allclose(mass, torch.ones_like(mass), rtol=1e-4)
    assert torch.allclose(output(raw).double(), mean, atol=2e-5)
    some = raw[(raw.abs() > 0.5) & (raw.abs() < 10)]  # further out torch clamps its logits
    peer = distributions.ContinuousBernoulli(logits=some.double())
    ours = torch.stack([output.log_prob(torch.full((1,), 0.3).to(one), one[None]) for one in some])
    assert torch.allclose(ours.double(), peer.log_prob(torch.full_like(some.double(), 0.3)), rtol=1e-4, atol=1e-5)


def test_at_one_half_a_continuous_bernoulli_has_smooth_gradients():
    raw = torch.tensor([0.0, 0.2499, 0.2501, -0.2499, -0.2501, 30.0, -800.0, 800.0]).double().requires_grad_()
    output = ContinuousBernoulliOutput()
    found = output.log_prob(torch.full((8,), 0.4).double()[:, None], raw[:, None])
    slope = torch.autograd.grad(found.sum(), raw)[0]
    assert torch.allclose(slope, 0.4 - output(raw), atol=1e-12)  # an exponential family: x less its mean
    assert bool(slope.isfinite().all())
    assert torch.autograd.gradcheck(lambda r: output.log_prob(torch.full((3,), 0.4).double(), r), raw[:3])


def test_samples_have_the_mean_that_the_output_says():
    raw = torch.tensor([-5.0, -0.1, 0.0, 0.3, 4.0]).double()
    generator = torch.Generator().manual_seed(0)
    for output in (BernoulliOutput(), ContinuousBernoulliOutput(), GaussianOutput(0.5)):
        drawn = output.sample(raw.expand(40_000, 5), generator)
        assert torch.allclose(drawn.mean(0), output(raw), atol=0.02)
    again = [GaussianOutput(0.5).sample(raw, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*again)


def test_a_bernoulli_is_torchs_and_extreme_logits_stay_finite():
    x, raw = torch.tensor([0.0, 1.0, 1.0, 0.0]), torch.tensor([-300.0, 300.0, -300.0, 0.7])
    ours = BernoulliOutput().log_prob(x[:, None], raw[:, None])
    assert torch.allclose(ours, distributions.Bernoulli(logits=raw).log_prob(x))
    assert bool(ours.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_values_keep_their_dtype(dtype):
    raw, bits = torch.randn(3, 4).to(dtype), torch.ones(3, 4).to(dtype)
    for output in (BernoulliOutput(), ContinuousBernoulliOutput(), GaussianOutput(0.5)):
        assert output.log_prob(bits, raw).dtype == output(raw).dtype == output.sample(raw).dtype == dtype


def test_a_learnt_variance_comes_to_that_of_the_errors():
    output, away = GaussianOutput(learnt=True, dtype=torch.float64), 0.3 * torch.randn(500, 2, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(output.parameters(), max_iter=50)

    def closure():
        optimizer.zero_grad()
        loss = -output.log_prob(away, torch.zeros_like(away)).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert float(output.variance.detach()) == pytest.approx(float(away.square().mean()), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: GaussianOutput(0.0), "variance must be > 0, got 0.0"),
        (lambda: BernoulliOutput().log_prob(torch.full((2,), 0.5), torch.zeros(2)), "x must hold only 0 and 1"),
        (lambda: BernoulliOutput().log_prob(torch.full((2,), torch.nan), torch.zeros(2)), "x must hold only 0 and 1"),
        (lambda: ContinuousBernoulliOutput().log_prob(torch.tensor([1.5]), torch.zeros(1)), r"x must lie in \[0, 1\]"),
        (lambda: BernoulliOutput()(torch.ones(2, dtype=torch.int64)), "raw must hold floating-point numbers"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
