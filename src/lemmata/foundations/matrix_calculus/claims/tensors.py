"""Contraction of tensors and the chain rule, against sums written out and against autograd."""

import itertools

import torch

from lemmata.foundations.matrix_calculus.tensor_chain import (
    contract,
    contract_as_matrices,
    jacobian_tensor,
    tensor_chain_rule,
)
from lemmata.judge import all_of, claim, close, exactly, lie


def pairs(draw):
    """Whole-number tensors for all numbers of axes up to three, the shared axes of different lengths."""
    for a, b, c in itertools.product(range(4), range(4), range(4)):
        r, s, t = ([int(n) for n in draw.integers(1, 4, count)] for count in (a, b, c))
        yield draw.integers(-3, 4, *r, *s).double(), draw.integers(-3, 4, *s, *t).double(), b


def contract_last(p, q, shared):
    """The last axes of both are summed over."""
    return contract(p, q.movedim(tuple(range(q.ndim - shared, q.ndim)), tuple(range(shared))), shared)


@claim("tensor.multiplication")
@lie("the last axes of the second tensor are summed over", contraction=contract_last)
@lie("every term counts twice", factor=2)
def contraction_sums_over_the_shared_axes(draw, contraction=contract, factor=1):
    """Entry by entry in a plain loop over all indices, and against torch's tensordot; whole numbers, so exactly."""
    p, q = draw.integers(-3, 4, 2, 3, 3).double(), draw.integers(-3, 4, 3, 3, 3).double()
    written = torch.zeros(2, 3).double()
    for i, k, first, second in itertools.product(range(2), range(3), range(3), range(3)):
        written[i, k] += factor * p[i, first, second] * q[first, second, k]
    cases = [(contract(p, q, b), torch.tensordot(p, q, dims=b)) for p, q, b in pairs(draw)]
    return all_of(
        exactly(contraction(p, q, 2), written),
        *(exactly(measured, expected) for measured, expected in cases),
    )


def flatten_transposed(q):
    """The shared axes of the second tensor in reverse order."""
    return q.transpose(0, 1)


@claim("tensor.matrix_isomorphism")
@lie("the shared axes of the second tensor may be flattened in the other order", flatten=flatten_transposed)
@lie("one axis less may be shared", shared=1)
def contraction_is_a_product_of_flattened_matrices(draw, flatten=lambda q: q, shared=2):
    """Flattening and one matrix product against einsum, for all numbers of axes; whole numbers, so exactly."""
    p, q = draw.integers(-3, 4, 3, 3, 3).double(), draw.integers(-3, 4, 3, 3, 3).double()
    product = p.reshape(3, 9) @ flatten(q).reshape(9, 3)
    cases = [(contract_as_matrices(p, q, b), contract(p, q, b)) for p, q, b in pairs(draw)]
    return all_of(
        exactly(contract(p, q, shared), product),
        *(exactly(measured, expected) for measured, expected in cases),
    )


def layer(a, b):
    """y = tanh(A W B): every output depends on every input."""
    return lambda w: torch.tanh(a @ w @ b)


def loss_gradient(w, y):
    """The gradient with respect to the output, which the chain rule starts from."""
    return y.cos()


def own_gradient(w, y):
    """The gradient with respect to the input itself, in the place of the one with respect to the output."""
    return w.cos()


def swap_outputs(jacobian):
    """dy_ji / dW_kl in the place of dy_ij / dW_kl."""
    return jacobian.transpose(0, 1)


@claim("tensor.chain_rule")
@lie("the first factor is the derivative with respect to W itself", upstream=own_gradient)
@lie("the indices of y are swapped in the tensor of derivatives", arrange=swap_outputs)
def gradients_contract_with_the_tensor_of_derivatives(draw, upstream=loss_gradient, arrange=lambda jacobian: jacobian):
    """L = sum of sines of y = tanh(A W B): contraction against autograd of the composition, square and not."""
    parts = []
    for (d1, d2, d3, d4), first, second in (
        # All lengths equal: here false forms can be computed, and give something else.
        ((3, 3, 3, 3), upstream, arrange),
        ((2, 5, 3, 4), loss_gradient, lambda jacobian: jacobian),
    ):
        y = layer(draw.normal(d3, d1), draw.normal(d2, d4))
        w = draw.normal(d1, d2).requires_grad_()
        (expected,) = torch.autograd.grad(y(w).sin().sum(), w)
        jacobian = jacobian_tensor(y, w.detach())
        measured = tensor_chain_rule(first(w.detach(), y(w).detach()), second(jacobian))
        step = 1e-6  # central differences are right to step^2, about 1e-12, and rounding/step, about 1e-10
        moved = [layer_difference(y, w.detach(), index, step) for index in range(d1 * d2)]
        parts += [
            close(measured, expected),
            close(jacobian.flatten(2), torch.stack(moved, dim=-1), within=1e-8),
        ]
    return all_of(*parts)


def layer_difference(y, w, index, step):
    """How the output moves with one entry of the input."""
    change = torch.zeros(w.numel()).double()
    change[index] = step
    return (y(w + change.reshape(w.shape)) - y(w - change.reshape(w.shape))) / (2 * step)
