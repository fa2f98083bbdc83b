r"""Jacobians of the state: how each state of a recurrent layer depends on the one before it, and their products."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from lemmata.recurrent.layer import RecurrentLayer, State, checked_layer

__all__ = ["jacobian_products", "log_norms", "orthogonality_defect", "state_jacobians"]


def state_jacobians(
    layer: RecurrentLayer, x: Float[Tensor, "batch time inputs"], state: State | None = None
) -> Inexact[Tensor, "batch time state state"]:
    r"""The derivative of every state with respect to the one before it, $J_t = \partial z_t/\partial z_{t-1}$.

    For Elman's network $J_t = \dot\Phi_t U$. A state of several tensors counts as one long vector; the step of a layer
    with complex states must be holomorphic in them. All steps are differentiated at once. Layers with dropout should be
    in evaluation mode.

    Shapes:
        x: (batch, time, inputs)    returns: (batch, time, state, state), rows for the later state

    Claims: rnn.gradient.vanishing, rnn.bptt.state

    >>> from lemmata.recurrent.elman import Elman
    >>> layer = Elman(1, 3, activation="identity")
    >>> torch.allclose(state_jacobians(layer, torch.randn(2, 5, 1))[1, 4], layer.recurrent_weight, atol=1e-6)
    True
    """
    checked_layer("layer", layer)
    if x.ndim != 3 or x.shape[-1] != layer.inputs or 0 in x.shape[:2]:
        raise ValueError(f"x must be (batch, time, {layer.inputs}) with at least 1 step, got shape {tuple(x.shape)}")
    start = state = layer.initial_state(x.shape[0]) if state is None else state
    before = []
    with torch.no_grad():
        for now in x.unbind(1):
            before.append(_state_vector(state))
            _, state = layer.step(now, state)
    points = torch.stack(before, dim=1).flatten(0, 1)
    count, size = points.shape
    # Copy i of all points is for row i of their Jacobians.
    copies, inputs = points.repeat(size, 1).requires_grad_(), x.detach().flatten(0, 1).repeat(size, 1)
    with torch.enable_grad():
        after = _state_vector(layer.step(inputs, _state_of_vector(copies, start))[1])
        chosen = torch.eye(size, dtype=after.dtype, device=after.device).repeat_interleave(count, dim=0)
        (rows,) = torch.autograd.grad((chosen * after).real.sum(), copies)
    # The gradient of the real part of a holomorphic function is its conjugate derivative.
    return rows.conj().resolve_conj().reshape(size, *x.shape[:2], size).movedim(0, 2)


def jacobian_products(
    jacobians: Inexact[Tensor, "*batch time state state"],
) -> Inexact[Tensor, "*batch lags state state"]:
    r"""The derivatives $\partial z_T/\partial z_{T-k} = J_T J_{T-1} \cdots J_{T-k+1}$ for k = 0 to T.

    Later factors stand on the left: the gradient of the last state is a row that meets the latest factor first.

    Shapes:
        jacobians: (..., time, state, state)    returns: (..., time + 1, state, state), the first the identity

    Claims: rnn.bptt.state

    >>> jacobian_products(torch.tensor([[[2.0]], [[3.0]], [[5.0]]])).flatten()
    tensor([ 1.,  5., 15., 30.])
    """
    product = torch.eye(_matrix_size(jacobians), dtype=jacobians.dtype, device=jacobians.device)
    products = [product.expand(*jacobians.shape[:-3], *product.shape)]
    for factor in reversed(jacobians.unbind(-3)):
        products.append(products[-1] @ factor)
    return torch.stack(products, dim=-3)


def log_norms(jacobians: Inexact[Tensor, "*batch time state state"]) -> Float[Tensor, "*batch lags"]:
    r"""The logarithms $\ln\|J_T J_{T-1} \cdots J_{T-k+1}\|_2$ for k = 0 to T, of products of any length, in float64.

    Shapes:
        jacobians: (..., time, state, state)    returns: (..., time + 1)

    Claims: rnn.gradient.vanishing, rnn.gradient.exploding

    >>> log_norms(0.1 * torch.eye(2).double().expand(500, 2, 2))[[0, 1, 500]]  # 0.1^500 is no floating-point number
    tensor([    0.0000,    -2.3026, -1151.2925], dtype=torch.float64)
    """
    jacobians = in_double(jacobians)
    product = torch.eye(_matrix_size(jacobians), dtype=jacobians.dtype, device=jacobians.device)
    product = product.expand(*jacobians.shape[:-3], *product.shape)
    logarithm = product.real.new_zeros(product.shape[:-2])
    products, logarithms = [product], [logarithm]
    for factor in reversed(jacobians.unbind(-3)):
        product = product @ factor
        size = product.abs().amax((-2, -1))
        # Where nothing is left of a product, it stays zero.
        size = torch.where(size > 0, size, 1.0)
        product, logarithm = product / size[..., None, None], logarithm + size.log()
        products.append(product)
        logarithms.append(logarithm)
    return torch.linalg.matrix_norm(torch.stack(products, dim=-3), 2).log() + torch.stack(logarithms, dim=-1)


def orthogonality_defect(jacobians: Float[Tensor, "*batch state state"]) -> Float[Tensor, "*batch"]:
    r"""How far a matrix is from keeping all lengths: $\|J^\top J - I\|_2$, zero if and only if it is orthogonal.

    Claims: rnn.gradient.stability

    >>> orthogonality_defect(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))  # of norm 1, and yet it loses a direction
    tensor(1.)
    """
    identity = torch.eye(_matrix_size(jacobians), dtype=jacobians.dtype, device=jacobians.device)
    return torch.linalg.matrix_norm(jacobians.mT @ jacobians - identity, 2)


def _matrix_size(matrices: Tensor) -> int:
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(f"the matrices must be square, got shape {tuple(matrices.shape)}")
    return matrices.shape[-1]


def in_double(matrices: Tensor) -> Tensor:
    return matrices.to(torch.complex128 if matrices.is_complex() else torch.float64)


def _state_vector(state: State) -> Tensor:
    return torch.cat([part.flatten(1) for part in _state_parts(state)], dim=1)


def _state_parts(state: State) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from _state_parts(part)


def _state_of_vector(joined: Tensor, like: State) -> State:
    """A state of the form of another from one long vector for each member of the batch."""
    if isinstance(like, Tensor):
        return joined.reshape(len(joined), *like.shape[1:])
    sizes = [sum(part[0].numel() for part in _state_parts(state)) for state in like]
    return tuple(_state_of_vector(part, state) for part, state in zip(joined.split(sizes, dim=1), like, strict=True))
