"""Leaky ReLU: three ways to write it, its inverse and its slopes."""

import torch
from torch.nn import functional

from lemmata.foundations.activations import activation
from lemmata.judge import all_of, always, claim, close, lie

SHIPPED = 0.01  # the slope of the table's leaky ReLU, which is torch's default


@claim("activation.leaky_relu")
@lie("slopes above one fit the maximum, too", loose="smaller slopes fit it as well", largest=2.0)
@lie("the negative part is added", sign=1.0)
@lie("the inverse is the larger of z and z/a", inverse=torch.maximum)
def a_kink_between_the_identity_and_relu(draw, largest=1.0, sign=-1.0, inverse=torch.minimum, name="leaky_relu"):
    """Random slopes, 0 and 1 among them, against torch's function; the shipped one with value, inverse and slope."""
    z = torch.cat([draw.normal(400) * 10.0 ** draw.uniform(400, low=-6, high=6), torch.zeros(1, dtype=torch.float64)])
    found, written = [], []
    for a in (0.0, SHIPPED, 0.2, 1.0, *draw.uniform(20, low=0.05, high=largest).tolist(), largest):
        reference = torch.where(z > 0, z, a * z)
        found += [functional.leaky_relu(z, a)] * 3
        written += [
            torch.maximum(z, a * z),
            (1 + a) / 2 * z + (1 - a) / 2 * z.abs(),
            torch.relu(z) + sign * a * torch.relu(-z),
        ]
        found.append(reference)
        written.append(torch.maximum(z, a * z))
    shipped, away = activation(name), z[:-1]
    return all_of(
        close(torch.stack(found), torch.stack(written), scale=z.abs()),
        close(shipped(z), torch.maximum(z, SHIPPED * z), scale=z.abs()),
        close(inverse(shipped(z), shipped(z) / SHIPPED), z, scale=z.abs() / SHIPPED),
        close(shipped.invert(shipped(z)), z, scale=z.abs()),
        close(shipped.derivative(away), (away > 0).double() + SHIPPED * (away < 0).double()),
        always(shipped.derivative(away) > 0, detail="no unit is without a gradient"),
    )
