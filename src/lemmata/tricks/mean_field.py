r"""What a wide network with random weights does to the size of signals and gradients, layer by layer, without one."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system
from lemmata.tricks.initialization import weight_variance
from lemmata.tricks.signal_propagation import VarianceProfile

__all__ = ["expected_profile"]

# Midpoints from -10 to 10, beyond which lies 1e-23 of the normal law. None is zero, where activations have their kinks:
# both sides have the same weight, and the error is that of the second order, below 1e-6.
NODES, REACH = 8000, 10.0


@system("expected_profile", title="Expected variance through depth", kind="function")
def expected_profile(
    widths: Sequence[int],
    activation: str = "relu",
    scheme: str = "he",
    gain: int | float = 1.0,
    square: int | float = 1.0,
) -> VarianceProfile:
    r"""The mean squares of pre-activations and of their gradients in a wide network of linear layers, foretold.

    $$ q_1 = n_0\sigma_1^2 q_0, \qquad q_{l+1} = n_l\,\sigma_{l+1}^2\,\mathbb E[\phi(\sqrt{q_l}\,z)^2], \qquad
       \tilde q_l = n_{l+1}\,\sigma_{l+1}^2\,\mathbb E[\phi'(\sqrt{q_l}\,z)^2]\,\tilde q_{l+1}, \qquad
       z \sim \mathcal N(0, 1) $$

    Layer $l$ has $n_{l-1}$ inputs and $n_l$ outputs, `widths` are $n_0, \dots, n_L$, and the activation stands between
    layers. The input has the mean square `square`, the gradient at the last output 1. In a network with finite widths
    the pre-activations are not quite normal, and what is measured scatters around this (`variance_profile`).

    Shapes:
        returns: `forward` and `backward` (layers,) in float64

    Source: B. Poole et al., Exponential expressivity in deep neural networks through transient chaos (2016);
        S. Schoenholz, J. Gilmer, S. Ganguli and J. Sohl-Dickstein, Deep information propagation (2017).

    >>> expected_profile([64, 64, 64, 64], "relu", "lecun").forward
    tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64)
    """
    sizes = [validate.count("widths", width) for width in widths]
    if len(sizes) < 2:
        raise ValueError(f"widths must have two entries at least, inputs and outputs, got {list(widths)}")
    validate.positive("gain", gain)
    phi, layers = known_activation(activation), list(pairwise(sizes))
    variances = [weight_variance(scheme, n, m, gain) for n, m in layers]
    nodes = REACH * (torch.arange(1 - NODES, NODES, 2, dtype=torch.float64) / NODES)
    weights = (-nodes.square() / 2).softmax(0)

    def mean_square(values: Float[Tensor, "nodes"]) -> float:
        return float(weights @ values.square())

    forward, passed = [sizes[0] * variances[0] * validate.number("square", square, least=0)], []
    for (n, _), variance in zip(layers[1:], variances[1:], strict=True):
        z = math.sqrt(forward[-1]) * nodes
        forward.append(n * variance * mean_square(phi(z)))
        passed.append(mean_square(phi.derivative(z)))
    backward = [1.0]
    for (_, m), variance, slope in reversed(list(zip(layers[1:], variances[1:], passed, strict=True))):
        backward.append(m * variance * slope * backward[-1])
    names = tuple(map(str, range(len(layers))))
    found = [torch.tensor(values, dtype=torch.float64) for values in (forward, backward[::-1])]
    return VarianceProfile(names, ("Linear",) * len(layers), *found)
