"""The loss of logistic regression: derivatives as autograd has them, a centre of a few rows, and the steps."""

import pytest
import torch

from lemmata.feedforward import binary_cross_entropy, cross_entropy
from lemmata.feedforward.logistic_loss import LogisticProblem, centred, expansion, newton_step


def problem(classes, bias=True, points=2500, features=3, dtype=torch.float64, ridge=0.3):
    """More examples than are looked at together."""
    generator = torch.Generator().manual_seed(classes)
    x = torch.randn(points, features, generator=generator, dtype=torch.float64) + 1
    y = torch.randint(classes, (points,), generator=generator)
    mean = torch.tensor([0.5, -2.0, 3.0], dtype=torch.float64) * bias
    sizes = torch.ones(features + bias, 1, dtype=torch.float64)
    units = 1 if classes == 2 else classes
    theta = torch.randn(features + bias, units, generator=generator, dtype=torch.float64)
    return LogisticProblem(x.to(dtype), y, mean, bias, units, ridge, None, sizes), theta


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_derivatives_are_those_of_autograd(classes, bias, dtype):
    data, theta = problem(classes, bias, dtype=dtype)
    inputs, units = theta.shape

    def loss(flat):
        theta = flat.reshape(units, inputs).T
        z = data.rows(data.x) @ theta
        fit = binary_cross_entropy(z[:, 0], data.y) if units == 1 else cross_entropy(z, data.y)
        return fit + 0.15 * theta[:3].square().sum()

    flat = theta.T.reshape(-1)
    value, gradient, hessian, right = expansion(data, theta)
    assert value == pytest.approx(loss(flat).item(), rel=1e-12)
    torch.testing.assert_close(gradient.T.reshape(-1), torch.func.grad(loss)(flat), rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(hessian, torch.func.hessian(loss)(flat), rtol=1e-11, atol=1e-13)
    assert not right
    plain = expansion(data, theta, curved=False)
    assert plain[0] == pytest.approx(value, rel=1e-13)
    torch.testing.assert_close(plain[1], gradient, rtol=1e-12, atol=1e-14)
    assert plain[2].shape == (0, 0)


@pytest.mark.parametrize("classes", [2, 3])
def test_every_example_must_be_on_its_side(classes):
    data, theta = problem(classes, points=2200)
    z = data.rows(data.x) @ theta
    answers = (z[:, 0] > 0).long() if classes == 2 else z.argmax(1)
    right = data._replace(y=answers)
    for curved in (True, False):
        assert expansion(right, theta, curved)[3]
        for wrong in (0, 1500, 2199):  # in the first, a middle, and the last block
            flipped = answers.clone()
            flipped[wrong] = (flipped[wrong] + 1) % classes
            assert not expansion(right._replace(y=flipped), theta, curved)[3]
        assert not expansion(right, theta * 0, curved)[3]  # what stands on the border is on no side


def test_the_centre_of_a_few_rows_will_do():
    x = torch.randn(5000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2 + 5
    kept, mean, off, sizes = centred(x, bias=True)
    assert kept is x
    torch.testing.assert_close(mean, x[::4].mean(0), rtol=1e-12, atol=0)
    assert torch.equal(mean, off)
    torch.testing.assert_close(sizes[:, 0], torch.cat([x[::4].std(0, correction=0), x.new_ones(1)]), rtol=1e-9, atol=0)
    kept, mean, off, sizes = centred(x, bias=False)
    assert kept is x
    assert not mean.any()
    assert not off.any()
    torch.testing.assert_close(sizes[:, 0], x[::4].square().mean(0).sqrt(), rtol=1e-12, atol=0)


def test_a_copy_is_made_only_of_what_lies_far_off():
    x = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for far in (500.0, 2000.0):  # a thousand spreads are allowed
        moved = x + torch.tensor([0.0, far], dtype=torch.float64)
        kept, mean, off, sizes = centred(moved, bias=True)
        assert (kept is moved) == (far < 1000)
        torch.testing.assert_close(mean, moved.mean(0), rtol=1e-12, atol=0)
        if far > 1000:
            assert not off.any()
            torch.testing.assert_close(kept, moved - mean, rtol=0, atol=0)
        torch.testing.assert_close(sizes[:2, 0], x.std(0, correction=0), rtol=1e-9, atol=0)
    constant = torch.cat([x, torch.full((200, 1), 0.1, dtype=torch.float64)], 1)
    kept, _, _, sizes = centred(constant, bias=True)
    assert kept is constant
    assert sizes[2] == 1


def test_a_column_that_varies_only_in_rows_left_out_has_its_own_size():
    x = torch.randn(3000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[:, 1] = 0
    x[1::2, 1] = 1.0  # the centre is taken of the others
    sizes = centred(x, bias=True)[3]
    assert sizes[1].item() == pytest.approx(0.5**0.5)
    assert sizes[0].item() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("units", [1, 3])
def test_pairs_correct_the_hessian_as_bfgs_does(units):
    generator = torch.Generator().manual_seed(units)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    size = 4 * units
    root, true_root = normal(size, size), normal(size, size)
    hessian, true = root @ root.T + torch.eye(size).double(), true_root @ true_root.T + torch.eye(size).double()
    gradient, inverse, pairs = normal(4, units), torch.linalg.inv(hessian), []
    if units > 1:  # the direction that changes no probability is given a curvature
        inverse = _inverse_by_columns(hessian, units)
    for _ in range(3):
        move = normal(size)
        change = true @ move
        pairs.append((move.reshape(units, 4).T, change.reshape(units, 4).T))
        share = 1 / (move @ change)
        off = torch.eye(size).double() - share * torch.outer(move, change)
        inverse = off @ inverse @ off.T + share * torch.outer(move, move)  # Nocedal and Wright, (6.17)
    wanted = (inverse @ gradient.T.reshape(-1)).reshape(units, 4).T
    torch.testing.assert_close(newton_step(hessian, gradient, pairs), wanted, rtol=1e-9, atol=1e-11)


def _inverse_by_columns(hessian, units):
    columns = []
    for unit in torch.eye(len(hessian)).double():
        columns.append(newton_step(hessian, unit.reshape(units, -1).T, []).T.reshape(-1))
    return torch.stack(columns, 1)


def test_a_singular_hessian_gives_the_shortest_step():
    hessian = torch.ones(2, 2, dtype=torch.float64)
    step = newton_step(hessian, torch.ones(2, 1, dtype=torch.float64), [])
    torch.testing.assert_close(step, torch.full((2, 1), 0.5, dtype=torch.float64), rtol=1e-12, atol=0)


def test_a_nearly_singular_hessian_gives_a_short_step_too():
    hessian = torch.tensor([[1.0, 1.0], [1.0, 1 + 4e-15]], dtype=torch.float64)  # has a Cholesky factor
    step = newton_step(hessian, torch.tensor([[1.0], [1 + 1e-9]], dtype=torch.float64), [])
    torch.testing.assert_close(step, torch.full((2, 1), 0.5, dtype=torch.float64), rtol=1e-8, atol=0)


def test_a_step_of_many_classes_moves_none_of_what_changes_no_probability():
    data, theta = problem(3, ridge=0.0)
    _, gradient, hessian, _ = expansion(data, theta)
    step = newton_step(hessian, gradient, [])
    assert step.sum(1).abs().max() < 1e-10 * step.abs().max()
    torch.testing.assert_close((hessian @ step.T.reshape(-1)).reshape(3, -1).T, gradient, rtol=1e-8, atol=1e-11)


def test_the_start_has_a_row_for_the_bias_and_a_column_for_each_unit():
    for bias in (True, False):
        data, theta = problem(3, bias)
        assert torch.equal(data.start(), torch.zeros_like(theta))
