"""Outer variables by validation loss: ridge regression against scikit-learn and a search, and what is refused."""

import pytest
import torch

from lemmata.meta import ridge_solution, solve_bilevel


def noisy_line(n, seed, features=8):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=generator, dtype=torch.float64)
    return x, x[:, 0] + torch.randn(n, generator=generator, dtype=torch.float64)


def test_ridge_is_scikit_learns():
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = noisy_line(20, 0)
    peer = linear.Ridge(alpha=0.3 * 20, fit_intercept=False).fit(x.numpy(), y.numpy())
    found = ridge_solution(x, y, torch.tensor(0.3, dtype=torch.float64).log())
    assert torch.allclose(found, torch.from_numpy(peer.coef_), rtol=1e-8)


def test_its_derivative_is_that_of_finite_differences():
    x, y = noisy_line(12, 1, 3)
    assert torch.autograd.gradcheck(lambda s: ridge_solution(x, y, s), torch.tensor(-1.0).double().requires_grad_())


def test_the_strength_that_is_found_is_that_of_a_search():
    (x, y), (x_val, y_val) = noisy_line(12, 2), noisy_line(400, 3)

    def validation_loss(w):
        return (x_val @ w - y_val).square().mean()

    found = solve_bilevel(lambda s: ridge_solution(x, y, s), validation_loss, torch.tensor(-4.0).double(), 300, 0.1)
    grid = torch.linspace(-6, 4, 401, dtype=torch.float64)
    searched = torch.stack([validation_loss(ridge_solution(x, y, s)) for s in grid])
    assert float(found.outer) == pytest.approx(float(grid[searched.argmin()]), abs=0.05)
    assert found.losses.shape == (301,)
    assert found.losses[-1] <= found.losses[0]
    assert torch.allclose(found.inner, ridge_solution(x, y, found.outer))


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    start = torch.tensor(1.0)
    for choose, said in (
        (lambda: solve_bilevel(torch.sin, torch.square, start, steps=0), "steps must be >= 1, got 0"),
        (lambda: solve_bilevel(torch.sin, torch.square, start, lr=-1.0), "lr must be > 0, got -1"),
        (lambda: solve_bilevel(torch.log, torch.square, -start), "validation_loss became nan at step 1: lower lr"),
        (lambda: ridge_solution(torch.ones(3, 2), torch.ones(4), start), "y must hold a number for each of 3 examples"),
    ):
        with pytest.raises(ValueError, match=said):
            choose()
