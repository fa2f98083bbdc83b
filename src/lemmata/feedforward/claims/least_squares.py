"""Least squares: the loss in both layouts of the data, its gradient and Hessian, and its minimisers."""

import warnings

import torch
from torch.autograd.functional import hessian, jacobian
from torch.nn import functional

from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.judge import all_of, at_least, claim, close, lie


def rows_loss(x, w, y):
    """Half the sum of squares, where the rows of x are the examples."""
    return (x @ w - y).square().sum() / 2


def columns_loss(x, w, y):
    """The same, where its columns are."""
    return (x.T @ w - y).square().sum() / 2


def rows_gradient(x, w, y):
    return x.T @ x @ w - x.T @ y


def columns_gradient(x, w, y):
    return x @ x.T @ w - x @ y


def derivative(loss, x, w, y):
    """The gradient in w, by autograd."""
    return jacobian(lambda w: loss(x, w, y), w)


@claim("regression.linear_model")
@lie("the loss without the factor one half", half=1.0)
@lie("both losses have the same gradient", power=0.0)
def the_loss_is_a_squared_norm(draw, half=0.5, power=1.0, model=LinearRegression):
    """The sum over examples, one by one, against the norms in both layouts; the mean by torch's own loss of the
    model's answers; their gradients, and the common zero of these."""
    points, y, w = draw.normal(7, 3).unbind(), draw.normal(7), draw.normal(3)
    rows, columns = torch.stack(points), torch.stack(points, 1)  # (7, 3), (3, 7)
    learnt = model(bias=False).fit(rows, y)
    best = learnt.weight_

    def total(w):
        return sum((w @ point - value) ** 2 for point, value in zip(points, y, strict=True)) / 2

    def mean(w):
        learnt.load_state_dict({"weight": w, "bias": torch.zeros(())})
        return functional.mse_loss(learnt.predict(rows), y) / 2

    norms = torch.stack([(rows @ w - y).norm(), (columns.T @ w - y).norm()]) ** 2
    zeros = torch.stack([jacobian(loss, best) for loss in (total, mean)])
    return all_of(
        close(half * norms, total(w)),
        close(half * norms / 7, mean(w)),
        close(jacobian(total, w), 7**power * jacobian(mean, w)),
        close(zeros, 0.0, scale=float(rows.square().sum())),
    )


def one_over_s(s):
    return 1 / s


def two(s):
    return 2.0


def gradient_of_the_gradient(x, w, y):
    """The bracket is differentiated once more, which gives the Hessian."""
    return jacobian(lambda w: rows_gradient(x, w, y), w)


@claim("regression.gradient")
@lie("the mean loss has the gradient 2XᵀXw - 2Xᵀy", printed="001/1", mean=two)
@lie("with the examples in columns it is XᵀXw - Xᵀy too", printed="003/2", raises=RuntimeError, columns=rows_gradient)
@lie("XᵀXw - Xᵀy is the gradient of ½|Xᵀw - y|²", printed="004/3", raises=RuntimeError, rows=columns_loss)
@lie("the step is along the gradient of the gradient", printed="004/4", step=gradient_of_the_gradient)
def the_gradient_of_least_squares(
    draw, mean=one_over_s, columns=columns_gradient, rows=rows_loss, step=rows_gradient, model=LinearRegression
):
    """Autograd in both layouts, for the sum and the mean; and one step of gradient descent."""
    x, y, w = draw.normal(7, 3), draw.normal(7), draw.normal(3)
    lr = 0.05
    # A tolerance of 1 ends the descent after its first step.
    descent = model(bias=False, solver="gd", lr=7 * lr, tolerance=1.0).fit(x, y, weight=w)
    return all_of(
        close(derivative(rows, x, w, y), rows_gradient(x, w, y)),
        close(derivative(columns_loss, x.T, w, y), columns(x.T, w, y)),
        close(derivative(lambda *data: rows(*data) / 7, x, w, y), mean(7) * rows_gradient(x, w, y)),
        close(descent.weight_, w - lr * step(x, w, y)),
    )


def rows_solution(x, y):
    return torch.linalg.solve(x.T @ x, x.T @ y)


def columns_solution(x, y):
    return torch.linalg.solve(x @ x.T, x @ y)


