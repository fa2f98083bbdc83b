"""How long a linear recurrent unit remembers: powers of its eigenvalues, whose modulus alone decides."""

import math

import torch

from lemmata.judge import all_of, always, at_most, claim, close, lie
from lemmata.recurrent.lru import LRU


def by_modulus(nu, phase):
    """Half-life in steps by the modulus alone."""
    return math.log(2) * torch.exp(-nu)


def by_phase(nu, phase):
    """Half-life of what is seen of a turning state after its phase."""
    return math.log(2) * torch.exp(-nu) * torch.cos(phase).abs()


def jacobian(layer, steps):
    """The derivative of the state after some steps by the state before them, complex (hidden, hidden)."""
    columns = []
    for channel in range(layer.hidden):
        start = torch.zeros(1, layer.hidden, dtype=torch.complex128)
        start[0, channel] = 1.0
        _, moved = layer(torch.zeros(1, steps, layer.inputs, dtype=torch.float64), start)
        columns.append(moved[0])  # linear in the state: with no input this is a column
    return torch.stack(columns, -1)


@claim("rnn.lru.memory")
@lie("gradients do not vanish in a linear system with moduli below one", printed="003/1", vanishing=0.0)
@lie("the half-life depends on the phase", half_life=by_phase)
@lie("two half-lives keep a half", lives=2.0)
def the_modulus_is_the_length_of_the_memory(draw, vanishing=1.0, lives=1.0, half_life=by_modulus, unit=LRU):
    """The state's derivative over up to 200 steps, and what is left after a half-life, at moduli from 0.3 to 0.999."""
    layer = unit(inputs=2, hidden=6).double()
    with torch.no_grad():
        moduli = torch.tensor([0.3, 0.7, 0.9, 0.99, 0.999, 0.5], dtype=torch.float64)
        layer.nu.copy_((-moduli.log()).log())
        layer.phase.copy_(draw.uniform(6, low=0.1, high=6.2))
        nu, phase = layer.nu.clone(), layer.phase.clone()
        found = torch.stack([jacobian(layer, steps) for steps in (1, 20, 200)])
        powers = torch.stack([torch.diag(layer.eigenvalues**steps) for steps in (1, 20, 200)])
        wild = unit(inputs=1, hidden=10_000).double()
        wild.nu.copy_(draw.uniform(10_000, low=-30.0, high=3.0))
        inside = wild.eigenvalues.abs() < 1
    left = layer.eigenvalues.detach().abs() ** (lives * half_life(nu, phase))
    rates = torch.exp(-200 * vanishing * nu.exp())
    return all_of(
        close(found, powers, ulps=1e4, scale=1.0),
        close(found[2].diagonal().abs(), rates, within=1e-10),
        close(left, torch.full((6,), 0.5, dtype=torch.float64), ulps=1e4),
        always(inside, detail="no modulus reaches one"),
        at_most(found.abs().amax((1, 2)), 1.0),
    )
