r"""Networks that fold their input on itself, so that the number of linear regions is multiplied by every layer."""

import math

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["folding_network", "sawtooth_network"]


@system("sawtooth", title="Sawtooth network", kind="function")
def sawtooth_network(depth: int, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    r"""The tent map after itself: $2^L$ linear pieces on $[0, 1]$ from $2L$ units.

    $$ t(x) = 2(x)_+ - 4\big(x - \tfrac12\big)_+, \qquad x \mapsto t(t(\dots t(x))) $$

    Shapes:
        x: (batch, 1) in [0, 1]    returns: (batch, 1) in [0, 1]

    Claims: layers.depth_features
    Source: M. Telgarsky, Benefits of depth in neural networks (2016).

    >>> sawtooth_network(depth=2)(torch.tensor([[0.0], [0.25], [0.5], [0.75]], dtype=torch.float64)).flatten()
    tensor([0., 1., 0., 1.], dtype=torch.float64, grad_fn=<ViewBackward0>)
    """
    layers: list[nn.Module] = []
    for _ in range(validate.count("depth", depth)):
        layers += [
            _linear_layer([[1.0], [1.0]], [0.0, -0.5], dtype),
            nn.ReLU(),
            _linear_layer([[2.0, -4.0]], [0.0], dtype),
        ]
    return nn.Sequential(*layers)


@system("folding_network", title="Folding network", kind="function")
def folding_network(inputs: int, width: int, depth: int, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    r"""A network that meets Montufar's bound: it has at least $\lfloor m/n\rfloor^{n(L-1)} R(m)$ regions in the cube.

    $$ g(x_i) = p x_i + 2 \sum_{k=1}^{p-1} (-1)^k (p x_i - k)_+, \qquad p = \lfloor m/n \rfloor $$

    Each layer but the last folds every coordinate of $[0,1]^n$ into $p$ parts that all cover $[0,1]$. Whatever the last
    layer draws in the cube then appears in all $p^{n(L-1)}$ parts; it draws $m$ hyperplanes in general position that
    cross near its middle, which cut the cube into $R(m)$ regions. Units that remain, when $n$ does not divide $m$, are
    constant zero.

    Shapes:
        x: (batch, inputs) in [0, 1]    returns: (batch, 1)

    Claims: relu.montufar, relu.depth_complexity
    Source: G. Montufar, R. Pascanu, K. Cho and Y. Bengio, On the number of linear regions of deep neural networks
        (2014).  Differs: for one and two inputs, which is where regions are counted exactly.

    >>> folding_network(inputs=2, width=4, depth=3)(torch.rand(5, 2, dtype=torch.float64)).shape
    torch.Size([5, 1])
    """
    validate.count("inputs", inputs, most=2)
    validate.count("depth", depth)
    if validate.count("width", width) < inputs:
        raise ValueError(
            f"width must be >= inputs = {inputs}, got {width}: a layer folds each input with its own units"
        )
    folds = width // inputs
    exact = {"dtype": torch.float64, "device": "cpu"}
    fold, thresholds = torch.zeros(width, inputs, **exact), torch.zeros(width, **exact)  # units from coordinates
    join = torch.zeros(inputs, width, **exact)  # folded coordinates from units
    for unit in range(folds * inputs):
        coordinate, k = divmod(unit, folds)
        fold[unit, coordinate], thresholds[unit] = folds, -k
        join[coordinate, unit] = 1.0 if k == 0 else 2.0 * (-1) ** k
    normals, offsets = _crossing_lines(inputs, width)
    layers: list[nn.Module] = []
    read = torch.eye(inputs, **exact)  # how coordinates are read off what is there
    for _ in range(depth - 1):
        layers += [_linear_layer(fold @ read, thresholds, dtype), nn.ReLU()]
        read = join
    alternating = [[(-1.0) ** unit for unit in range(width)]]
    return nn.Sequential(
        *layers, _linear_layer(normals @ read, offsets, dtype), nn.ReLU(), _linear_layer(alternating, [0.0], dtype)
    )


def _crossing_lines(inputs: int, count: int) -> tuple[Tensor, Tensor]:
    """Hyperplanes in general position that cross near the middle of the cube, with coefficients of a few digits."""
    numbers = torch.arange(count, dtype=torch.float64, device="cpu")
    if inputs == 1:
        return torch.ones_like(numbers)[:, None], -((numbers + 1) / (count + 1)).float().double()
    # Tangents of a small deltoid cross near the middle; unequal angles keep any three of them from one point.
    angles = math.pi * (numbers + 0.5 + 0.3 * numbers.square().sin()) / count
    normals = torch.stack([angles.cos(), angles.sin()], dim=1)
    offsets = -normals.sum(1) / 2 + 0.1 * (3 * angles).cos()
    return normals.float().double(), offsets.float().double()


def _linear_layer(weight: Tensor | list[list[float]], bias: Tensor | list[float], dtype: torch.dtype) -> nn.Linear:
    if not dtype.is_floating_point:
        raise TypeError(f"dtype must be floating point, got {dtype}: use torch.float64")
    rows = torch.as_tensor(weight, dtype=dtype)
    layer = nn.Linear(rows.shape[1], rows.shape[0], dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(rows)
        layer.bias.copy_(torch.as_tensor(bias, dtype=dtype))
    return layer
