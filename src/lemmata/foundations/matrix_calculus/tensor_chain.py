r"""Contraction of tensors over shared axes, and the chain rule that it carries."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["contract", "contract_as_matrices", "jacobian_tensor", "tensor_chain_rule"]


@system("contraction", title="Tensor contraction", kind="function")
def contract(p: Float[Tensor, "..."], q: Float[Tensor, "..."], shared: int) -> Float[Tensor, "..."]:
    r"""Multiply two tensors over the last axes of the first and the first axes of the second, by einsum.

    $$ (P \times_b Q)_{i_1..i_a\,k_1..k_c} = \sum_{j_1..j_b} P_{i_1..i_a\,j_1..j_b}\,Q_{j_1..j_b\,k_1..k_c} $$

    Shapes:
        p: (r1, ..., ra, s1, ..., sb), q: (s1, ..., sb, t1, ..., tc), b = `shared`
        returns: (r1, ..., ra, t1, ..., tc)

    Claims: tensor.multiplication, tensor.matrix_isomorphism, tensor.chain_rule
    Differs: torch.tensordot(p, q, dims=b) lets an axis of length 1 stand for any other; here the axes must agree.

    >>> contract(torch.ones(2, 3, 4), torch.ones(3, 4, 5), shared=2).shape
    torch.Size([2, 5])
    """
    _fit(p, q, shared)
    kept = p.ndim - shared
    return torch.einsum(
        p, list(range(p.ndim)), q, list(range(kept, kept + q.ndim)), [*range(kept), *range(p.ndim, kept + q.ndim)]
    )


def contract_as_matrices(p: Float[Tensor, "..."], q: Float[Tensor, "..."], shared: int) -> Float[Tensor, "..."]:
    r"""The same contraction as one matrix product, after each group of axes is flattened into one index.

    $$ P \times_b Q \;\cong\; \hat P \hat Q, \qquad \hat P \in \mathbb R^{\prod r \times \prod s},\
       \hat Q \in \mathbb R^{\prod s \times \prod t} $$

    Both tensors must flatten the shared axes in the same order.

    Shapes:
        as for `contract`

    Claims: tensor.matrix_isomorphism

    >>> p, q = torch.arange(6.0).reshape(1, 2, 3), torch.arange(6.0).reshape(2, 3)
    >>> contract_as_matrices(p, q, shared=2), contract(p, q, shared=2)
    (tensor([55.]), tensor([55.]))
    """
    _fit(p, q, shared)
    rows, columns = p.shape[: p.ndim - shared], q.shape[shared:]
    inner = math.prod(q.shape[:shared])
    return (p.reshape(-1, inner) @ q.reshape(inner, -1)).reshape((*rows, *columns))


def jacobian_tensor(function: Callable[[Tensor], Tensor], at: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""All partial derivatives of a tensor with respect to a tensor: the axes of the output, then those of the input.

    $$ T_{ij\,kl} = \frac{\partial y_{ij}}{\partial W_{kl}} $$

    Shapes:
        function: from the shape of `at` to any shape    returns: (output axes ..., input axes ...)

    Claims: tensor.chain_rule

    >>> jacobian_tensor(lambda w: w.mT, torch.ones(2, 3)).shape
    torch.Size([3, 2, 2, 3])
    """
    validate.floating("at", at)
    # torch.func.jacrev does the same, but its first call imports the compiler, for seconds.
    jacobian = torch.autograd.functional.jacobian(function, at, create_graph=at.requires_grad)
    if not isinstance(jacobian, Tensor):
        raise TypeError("function must return one tensor, got several")
    return jacobian


@system("tensor_chain_rule", title="Chain rule for tensors", kind="function")
def tensor_chain_rule(upstream: Float[Tensor, "..."], jacobian: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The gradient of a loss with respect to the input of a layer, from that with respect to its output.

    $$ \frac{\partial L}{\partial W} = \frac{\partial L}{\partial y} \times_2 T, \qquad
       \frac{\partial L}{\partial W_{kl}} = \sum_{ij} \frac{\partial L}{\partial y_{ij}}
       \frac{\partial y_{ij}}{\partial W_{kl}} $$

    It contracts all axes of the output, however many there are.

    Shapes:
        upstream: the shape of the output $y$, jacobian: (output axes ..., input axes ...)
        returns: the shape of the input $W$

    Claims: tensor.chain_rule

    >>> w = torch.tensor([[1.0, 2.0]])
    >>> tensor_chain_rule(torch.tensor([[1.0, 1.0]]), jacobian_tensor(torch.square, w))  # L = sum of squares
    tensor([[2., 4.]])
    """
    return contract(upstream, jacobian, shared=validate.floating("upstream", upstream).ndim)


def _fit(p: Tensor, q: Tensor, shared: int) -> None:
    validate.floating("p", p)
    validate.floating("q", q)
    validate.count("shared", shared, least=0, most=min(p.ndim, q.ndim))
    if p.dtype != q.dtype:
        raise TypeError(f"q must have the dtype of p, got {q.dtype}: use q.to({p.dtype})")
    last, first = tuple(p.shape[p.ndim - shared :]), tuple(q.shape[:shared])
    if last != first:
        raise ValueError(f"the last axes of p must be the first of q, got {last} and {first}")
