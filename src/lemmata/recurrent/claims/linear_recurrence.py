"""Linear recurrences with a constant matrix: their states as a convolution, their eigenvectors, their stability."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false

import math

import torch

from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie
from lemmata.recurrent.diagonalisation import diagonalise, impulse_response
from lemmata.recurrent.linear_stability import is_stable, steady_state
from lemmata.recurrent.linear_state_space import convolved_states, evolve, response_kernel


@claim("rnn.linear.state_space")
@lie("the state after t inputs holds the input of step t as well", shift=0)
@lie("the first state leaves no trace", first=0.0)
@lie("the newest input has passed through A once already", power=1)
def states_are_a_convolution_of_the_inputs(draw, shift=1, first=1.0, power=0):
    """The loop against sums of explicit powers of A, against the convolution, and against the kernel on an impulse."""
    A, B = draw.normal(4, 4) / 2, draw.normal(4, 3)
    x, z0 = draw.normal(2, 50, 3), draw.normal(2, 4)
    states = evolve(A, B, x, z0)
    summed = []
    for t in range(50):
        past = [x[:, s] @ (torch.linalg.matrix_power(A, t - shift - s + power) @ B).T for s in range(t - shift + 1)]
        summed.append(first * z0 @ torch.linalg.matrix_power(A, t).T + sum(past))
    kernel = response_kernel(A, B, 7)
    impulse = evolve(A, B, torch.eye(3, dtype=x.dtype)[:, None] * torch.eye(7, dtype=x.dtype)[0][:, None])
    alone = evolve(A, B, x[0])  # from zero, without a batch
    scale = float(states.abs().max())
    return all_of(
        # The sums have 50 terms of growing size: 1e-10 of the largest state.
        close(states[:, :50], torch.stack(summed, 1), within=1e-10 * scale),
        close(convolved_states(A, B, x[0]), alone, within=1e-10 * scale),
        close(convolved_states(A, B, x)[0], alone, within=1e-10 * scale),
        exactly(convolved_states(A, B, x[:, :0]), torch.zeros(2, 1, 4, dtype=x.dtype)),
        close(impulse[:, 1:].permute(1, 2, 0), kernel),
        exactly(evolve(A, B, x[0], z0[0])[0], z0[0]),
    )


@claim("rnn.linear.diagonalisation")
@lie("A = P A P⁻¹", between="the matrix")
@lie("the inputs enter by C = P B", power=1)
@lie("the eigenvalues of a real matrix are real", imaginary=0.0)
@lie("a Jordan block is diagonalisable as well", raises=ValueError, coupling=1.0)
def channels_evolve_independently_in_the_basis_of_eigenvectors(
    draw, between="the eigenvalues", power=-1, imaginary=1.0, coupling=0.0
):
    """Channels carried back to states against the loop; random matrices have such a basis, Jordan blocks none."""
    A, B = draw.until(lambda: (draw.normal(6, 6) / math.sqrt(6), draw.normal(6, 2)), turns)
    x, z0 = draw.normal(3, 40, 2), draw.normal(3, 6)
    found = diagonalise(A, B)
    inverse = torch.linalg.inv(found.basis)
    middle = torch.diag(torch.complex(found.eigenvalues.real, imaginary * found.eigenvalues.imag))
    middle = A.to(inverse.dtype) if between == "the matrix" else middle
    states, entering = evolve(A, B, x, z0), torch.linalg.matrix_power(found.basis, power) @ B.to(inverse.dtype)
    within = 1e-8 * float(states.abs().max())
    pairs = (found.eigenvalues[:, None] - found.eigenvalues.conj()).abs().amin(0)
    double = torch.tensor([[0.9, coupling], [0.0, 0.9]]).double()
    return all_of(
        close((found.basis @ middle @ inverse), A.to(inverse.dtype), within=1e-8),
        close(found.inputs, entering, within=1e-8),
        close(found.states(found.evolve(x, z0)), states.to(inverse.dtype), within=within),
        at_most(pairs, 1e-12),
        at_most(torch.stack([conditioned(draw) for _ in range(300)]), 1e8),
        close(diagonalise(double).condition, 1.0),  # a double eigenvalue alone does no harm
        always([refused(draw, size) for size in (2, 3, 4)]),
    )


def turns(instance):
    """A matrix with eigenvalues well off the real line, so that their imaginary parts matter."""
    return bool(torch.linalg.eigvals(instance[0]).imag.abs().max() > 0.3)


def conditioned(draw):
    """The condition of a random matrix's eigenvectors, which must agree with the eigenvectors themselves."""
    found = diagonalise(draw.normal(6, 6))
    lengths = torch.linalg.svdvals(found.basis)
    return (
        lengths[0] / lengths[-1] if math.isclose(found.condition, lengths[0] / lengths[-1], rel_tol=1e-6) else math.inf
    )


