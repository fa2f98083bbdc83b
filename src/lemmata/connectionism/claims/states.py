"""States of binary units, which the claims about associative memories enumerate and disturb."""

import torch


def all_states(units):
    """Every vector of signs, one a row, in the order in which the first unit changes fastest."""
    return (torch.arange(2**units)[:, None] >> torch.arange(units) & 1).double() * 2 - 1


def with_unit(states, unit, value):
    """The states with one unit set."""
    changed = states.clone()
    changed[:, unit] = value
    return changed


def with_flips(draw, states, flips):
    """Each state with that many of its signs turned, at random places."""
    return torch.where(draw.uniform(*states.shape).argsort(1) < flips, -states, states)
