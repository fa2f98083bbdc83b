"""Scores and Langevin samples: second derivatives, images, generators, and what is refused."""

import pytest
import torch

from lemmata.bayes import UnadjustedLangevin
from lemmata.generative.diffusion import langevin_samples, score_of


def test_a_score_has_gradients_where_they_are_wanted():
    scale = torch.tensor(2.0, requires_grad=True)
    score = score_of(lambda x: -scale * x.square().flatten(1).sum(1))
    x = torch.ones(3, 2, 2)
    score(x).sum().backward()
    assert float(scale.grad) == pytest.approx(-24.0)
    with torch.no_grad():
        assert not score(x).requires_grad
    second = torch.autograd.functional.jacobian(lambda row: score(row[None])[0], torch.ones(2, 1))
    assert torch.allclose(second.view(2, 2), -4 * torch.eye(2))


def test_samples_are_those_of_the_kernel_whatever_their_shape():
    start = torch.zeros(50, 2, 3)
    found = langevin_samples(lambda x: -x, start, 0.1, 7, generator=torch.Generator().manual_seed(0))
    kernel, generator = UnadjustedLangevin(score=lambda x: -x, step=0.1), torch.Generator().manual_seed(0)
    state = kernel.init(start.flatten(1))
    for _ in range(7):
        state, _ = kernel.step(state, generator)
    assert torch.equal(found, state.position.view(50, 2, 3))
    assert not start.any()


def test_without_a_generator_the_global_stream_decides():
    torch.manual_seed(3)
    first = langevin_samples(torch.neg, torch.zeros(4, 1), 0.1, 3)
    torch.manual_seed(3)
    assert torch.equal(first, langevin_samples(torch.neg, torch.zeros(4, 1), 0.1, 3))
    assert not torch.equal(first, langevin_samples(torch.neg, torch.zeros(4, 1), 0.1, 3))


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="log_density must return one number an example"):
        score_of(lambda x: x)(torch.zeros(3, 2))
    with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
        langevin_samples(torch.neg, torch.zeros(4, 1), 0.1, 0)
    with pytest.raises(ValueError, match="step must be > 0, got 0"):
        langevin_samples(torch.neg, torch.zeros(4, 1), 0, 3)
    with pytest.raises(ValueError, match="start must be floating-point numbers"):
        langevin_samples(torch.neg, torch.zeros(4), 0.1, 3)