def refused(draw, size):
    """Whether a Jordan block is noticed when it is turned, so that its eigenvalues come with rounding errors."""
    basis = draw.orthogonal(size)
    block = 0.9 * torch.eye(size).double() + torch.diag(torch.ones(size - 1), 1).double()
    try:
        diagonalise(basis @ block @ basis.T)
    except ValueError:
        return True
    return False


def inside_the_circle(eigenvalues):
    return eigenvalues.abs() < 1 - 1e-6  # those on the circle come with rounding errors


def left_of_the_axis(eigenvalues):
    """The condition of continuous time."""
    return eigenvalues.real < 0


@claim("rnn.linear.stability")
@lie(
    "on the unit circle states stay bounded under bounded inputs",
    loose="further inside states stay smaller",
    modulus=1.0,
)
@lie("eigenvalues left of the imaginary axis suffice", inside=left_of_the_axis)
@lie("powers stay bounded on the circle without eigenvectors that span the space", coupling=1.0)
@lie("the modulus is the sum of the two parts", norm=1.0)
def states_stay_bounded_strictly_inside_the_circle(
    draw, modulus=0.99, inside=inside_the_circle, coupling=0.0, norm=2.0
):
    """Verdicts against the sums of norms of 512 powers, whose limit bounds every state; and the limit state."""
    verdicts, decided, radii, seen = [], [], [], []
    for A, eigenvalues in systems(draw):
        verdict, norms = is_stable(A), torch.linalg.matrix_norm(response_kernel(A, torch.eye(len(A)).double(), 512), 2)
        # Inside, the second half adds nothing; on the circle as much as the first, and a block makes its norms grow.
        forgets = bool(norms[256:].sum() < 1e-6 * norms[:256].sum())
        bounded = bool(norms[256:].max() < 1.5 * norms[:256].max())
        verdicts.append((bool(verdict), verdict.states_bounded, verdict.powers_bounded) == (forgets, forgets, bounded))
        decided.append(bool(inside(eigenvalues).all()) == forgets)
        seen.append(verdict.radius)
        radii.append(float(((eigenvalues.real.abs() ** norm + eigenvalues.imag.abs() ** norm) ** (1 / norm)).max()))
    # A constant input, and one that turns in step with the eigenvalue: as large after twice the time.
    growth = []
    for phase in (0.0, 0.7):
        sums = impulse_response(modulus * torch.exp(torch.tensor([1j * phase], dtype=torch.complex128)), 2000).double()
        turned = (sums * torch.cos(phase * torch.arange(2000).double())).cumsum(0).abs()
        growth.append(float(turned[-1] / turned[999]))
    block = torch.tensor([[1.0, coupling], [0.0, 1.0]]).double()
    long = torch.linalg.matrix_norm(torch.linalg.matrix_power(block, 500), 2)
    A, B, x = stable(draw), draw.normal(4, 2), draw.normal(2)
    limit = evolve(A, B, x.expand(3, 400, 2), draw.normal(3, 4))[:, -1]
    return all_of(
        always(verdicts),
        always(decided),
        close(seen, radii, within=1e-6),  # the rounding of a Jordan block
        at_most(growth, 1.01),
        at_most(long, 1.0),
        close(limit, steady_state(A, B, x).expand(3, 4), within=1e-8),
    )


def similar(draw, blocks):
    """A matrix with given diagonal blocks of few binary digits, in a random well-conditioned basis, not rounded."""
    halves = [torch.diag(draw.signs(len(blocks) - 1).double() / 2, side) for side in (-1, 1)]
    basis = (torch.eye(len(blocks)).double() + halves[0]) @ (torch.eye(len(blocks)).double() + halves[1])
    inverse = (torch.linalg.inv(basis) * 1024).round() / 1024  # products of up to ten halves
    return basis @ blocks @ inverse, torch.linalg.eigvals(blocks)


def turning(modulus):
    """Two complex eigenvalues of the given modulus, about a fifth of a turn from the real axis."""
    return torch.tensor([[0.0, -(modulus**2)], [1.0, 0.625 * modulus]]).double()


def stable(draw):
    return similar(draw, torch.block_diag(turning(0.875), torch.diag(torch.tensor([0.5, -0.75]).double())))[0]


def systems(draw):
    """Matrices with spectral radius 7/8, 1 and 9/8, with and without Jordan blocks inside and on the circle."""
    one, block = torch.eye(2).double(), torch.tensor([[1.0, 1.0], [0.0, 1.0]]).double()
    rest = torch.diag(torch.tensor([0.5, -0.25]).double())
    first = [part for r in (0.875, 1.0, 1.125) for part in (r * one, turning(r), -r * one)]
    first += [block, -block, block - one / 8, torch.diag(torch.tensor([1, -1.0]).double())]
    first += [torch.kron(one, turning(1.0)) + torch.kron(block - one, one)]
    hidden = torch.block_diag(0.5 * block, torch.diag(torch.tensor([1.0, -0.25]).double()))  # a block, but not on it
    return [similar(draw, torch.block_diag(part, rest)) for part in first] + [similar(draw, hidden)]