@claim("regression.ols")
@lie("for the loss ½|Xᵀw - y|² it is (XᵀX)⁻¹Xᵀy", printed="000/1", raises=RuntimeError, loss=columns_loss)
@lie("with the examples in columns it is (XᵀX)⁻¹Xᵀy too", printed="003/2", raises=RuntimeError, columns=rows_solution)
@lie("the least squares solution is half as long", factor=0.5)
def the_normal_equations_have_the_minimiser(
    draw, loss=rows_loss, columns=columns_solution, factor=1.0, model=LinearRegression
):
    """The normal equations against QR in both layouts, their gradient and residual, and the loss at 200 weights around
    them; well conditioned and not, few examples and many."""
    found, by_columns, wanted, room, forces, higher = ([] for _ in range(6))
    for points, features, stretch in ((30, 5, 1.0), (5, 5, 1.0), (200, 3, 100.0)):
        x, y = draw.normal(points, features), draw.normal(points)
        x[:, 0] *= stretch
        best = factor * rows_solution(x, y)
        learnt = model(bias=False, solver="qr").fit(x, y)
        found, by_columns, wanted = [*found, best], [*by_columns, columns(x.T, y)], [*wanted, learnt.weight_]
        # The normal equations square the condition number.
        room.append(torch.linalg.cond(x) ** 2 * learnt.weight_.norm().expand(features))
        pulls = derivative(loss, x, best, y), x.T @ (y - learnt.predict(x))
        forces.append(torch.cat(pulls) / x.norm() / y.norm() / torch.linalg.cond(x))
        around = best + draw.normal(200, features) / stretch
        higher.append(torch.stack([loss(x, w, y) for w in around]) / loss(x, best, y))
    return all_of(
        close(torch.cat(found), torch.cat(wanted), scale=torch.cat(room)),
        close(torch.cat(by_columns), torch.cat(wanted), scale=torch.cat(room)),
        close(torch.cat(forces), 0.0, scale=1.0),
        at_least(torch.cat(higher[::2]), 1.0),
    )


def ridge_matrix(x):
    """XᵀX, which is as large as there are features."""
    return x.T @ x


def outer_matrix(x):
    """XXᵀ, which is as large as there are examples."""
    return x @ x.T


@claim("regression.pseudoinverse")
@lie("the limit of (XXᵀ + δI)⁻¹Xᵀ", raises=RuntimeError, product=outer_matrix)
@lie("another minimiser is just as short", square=0.0)
@lie("any δ gives the pseudo-inverse", delta=0.1, regime="a small δ gives nearly the limit")
def the_pseudoinverse_solves_with_least_norm(draw, product=ridge_matrix, square=1.0, delta=0.0, model=LinearRegression):
    """X⁺ as the weights for each unit vector: the limit at small δ, Penrose's conditions, and other minimisers. Ranks
    below both sides, more examples than features and fewer."""
    limits, penrose, lengths, sums = ([] for _ in range(4))
    for points, features in ((6, 4), (4, 6)):
        x = draw.orthogonal(points)[:, :2] * torch.tensor([2.0, 1.0]).double() @ draw.orthogonal(features)[:2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that x has rank 2
            inverse = model(bias=False, solver="svd").fit(x, torch.eye(points).double()).weight_
        y, small = draw.normal(points), 1e-7
        near = torch.linalg.solve(product(x) + (small + delta) * torch.eye(features).double(), x.T)
        ridge = model(bias=False, solver="svd", ridge=small / points).fit(x, torch.eye(points).double()).weight_
        limits += [(near - inverse).flatten(), (ridge - inverse).flatten()]
        sides = x @ inverse, inverse @ x
        pairs = (sides[0] @ x, x), (sides[1] @ inverse, inverse), (sides[0], sides[0].T), (sides[1], sides[1].T)
        penrose += [(left - right).flatten() for left, right in pairs]
        null = draw.normal(20, features) @ (torch.eye(features).double() - sides[1])  # (20, features): x maps them to 0
        best = inverse @ y
        lengths.append((best + null).square().sum(1))
        sums.append(best.square().sum() + square * null.square().sum(1))
    return all_of(
        # (s² + δ)⁻¹s differs from 1/s by δ/s³, and the singular values are 2 and 1; solving with δ loses eps / δ.
        close(torch.cat(limits), 0.0, within=2e-7),
        close(torch.cat(penrose), 0.0, scale=1.0),
        close(torch.cat(lengths), torch.cat(sums)),
    )


@claim("regression.hessian")
@lie("the Hessian is 2XᵀX", factor=2.0)
@lie("the Hessian depends on the weights", bend=1.0)
def the_hessian_is_constant(draw, factor=1.0, bend=0.0):
    """Autograd's Hessian at five weights, far from and near to the minimum, for independent and dependent columns."""
    found, predicted, lowest = [], [], []
    for copies in (0, 1):
        x, y = draw.normal(8, 4), draw.normal(8)
        x[:, 4 - copies :] = x[:, :copies]
        for scale in (0.0, 1.0, 1.0, 100.0, 1e4):
            w = scale * draw.normal(4)
            found.append(hessian(lambda w, x=x, y=y: rows_loss(x, w, y) + bend * w.pow(3).sum(), w))
            predicted.append(factor * x.T @ x)
            lowest.append(torch.linalg.eigvalsh(found[-1])[0] / found[-1].norm())
    return all_of(
        close(torch.stack(found), torch.stack(predicted)),
        at_least(torch.stack(lowest) + 1, 1.0),  # beside a norm of 1, rounding may make 0 slightly negative
    )
