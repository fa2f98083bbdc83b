"""When early stopping fits signal before noise: where the signal lies in the directions of large eigenvalues."""

import torch

from lemmata.judge import all_of, at_least, claim, close, lie
from lemmata.tricks.early_stopping import descent_shrinkage

TIMES = torch.logspace(0, 4, 30, dtype=torch.float64).tolist()


def descended(x, y, lr, steps):
    """What gradient descent from 0 predicts for y after each number of steps."""
    w, found = torch.zeros(x.shape[1], y.shape[1], dtype=torch.float64), []
    for step in range(max(steps) + 1):
        if step in steps:
            found.append(x @ w)
        w = w - lr * x.mT @ (x @ w - y)
    return torch.stack(found)  # (steps, points, columns)


@claim("reg.early_stopping.signal_first")
@lie(
    "signal comes first whatever it is: it may lie in the directions of small eigenvalues",
    regime="every alignment above zero satisfies the inequality",
    loose="a stronger alignment does, too",
    alignment=-2.0,
)
@lie("a mode is fitted by the fraction 1 - (1 - λ)^t, whatever the step", scale=2.0)
def an_aligned_signal_is_fitted_before_white_noise(draw, alignment=2.0, scale=1.0, shrinkage=descent_shrinkage):
    """Random spectra at thirty times, against Chebyshev's sum inequality; descent itself, mode by mode."""
    signal, noise = [], []
    for _ in range(20):
        values = draw.uniform(50, low=-5.0, high=0.0).exp()
        energy = values**alignment
        for time in TIMES:
            fitted = shrinkage(values, lr=0.5, steps=time).square()
            signal.append((energy * fitted).sum() / energy.sum())
            noise.append(fitted.mean())
    # Descent on data with a drawn spectrum: what it has fitted of each left singular direction.
    left, right = draw.orthogonal(8), draw.orthogonal(8)
    values = draw.uniform(8, low=-3.0, high=0.0).exp()
    x, steps = left * values.sqrt() @ right.mT, (0, 1, 7, 60)
    found = torch.stack([(left * (fit @ left)).sum(0) for fit in descended(x, torch.eye(8).double(), 0.5, steps)])
    expected = torch.stack([shrinkage(values, lr=scale * 0.5, steps=step) for step in steps])
    return all_of(
        at_least(torch.stack(signal), torch.stack(noise)),
        close(found, expected, within=1e-12),
    )
