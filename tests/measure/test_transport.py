"""Earth mover's distance: three ways to it, its gradient, plan and critic, and what is refused."""

import pytest
import torch
from scipy import stats

from lemmata.measure import optimal_transport, w1_distance, w1_on_line


def samples(n, m, features=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, features, generator=generator, dtype=dtype)
    return x, 1 + 2 * torch.randn(m, features, generator=generator, dtype=dtype)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 6), (8, 8), (9, 14)])
def test_sorting_assignment_and_program_agree_with_scipy(n, m):
    x, y = samples(n, m, 1)
    theirs = stats.wasserstein_distance(x[:, 0].numpy(), y[:, 0].numpy())
    assert w1_on_line(x[:, 0], y[:, 0]).item() == pytest.approx(theirs, rel=1e-12)
    assert w1_distance(x, y).item() == pytest.approx(theirs, rel=1e-6)
    assert optimal_transport(x, y).distance == pytest.approx(theirs, rel=1e-6)


def test_weights_are_those_of_repeated_points():
    x, y = samples(3, 4)
    weighted = optimal_transport(x, y, torch.tensor([0.5, 0.25, 0.25]))
    assert weighted.distance == pytest.approx(optimal_transport(x[[0, 0, 1, 2]], y).distance, rel=1e-6)
    assert torch.allclose(weighted.plan.sum(1), torch.tensor([0.5, 0.25, 0.25]).double(), atol=1e-6)
    far = 1e6 * torch.ones(2).double()
    assert optimal_transport(x, y, torch.tensor([1.0, 0.0, 0.0])).distance == pytest.approx(
        optimal_transport(x.clone().index_copy(0, torch.tensor([2]), far[None]), y, torch.tensor([1.0, 0, 0])).distance
    )


def test_the_gradient_is_that_of_the_plan():
    x, y = samples(5, 5)
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: w1_distance(x, y), x)
    x, y = samples(3, 4)
    assert torch.autograd.gradcheck(lambda x: w1_distance(x, y), x.requires_grad_())
    assert torch.autograd.gradcheck(w1_on_line, (samples(4, 5, 3)[0].mT.requires_grad_(), samples(4, 5, 3)[1].mT))


def test_float32_and_equal_points_are_fine():
    x, y = samples(6, 6, dtype=torch.float32)
    assert w1_distance(x, y).dtype == torch.float32
    assert w1_distance(x, x.flip(0)) == 0
    assert optimal_transport(x, x).distance == pytest.approx(0, abs=1e-9)
    assert optimal_transport(x[:1], x[:1]).plan.tolist() == [[1.0]]


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    x, y = samples(3, 4)
    with pytest.raises(ValueError, match="p must be probabilities that sum to 1, got a sum of"):
        optimal_transport(x, y, torch.full((3,), 0.5))
    with pytest.raises(ValueError, match="q must have 4 entries, got 3"):
        optimal_transport(x, y, q=torch.full((3,), 1 / 3))
    with pytest.raises(ValueError, match="same number of features"):
        w1_distance(x, y[:, :1])
    with pytest.raises(ValueError, match="x and y must have the same batch"):
        w1_on_line(x, y)
