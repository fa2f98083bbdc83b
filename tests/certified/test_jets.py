"""Jets: values, gradients and Hessians enclosed by intervals, for every step that they know."""

import pytest
import torch
from torch import nn

from lemmata.certified.interval_curvature import enclosed
from lemmata.foundations import Box
from lemmata.foundations.analysis.function_values import batch_gradients, batch_hessians, batch_values

DOUBLE = torch.float64


def steps_intervals_know():
    """Functions of three variables, which between them take every step that intervals know."""
    generator = torch.Generator().manual_seed(2)
    matrix, shift = torch.randn(4, 3, generator=generator).double(), torch.randn(4, generator=generator).double()
    along, one = torch.tensor([0.5, 0.7, 0.9], dtype=DOUBLE), torch.ones(3, dtype=DOUBLE)
    functional = nn.functional
    return [
        lambda t: (torch.exp(-0.3 * t.square()) * torch.tanh(matrix @ t)[:3]).sum(),
        lambda t: (one - t).sum() ** 3 + (3 + t[0]) ** -2.0 + (t[1] + 0.1) ** 0 * t[2] ** 1 - t[0] * (t[1] * t[1]),
        lambda t: 0.1 / (2 + torch.cos(2 * t)).sum() - torch.sin(t).mean() * 0.5 + sum(t**5),
        lambda t: torch.log(1.5 + t.square()).sum() / 2.5 + (1 + t @ t).sqrt() + (t @ along + 5) ** 0.5,
        lambda t: (torch.sigmoid(3 * t) / (2 + torch.tanh(t))).sum(),
        lambda t: functional.softplus(functional.linear(t, matrix, bias=shift)).reshape(-1).sum() * t[0],
        lambda t: functional.softplus(functional.linear(t, matrix)).sum() / (t[1:] @ along[1:] + 9).reshape(-1).sum(),
        lambda t: torch.logsumexp(t @ matrix.T + 900 * torch.tensor([1.0, -1.0, 1.0, 1.0]), dim=0),
        lambda t: torch.add(t, 1.0)[1] * t.sum() - (along / (4 + t)).sum(),
    ]


@pytest.mark.parametrize("f", steps_intervals_know())
def test_derivatives_are_enclosed_at_a_point_and_over_a_box(f):
    x = torch.tensor([0.3, -0.4, 0.1], dtype=DOUBLE)
    points = torch.cat([x[None], Box(x - 0.1, x + 0.1).corners()])
    for at_point, over_box, of in zip(
        enclosed(f, x, x).parts,
        enclosed(f, x - 0.1, x + 0.1).parts,
        (batch_values, batch_gradients, batch_hessians),
        strict=True,
    ):
        values = of(f, points)
        size = float(values[0].abs().max()) + 1
        for end in (at_point.low, at_point.high):
            torch.testing.assert_close(end.reshape(values[0].shape), values[0], rtol=0, atol=1e-9 * size)
        low, high = over_box.low.reshape(values[0].shape), over_box.high.reshape(values[0].shape)
        assert ((low <= values) & (values <= high)).all()
        assert (high - low).max() <= 100 * size
