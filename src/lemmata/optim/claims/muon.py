"""Muon: what its steps are made of, and why an orthogonal matrix is the steepest one."""

from typing import Any

import torch

from lemmata.judge import all_of, at_most, claim, close, exactly, lie
from lemmata.optim.muon import QUINTIC, Muon, newton_schulz, polar_factor

SHAPES = ((8, 5), (5, 8), (6, 6), (1, 7), (7, 1))


def inverse_root(matrix):
    """M (M'M)^(-1/2) for tall matrices, (MM')^(-1/2) M for wide ones: the polar factor without singular vectors."""
    if matrix.shape[0] < matrix.shape[1]:
        return inverse_root(matrix.T).T
    values, vectors = torch.linalg.eigh(matrix.T @ matrix)
    return matrix @ (vectors * values.rsqrt()) @ vectors.T


def frobenius(matrix):
    return matrix / matrix.norm()


def square_left(rows, columns):
    return (rows, rows)


def swapped_left(rows, columns):
    return (columns, rows)


def _conditioned_matrix(draw, rows, columns, smallest=0.1):
    """A matrix with singular values from 1 to `smallest`, and its singular vectors."""
    rank = min(rows, columns)
    values = smallest ** torch.linspace(0, 1, rank).double() if rank > 1 else torch.ones(1).double()
    u, v = draw.orthogonal(rows)[:, :rank], draw.orthogonal(columns)[:, :rank]
    return (u * values) @ v.T, values, u, v


def _mapped_values(values, quintic):
    """What five steps of Newton and Schulz make of singular values of a matrix of norm 1."""
    a, b, c = QUINTIC
    for _ in range(5):
        values = a * values + b * values**3 + c * values**quintic
    return values


def _four_steps(draw, make, rows, columns, mu, carry, update, decay=0.0):
    """Where four steps with drawn gradients lead from a drawn matrix: the optimiser's, and those of the formula."""
    weight = torch.nn.Parameter(draw.normal(rows, columns))
    muon, place, momentum = make([weight]), weight.detach().clone(), torch.zeros(rows, columns).double()
    for _ in range(4):
        weight.grad = gradient = _conditioned_matrix(draw, rows, columns)[0]
        momentum = carry * mu * momentum + gradient
        place = (1 - decay) * place - update(momentum, gradient)
        muon.step()
    return weight.detach().flatten(), place.flatten(), momentum


@claim("optim.muon")
@lie("the momentum is forgotten", carry=0.0)
@lie("the shape of the matrix is not counted", power=0.0)
@lie("the ratio itself is the factor", power=1.0)
@lie("divided by the Frobenius norm instead", orthogonalise=frobenius)
@lie("the last power of the polynomial is even", quintic=4.0)
@lie("five steps come within a tenth of P", near=0.1, loose="a wider band holds them too")
@lie("the left singular vectors form an n × m matrix", printed="002/1", left=swapped_left)
@lie("by default the momentum is not Nesterov's", ahead=0.0)
def muon_steps_are_orthogonal(
    draw, carry=1.0, power=0.5, quintic=5.0, near=0.32, ahead=1.0, orthogonalise=inverse_root, left=square_left,
    optimizer=Muon,
):  # fmt: skip
    """Four steps for five shapes against roots of M'M, and by default; Newton-Schulz against its polynomial and P."""
    lr, found, formula, default, nearly, shapes, expected = 0.1, [], [], [], [], [], []
    exact: dict[str, Any] = {"weight_decay": 0.0, "nesterov": False, "method": "svd", "adjust_lr_fn": "rms_to_rms"}
    for rows, columns in SHAPES:
        ratio = rows / columns

        def polar(momentum, gradient, ratio=ratio):
            return lr * ratio**power * orthogonalise(momentum)

        def as_shipped(momentum, gradient, ratio=ratio):
            chosen = ahead * (gradient + 0.95 * momentum) + (1 - ahead) * momentum
            u, sigma, vh = torch.linalg.svd(chosen, full_matrices=False)
            return lr * max(1.0, ratio) ** power * (u * _mapped_values(sigma / sigma.norm(), quintic)) @ vh

        moved = _four_steps(
            draw, lambda p: optimizer(p, lr=lr, momentum=0.9, **exact), rows, columns, 0.9, carry, polar
        )
        plain = _four_steps(draw, lambda p: optimizer(p, lr=lr), rows, columns, 0.95, carry, as_shipped, decay=0.1 * lr)
        for where, points in ((found, moved[0]), (formula, moved[1]), (default, plain[0]), (nearly, plain[1])):
            where.append(points)
        shapes.append(tuple(torch.linalg.svd(moved[2]).U.shape))
        expected.append(left(rows, columns))
    matrix, values, u, v = _conditioned_matrix(draw, 7, 4, smallest=1e-3)
    small = torch.logspace(-2, -0.1505, 1000).double()  # the other singular value fills up to norm 1
    pairs = draw.orthogonal(2) @ torch.diag_embed(torch.stack([small, (1 - small**2).sqrt()], 1)) @ draw.orthogonal(2)
    return all_of(
        # Eigenvalues of M'M have the square of M's condition; momenta of such matrices stay below a thousand.
        close(torch.cat(found), torch.cat(formula), within=1e-8),
        close(torch.cat(default), torch.cat(nearly), within=1e-8),
        close(
            u.T @ newton_schulz(matrix) @ v,
            _mapped_values(values / matrix.norm(), quintic).diag(),
            ulps=2**14,
            scale=1.0,
        ),
        at_most(torch.linalg.matrix_norm(newton_schulz(pairs) - polar_factor(pairs), 2), near),
        exactly(shapes, expected),
    )


def nuclear(values):
    return values.sum()


def euclidean(values):
    return values.norm()


def by_spectral_norm(matrix):
    return matrix / torch.linalg.matrix_norm(matrix, 2)


@claim("optim.muon.polar")
@lie("the value is the Frobenius norm", norm=euclidean)
@lie("M divided by its spectral norm is the maximiser", maximiser=by_spectral_norm)
@lie("weak directions get short steps, as in gradient descent", power=1.0)
def the_polar_factor_is_the_steepest_matrix(draw, power=0.0, norm=nuclear, maximiser=polar_factor):
    """Matrices with flat and steep spectra, against four thousand others of spectral norm one or less."""
    reached, others, largest, lengths, expected = [], [], [], [], []
    for (rows, columns), smallest in zip(SHAPES, (1e-6, 0.5, 1e-3, 1.0, 1.0), strict=True):
        matrix, sigma, u, v = _conditioned_matrix(draw, rows, columns, smallest)
        best, rivals = maximiser(matrix), draw.normal(800, rows, columns)
        rivals = rivals / torch.linalg.matrix_norm(rivals, 2, keepdim=True)  # shorter ones reach less
        rivals[0] = u @ torch.diag(draw.signs(len(sigma))) @ v.T  # extreme points of the ball, with wrong signs
        reached.append((matrix * best).sum())
        others.append((matrix * rivals).sum((1, 2)))
        largest.append(norm(sigma))
        lengths.append(torch.einsum("ri,rc,ci->i", u, best, v))
        expected.append(sigma**power)
    return all_of(
        close(reached, largest, ulps=4096),
        at_most(torch.stack(others), torch.stack(largest)[:, None], ulps=4096),
        # The singular vectors of the smallest value are known up to rounding over that value.
        close(torch.cat(lengths), torch.cat(expected), within=1e-9),
    )
