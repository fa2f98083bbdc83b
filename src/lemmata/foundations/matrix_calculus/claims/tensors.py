"""Contraction of tensors and the chain rule, against sums written out, differences and autograd."""

import functools
import itertools

import torch
from torch.autograd.functional import jacobian

from lemmata.foundations.matrix_calculus.claims.derivatives import at_every_length, central_differences
from lemmata.judge import claim, close, exactly, lie


def pairs(draw, r, s, t):
    """Whole-number tensors for all numbers of axes up to two before, between and behind, and how many they share."""
    for a, b, c in itertools.product(range(3), repeat=3):
        p, q = draw.integers(-3, 4, *r[:a], *s[:b]).double(), draw.integers(-3, 4, *s[:b], *t[:c]).double()
        yield p, q, b


def written_out(p, q, shared):
    """Every product of entries with the same shared indices, (r..., s..., t...), and the sums over these indices."""
    terms = p.reshape(p.shape + (1,) * (q.ndim - shared)) * q
    for _ in range(shared):
        terms = terms.sum(p.ndim - shared)
    return terms


def contract_last(p, q, shared):
    """The last axes of both are summed over."""
    return torch.tensordot(p, q.movedim(tuple(range(q.ndim - shared, q.ndim)), tuple(range(shared))), shared)


@claim("tensor.multiplication")
@lie("the last axes of the second tensor are summed over", contraction=contract_last)
@lie("every term counts twice", factor=2)
def contraction_sums_over_the_shared_axes(draw, contraction=torch.tensordot, factor=1):
    """torch's tensordot against the sum of all products; whole numbers, so exactly."""

    def sides(r1, r2, s1, s2, t1, t2):
        for p, q, shared in pairs(draw, (r1, r2), (s1, s2), (t1, t2)):
            yield contraction(p, q, shared), factor * written_out(p, q, shared)

    return at_every_length(draw, sides, judge=exactly)


def flatten_transposed(q):
    """The shared axes of the second tensor in reverse order."""
    return q.transpose(0, 1)


@claim("tensor.matrix_isomorphism")
@lie("the shared axes of the second tensor may be flattened in the other order", flatten=flatten_transposed)
@lie("one axis less may be shared", shared=1)
def contraction_is_a_product_of_flattened_matrices(draw, flatten=lambda q: q, shared=2):
    """One matrix product against the sum of all products, for all numbers of axes; whole numbers, so exactly."""

    def sides(r1, r2, s1, s2, t1, t2):
        p, q = draw.integers(-3, 4, r1, s1, s2).double(), draw.integers(-3, 4, s1, s2, t1).double()
        yield p.reshape(r1, s1 * s2) @ flatten(q).reshape(s1 * s2, t1), written_out(p, q, shared)
        for p, q, b in pairs(draw, (r1, r2), (s1, s2), (t1, t2)):
            sums, inner = written_out(p, q, b), q.shape[:b].numel()
            yield (p.reshape(-1, inner) @ q.reshape(inner, -1)).reshape(sums.shape), sums

    return at_every_length(draw, sides, judge=exactly)


def loss_gradient(w, y):
    """The gradient of L = sum of sin(y) with respect to the output, which the chain rule starts from."""
    return y.cos()


def own_gradient(w, y):
    """The gradient with respect to the input itself, in the place of the one with respect to the output."""
    return w.cos()


def swap_outputs(tensor):
    """dy_ji / dW_kl in the place of dy_ij / dW_kl."""
    return tensor.transpose(0, 1)


@claim("tensor.chain_rule")
@lie("the first factor is the derivative with respect to W itself", upstream=own_gradient)
@lie("the indices of y are swapped in the tensor of derivatives", arrange=swap_outputs)
def gradients_contract_with_the_tensor_of_derivatives(draw, upstream=loss_gradient, arrange=lambda jacobian: jacobian):
    """y = tanh(AWB): its tensor entry by entry from differences, contracted, against autograd of the whole loss."""

    def sides(d1, d2, d3, d4):
        w, a, b = draw.normal(d1, d2), draw.normal(d3, d1), draw.normal(d2, d4)

        def y(w):
            return torch.tanh(a @ w @ b)

        tensor = central_differences(y, w)  # (d3, d4, d1, d2)
        formula = torch.tensordot(upstream(w, y(w)), arrange(tensor), dims=2)
        yield formula, jacobian(lambda w: y(w).sin().sum(), w)

    # Differences are off by the square of their step, 4e-11, times third derivatives of some 1,000.
    return at_every_length(draw, sides, judge=functools.partial(close, within=1e-6))
