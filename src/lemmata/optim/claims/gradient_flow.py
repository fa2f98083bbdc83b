"""Gradient flow: the equation, gradient descent as its Euler steps, and the energy that is lost."""

import torch

from lemmata.foundations.analysis.claims.functions import spectrum
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, claim, close, lie, slope_is
from lemmata.optim.claims.smooth_functions import slopes
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path, flow_path


def steps_of_a_tenth(f, start, times, tolerance=None):
    """Numerical integration in the place of the flow: where Euler's steps of a tenth are at these times."""
    path = descent_path(f, start, 20, lambda parameters: GradientDescent(parameters, lr=0.1))
    return path[[round(10 * time) for time in times]]


@claim("optim.gradient_flow")
@lie("the flow is the numerical integration", printed="002/1", flow=steps_of_a_tenth)
@lie("the error of descent is of second order", order=2.0)
@lie("the loss falls by the norm of the gradient", power=1.0)
def descent_follows_the_flow_in_steps(draw, flow=flow_path, order=1.0, power=2.0, optimizer=GradientDescent):
    """The flow of a quadratic in closed form; descent's distance from the flow of two functions; the loss in time."""
    matrix = spectrum(draw, 0.3, 1.0, 2.5)
    # From one start alone the error of first order may cancel along the way; over twenty it cannot.
    quadratic, start = QuadraticFunction(matrix), draw.normal(20, 3)
    times = (0.0, 0.5, 1.0, 2.0)
    exact = torch.stack([start @ torch.linalg.matrix_exp(-matrix * time) for time in times])
    mixing = draw.orthogonal(4)[:, :3]  # so that no seed bends the function more than another

    def bent(x):
        return torch.tanh(x @ mixing.T - 1).sum(-1)

    parts = []
    for f in (quadratic, bent):
        (end,) = flow_path(f, start, [0.5], tolerance=1e-12)
        counts = [64, 128, 256]
        ends = [descent_path(f, start, n, lambda p, n=n: optimizer(p, lr=0.5 / n))[-1] for n in counts]
        errors = [float((found - end).norm()) for found in ends]
        parts.append(slope_is([0.5 / n for n in counts], errors, order, within=0.014))
    near = 1e-3
    before, middle, after = flow_path(bent, start, [0.3 - near, 0.3, 0.3 + near], tolerance=1e-12)
    fall = (bent(after) - bent(before)) / (2 * near)
    return all_of(
        close(flow(quadratic, start, times, tolerance=1e-10), exact, within=1e-7),
        *parts,
        # The central difference errs by its step squared, times a sixth of a third derivative in time of some 10.
        close(fall, -(slopes(bent, middle).norm(dim=-1) ** power), within=1e-5),
    )
