"""Newton's method: one step on quadratics, its order near a minimum, and what it is blind to."""

import torch

from lemmata.judge import all_of, claim, close, lie, slope_is
from lemmata.optim.newton import Newton
from lemmata.optim.newton_cg import NewtonCG


def _step_path(optimizer, loss, start, steps=1):
    """Where the steps of an optimiser lead: (steps, n)."""
    place = torch.nn.Parameter(start.clone())
    stepper, places = optimizer([place]), []
    for _ in range(steps):
        stepper.step(lambda: loss(place))
        places.append(place.detach().clone())
    return torch.stack(places)


def _signed_quadratic(draw, signs):
    """A quadratic with eigenvalues of these signs, from 0.1 to 10, and its stationary point."""
    values, q = signs * 10.0 ** torch.linspace(-1, 1, len(signs)).double(), draw.orthogonal(len(signs))
    hessian, centre = (q * values) @ q.T, draw.normal(len(signs))
    return (values, q), centre, lambda x: (x - centre) @ hessian @ (x - centre) / 2 + 3.0


def _matrix_power(parts, exponent):
    """A symmetric matrix to a real power; signs of eigenvalues are kept, as the inverse keeps them."""
    values, q = parts
    return (q * (values.sign() * values.abs() ** exponent)) @ q.T


def _ridge_logistic(draw):
    """A smooth strongly convex loss, not quadratic, and its minimiser."""
    x, y = draw.normal(60, 3), draw.signs(60)

    def loss(w):
        return torch.nn.functional.softplus(-y * (x @ w)).mean() + w @ w / 20

    return loss, _step_path(Newton, loss, torch.zeros(3).double(), steps=12)[-1]


@claim("optim.newton")
@lie("the Hessian in place of its inverse", power=1.0)
@lie("the step goes up", sign=1.0)
@lie("the distance shrinks by a constant factor", order=1.0)
@lie("the next step shrinks the distance's cube", order=3.0)
@lie("a change of coordinates is taken back by its transpose", back=torch.transpose)
@lie("saddles repel it", optimizer=NewtonCG)
def newtons_method(draw, sign=-1.0, power=-1.0, order=2.0, back=lambda a, *axes: a.inverse(), optimizer=Newton):
    """Quadratics with a minimum and with saddles; ridge logistic regression from nearer and nearer, and in other
    coordinates."""
    reached, formula, stationary = [], [], []
    for signs in (torch.ones(6), torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), torch.tensor([1.0, -1.0])):
        parts, centre, loss = _signed_quadratic(draw, signs.double())
        start = draw.normal(len(signs)) * 3
        gradient = torch.autograd.functional.jacobian(loss, start)
        reached.append(_step_path(optimizer, loss, start)[0])
        formula.append(start + sign * _matrix_power(parts, power) @ gradient)
        stationary.append(centre)
    loss, minimiser = _ridge_logistic(draw)
    # Along one direction the leading term of the error may be small; along six it is not.
    radii, directions = torch.logspace(-4, -2, 5).double(), draw.unit(6, 3)
    after = [
        torch.stack([_step_path(optimizer, loss, minimiser + r * along)[0] - minimiser for along in directions]).norm()
        for r in radii
    ]
    turn = draw.orthogonal(3) * torch.tensor([0.2, 1.0, 5.0]).double()  # the columns are stretched: not orthogonal
    start = draw.normal(3) / 4
    plain = _step_path(optimizer, loss, start, steps=3)
    other = _step_path(optimizer, lambda v: loss(turn @ v), back(turn, 0, 1) @ start, steps=3)
    size = 100.0  # of the terms that are added up: the gradient divided by the smallest eigenvalue
    return all_of(
        close(torch.cat(reached), torch.cat(stationary), ulps=4096, scale=size),
        close(torch.cat(reached), torch.cat(formula), ulps=4096, scale=size),
        slope_is(radii, after, order, within=0.03),
        close(other @ turn.T, plain, ulps=2**16, scale=1.0),
    )
