r"""Networks of infinite width: the Gaussian process that they draw from, and the tangent kernel that trains them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.kernel.activation_kernels import ActivationKernel, activation_kernel
from lemmata.marks import system

__all__ = ["InfiniteKernels", "infinite_kernels", "infinite_ntk", "nngp"]

Function = Callable[[Tensor], Tensor]
PARAMETRISATIONS = ("ntk", "standard")
BAND = 1 << 20  # pairs whose inner products are found at once
TILE = 1 << 14  # of these as many go through all layers together, so few that torch starts no threads for them
NEAR = 1e-3  # from there on the distance of two points has more digits than one minus their cosine


class InfiniteKernels(NamedTuple):
    """Both kernels, and how the means over Gaussians were found."""

    nngp: Float[Tensor, "n1 n2"]
    ntk: Float[Tensor, "n1 n2"]
    how: str


def infinite_kernels(
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 _"] | None = None,
    depth: int = 2,
    activation: str | Function = "relu",
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    parametrisation: str = "ntk",
    widths: int | Sequence[int] | None = None,
) -> InfiniteKernels:
    r"""Both kernels of an infinitely wide network in one pass through its layers.

    Shapes:
        as for `infinite_ntk`

    >>> found = infinite_kernels(torch.eye(2), activation="tanh")
    >>> found.how, found.nngp.diagonal().allclose(found.nngp[0, 0])
    ('polar quadrature with 1792 nodes', True)
    """
    layers = _Layers.of(x1, depth, activation, weight_variance, bias_variance, parametrisation, widths)
    process, tangent = _both_kernels(layers, x1, x2, tangent=True)
    assert tangent is not None
    return InfiniteKernels(process, tangent, layers.kernel.how)


@system("infinite_ntk", title="Tangent kernel of an infinitely wide network", kind="function")
def infinite_ntk(
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 _"] | None = None,
    depth: int = 2,
    activation: str | Function = "relu",
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    parametrisation: str = "ntk",
    widths: int | Sequence[int] | None = None,
) -> Float[Tensor, "n1 n2"]:
    r"""The tangent kernel of a dense network whose layers are infinitely wide: one number for each pair of inputs.

    $$ \Theta^1 = K^1, \qquad \Theta^{l+1} = K^{l+1} + \sigma_w^2\,
       \mathbb E[\phi'(f)\phi'(f')]\,\Theta^l, \qquad f \sim \mathcal{GP}(0, K^l) $$

    with the kernels $K^l$ of `nngp`. `depth` counts linear layers, so 2 is one hidden layer. With
    `parametrisation="ntk"` gradients are taken in standard normals, $w=\sigma_w\varepsilon/\sqrt m$. With `"standard"`
    they are taken in the weights themselves, which makes the kernel grow with the width: it is the leading term for the
    hidden `widths` that are given, and a bias counts only where `bias_variance` is above zero. `infinite_kernels` also
    says whether the means are in closed form or by quadrature (`activation_kernel`).

    Shapes:
        x1: (n1, d)    x2: (n2, d), or None for x1 itself    returns: (n1, n2)

    Claims: ntk.deterministic_limit, ntk.relu_two_layer, ntk.infinite_solution
    Source: A. Jacot, F. Gabriel and C. Hongler 2018; S. Arora et al. 2019.
    Differs: neural-tangents has $\sigma_w^2=1$ by default; here it is 2, with which relu keeps the size of signals.

    >>> infinite_ntk(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
    tensor([[4.0000, 0.6366],
            [0.6366, 4.0000]])
    """
    layers = _Layers.of(x1, depth, activation, weight_variance, bias_variance, parametrisation, widths)
    tangent = _both_kernels(layers, x1, x2, tangent=True)[1]
    assert tangent is not None
    return tangent


@system("nngp", title="Gaussian process of an infinitely wide network", kind="function")
def nngp(
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 _"] | None = None,
    depth: int = 2,
    activation: str | Function = "relu",
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
) -> Float[Tensor, "n1 n2"]:
    r"""The covariance of the outputs of a dense network whose layers are infinitely wide, over its random weights.

    $$ K^1 = \frac{\sigma_w^2}{d}\,x^\top x' + \sigma_b^2, \qquad
       K^{l+1} = \sigma_w^2\,\mathbb E_{f \sim \mathcal{GP}(0, K^l)}[\phi(f(x))\phi(f(x'))] + \sigma_b^2 $$

    `depth` counts linear layers: 1 is the linear kernel, 2 a network with one hidden layer.

    Shapes:
        x1: (n1, d)    x2: (n2, d), or None for x1 itself    returns: (n1, n2)

    Claims: gp.nngp_recursion, gp.neal
    Source: J. Lee et al. 2018; R. Neal 1996 (one hidden layer).

    >>> nngp(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
    tensor([[2.0000, 0.6366],
            [0.6366, 2.0000]])
    """
    layers = _Layers.of(x1, depth, activation, weight_variance, bias_variance, "ntk", None)
    return _both_kernels(layers, x1, x2, tangent=False)[0]


class _Layers(NamedTuple):
    """What all layers have in common, and by how much the gradients of each count."""

    depth: int
    kernel: ActivationKernel
    weight: float
    bias: float
    weight_factors: list[float]
    bias_factor: float

    @classmethod
    def of(
        cls,
        x: Tensor,
        depth: int,
        activation: str | Function,
        weight_variance: float,
        bias_variance: float,
        parametrisation: str,
        widths: int | Sequence[int] | None,
    ) -> "_Layers":
        validate.matrix("x1", x, "n1, d")
        validate.count("depth", depth)
        validate.positive("weight_variance", weight_variance)
        validate.number("bias_variance", bias_variance, least=0)
        validate.one_of("parametrisation", parametrisation, PARAMETRISATIONS)
        kernel = activation_kernel(activation)
        if parametrisation == "ntk":
            if widths is not None:
                raise ValueError(
                    f'widths must be None with parametrisation="ntk", which no width changes, got {widths}'
                )
            return cls(depth, kernel, weight_variance, bias_variance, [1.0] * depth, 1.0)
        hidden = [widths] * (depth - 1) if isinstance(widths, int) else list(widths or [])
        if len(hidden) != depth - 1:
            wanted = f"{depth - 1} hidden widths, one for each layer but the last"
            raise ValueError(f'widths must be {wanted}, with parametrisation="standard", got {widths}')
        fans = [x.shape[1], *(validate.count("widths", width) for width in hidden)]
        # a derivative in w instead of ε = w √m / σ_w is larger by that factor, and its square stands in the kernel
        factors = [fan / weight_variance for fan in fans]
        return cls(depth, kernel, weight_variance, bias_variance, factors, 1 / bias_variance if bias_variance else 0.0)


def _both_kernels(layers: _Layers, x1: Tensor, x2: Tensor | None, tangent: bool) -> tuple[Tensor, Tensor | None]:
    other = x1 if x2 is None else validate.fits("x2", x2, (x2.shape[0], x1.shape[1]), x1, "x1")
    scale = layers.weight / x1.shape[1]
    first, second = (scale * x.square().sum(1) + layers.bias for x in (x1, other))  # (n,)
    if torch.is_grad_enabled() and (x1.requires_grad or other.requires_grad):
        one, two = _layer_variances(layers, first), _layer_variances(layers, second)
        return _through_layers(layers, x1 @ other.mT, x1, other, one, two, tangent)
    ends = _layer_variances(layers, first), _layer_variances(layers, second)
    found = [x1.new_empty(len(x1), len(other)) for _ in range(1 + tangent)]
    for band in _row_slices(0, len(x1), BAND // len(other)):
        begin = band.start if x2 is None else 0  # of a symmetric matrix only what stands on and above the diagonal
        products = x1[band] @ other[begin:].mT
        for rows, columns in _tile_pairs(band, slice(begin, len(other)), x1.device.type):
            one, two = [q[rows] for q in ends[0]], [q[columns] for q in ends[1]]
            piece = products[
                rows.start - band.start : rows.stop - band.start, columns.start - begin : columns.stop - begin
            ]
            parts = _through_layers(layers, piece, x1[rows], other[columns], one, two, tangent)
            for into, part in zip(found, parts, strict=False):
                assert part is not None
                into[rows, columns] = part
                if x2 is None:
                    into[columns, rows] = part.mT
    return found[0], found[1] if tangent else None


def _row_slices(start: int, stop: int, step: int) -> list[slice]:
    step = max(1, step)
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


def _tile_pairs(rows: slice, columns: slice, device: str) -> list[tuple[slice, slice]]:
    """The parts of a band that go through the layers by themselves.

    Each operation on more entries wakes all threads and waits for the last, which costs more than it saves where other
    programs use the cores. A GPU wants as many entries as there are.
    """
    if device != "cpu":
        return [(rows, columns)]
    across = _row_slices(columns.start, columns.stop, min(TILE, 1 << 10))
    height = TILE // (across[0].stop - across[0].start)
    return [(down, along) for down in _row_slices(rows.start, rows.stop, height) for along in across]


def _layer_variances(layers: _Layers, first: Tensor) -> list[Tensor]:
    """The diagonal of the kernel of each layer."""
    found = [first]
    for _ in range(layers.depth - 1):
        found.append(layers.weight * layers.kernel(*[found[-1]] * 3, slopes=False)[0] + layers.bias)
    return found


def _through_layers(
    layers: _Layers,
    products: Tensor,
    x1: Tensor,
    x2: Tensor,
    one: list[Tensor],
    two: list[Tensor],
    tangent: bool,
) -> tuple[Tensor, Tensor | None]:
    """Both kernels of some rows and columns, all layers one after the other."""
    covariance = _first_covariance(layers, products, x1, x2, one[0], two[0])  # (n1, n2)
    summed = layers.weight_factors[0] * (covariance - layers.bias) + layers.bias_factor * layers.bias
    for a, b, factor in zip(one[:-1], two[:-1], layers.weight_factors[1:], strict=True):
        mean, slope = layers.kernel(a[:, None], b[None, :], covariance, slopes=tangent)
        if slope is not None:
            # the layers below are seen through the slopes, this one adds its own weights and biases
            summed = layers.weight * (slope * summed + factor * mean) + layers.bias_factor * layers.bias
        covariance = layers.weight * mean + layers.bias
    return covariance, summed if tangent else None


def _first_covariance(layers: _Layers, products: Tensor, x1: Tensor, x2: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """That of the first layer, by the distance of two points where they are nearly equal or nearly opposite.

    A product that is wrong by its rounding ε gives an angle that is wrong by √ε; the distance of equal points is zero.
    """
    scale = layers.weight / x1.shape[1]
    found = scale * products + layers.bias  # (n1, n2)
    middle = (a[:, None] + b) / 2
    close = (middle - found.abs()).detach() <= NEAR * middle.detach()
    places = close.nonzero()
    if not len(places):
        return found
    values = []
    for rows, columns in (part.unbind(1) for part in places.split(max(1, (1 << 20) // x1.shape[1]))):
        sign = found.detach()[rows, columns].sign()
        apart = scale * (x1.index_select(0, rows) - sign[:, None] * x2.index_select(0, columns)).square().sum(1)
        # opposite points differ by the bias as well, which has one sign
        values.append(sign * (middle[rows, columns] - apart / 2) + layers.bias * (1 - sign))
    return found.index_put(tuple(places.unbind(1)), torch.cat(values))
