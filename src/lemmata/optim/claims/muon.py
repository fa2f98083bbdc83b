"""Muon: what its steps are made of, and why an orthogonal matrix is the steepest one."""

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


def _conditioned(draw, rows, columns, smallest=0.1):
    """A matrix with singular values from 1 to `smallest`, and its singular vectors."""
    rank = min(rows, columns)
    values = smallest ** torch.linspace(0, 1, rank).double() if rank > 1 else torch.ones(1).double()
    u, v = draw.orthogonal(rows)[:, :rank], draw.orthogonal(columns)[:, :rank]
    return (u * values) @ v.T, values, u, v


@claim("optim.muon")
@lie("the momentum is forgotten", carry=0.0)
@lie("the shape of the matrix is not counted", power=0.0)
@lie("the ratio itself is the factor", power=1.0)
@lie("divided by the Frobenius norm instead", orthogonalise=frobenius)
@lie("the last power of the polynomial is even", quintic=4.0)
@lie("five steps come within a tenth of P", near=0.1, loose="a wider band holds them too")
@lie("the left singular vectors form an n × m matrix", printed="002/1", left=swapped_left)
def muon_steps_are_orthogonal(
    draw, carry=1.0, power=0.5, quintic=5.0, near=0.32, orthogonalise=inverse_root, left=square_left, optimizer=Muon
):
    """Four steps for five shapes against roots of M'M; Newton-Schulz against its polynomial, and against P."""
    lr, mu, found, formula, shapes, expected = 0.1, 0.9, [], [], [], []
    for rows, columns in SHAPES:
        weight = torch.nn.Parameter(draw.normal(rows, columns))
        muon = optimizer(
            [weight], lr=lr, momentum=mu, weight_decay=0.0, nesterov=False, method="svd", adjust_lr_fn="rms_to_rms"
        )
        start, momentum = weight.detach().clone(), torch.zeros(rows, columns).double()
        total = torch.zeros_like(momentum)
        for _ in range(4):
            weight.grad = gradient = _conditioned(draw, rows, columns)[0]
            momentum = carry * mu * momentum + gradient
            total = total - lr * (rows / columns) ** power * orthogonalise(momentum)
            muon.step()
        found.append((weight.detach() - start).flatten())
        formula.append(total.flatten())
        shapes.append(tuple(torch.linalg.svd(momentum).U.shape))
        expected.append(left(rows, columns))
    matrix, values, u, v = _conditioned(draw, 7, 4, smallest=1e-3)
    a, b, c = QUINTIC
    mapped = values / matrix.norm()
    for _ in range(5):
        mapped = a * mapped + b * mapped**3 + c * mapped**quintic
    small = torch.logspace(-2, -0.1505, 1000).double()  # the other singular value fills up to norm 1
    pairs = draw.orthogonal(2) @ torch.diag_embed(torch.stack([small, (1 - small**2).sqrt()], 1)) @ draw.orthogonal(2)
    return all_of(
        # Eigenvalues of M'M have the square of M's condition; momenta of such matrices stay below a thousand.
        close(torch.cat(found), torch.cat(formula), within=1e-8),
        close(u.T @ newton_schulz(matrix) @ v, torch.diag(mapped), ulps=2**14, scale=1.0),
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
        matrix, sigma, u, v = _conditioned(draw, rows, columns, smallest)
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
