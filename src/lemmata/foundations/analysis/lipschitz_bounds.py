r"""Lipschitz constants: certified for networks by products of spectral norms, measured for anything else."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.analysis.function_values import Function, batch_jacobians
from lemmata.foundations.analysis.measurements import Measured
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system
from lemmata.measure.spectral import certified_spectral_norm

__all__ = ["difference_quotient", "lipschitz"]

# The layers whose constant is known: the activation of the table that each of torch's modules computes. Softplus is
# none of them: torch's own goes over to a straight line at its threshold, with a jump that no constant bounds.
KNOWN = {
    nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid", nn.SiLU: "silu", nn.Softsign: "softsign",
}  # fmt: skip


def difference_quotient(
    f: Function, x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]
) -> Float[Tensor, "*batch"]:
    r"""How much farther apart a map puts two points than they were: never more than its Lipschitz constant.

    $$ \frac{\|f(x) - f(y)\|}{\|x - y\|} $$

    Shapes:
        f: (..., n) to (..., m); x, y: (..., n), different points    returns: (...)

    Claims: smooth.lipschitz

    >>> difference_quotient(torch.tanh, torch.zeros(1), torch.ones(1))
    tensor(0.7616)
    """
    distance = torch.linalg.vector_norm(x - y, dim=-1)
    if (distance == 0).any():
        raise ValueError("x and y must differ: a quotient by their distance is not defined")
    return torch.linalg.vector_norm(f(x) - f(y), dim=-1) / distance


@system("lipschitz", title="Lipschitz constant", kind="function")
def lipschitz(
    f: Function, region: Box | tuple | None = None, points: int = POINTS, generator: torch.Generator | None = None
) -> Measured:
    r"""The Lipschitz constant of a map between vectors, in the 2-norm.

    $$ \|f(x) - f(y)\| \le L\,\|x - y\|, \qquad
       L \le \prod_l \mathrm{Lip}(\phi_l)\,\|W_l\|_2 \ \text{ for a network} $$

    A sequence of linear layers and known activations is certified, on the whole space, by that product: the bound is
    seldom attained, and `seen` says what was found in the region, if one is given. Any other map is searched in the
    box; the estimate is the largest quotient found, shown by its pair of points: the constant is at least that.

    Shapes:
        f: (..., n) to (..., m), or (n,) to a number; region: (low, high)

    Claims: smooth.lipschitz

    >>> found = lipschitz(lambda x: torch.sigmoid(x), (-6.0, 6.0))
    >>> round(found.value, 4), found.certified
    (0.25, False)
    """
    certified = _product_of_norms(f) if isinstance(f, nn.Module) else None
    if region is None:
        if certified is None:
            raise ValueError("region must be a pair (low, high): only networks of known layers do without")
        return Measured("Lipschitz constant", certified, True, "the product of the spectral norms of its layers")
    box = box_region(region)
    generator = seeded(generator)
    point = box.worst(
        lambda x: torch.linalg.matrix_norm(batch_jacobians(f, x), 2), validate.count("points", points), generator
    )
    steepest = torch.linalg.svd(batch_jacobians(f, point)).Vh[0]
    pair = box.pair(point, steepest)
    with torch.no_grad():
        seen = float(difference_quotient(lambda x: f(x).reshape(-1), *pair))
    if certified is not None:
        reason = "the product of the spectral norms of its layers"
        return Measured("Lipschitz constant", certified, True, reason, pair, seen)
    return Measured("Lipschitz constant", seen, False, f"the largest found in the box, {points:,} points", pair, seen)


def _product_of_norms(network: nn.Module) -> float | None:
    """None where a layer is unknown."""
    product = 1.0
    for layer in network if isinstance(network, nn.Sequential) else [network]:
        inner = _product_of_norms(layer) if isinstance(layer, nn.Sequential) else _constant(layer)
        if inner is None:
            return None
        product *= inner
    return product


def _constant(layer: nn.Module) -> float | None:
    if isinstance(layer, nn.Linear):
        return float(certified_spectral_norm(layer.weight.detach()).upper)
    if isinstance(layer, nn.Identity | nn.Flatten):
        return 1.0
    if isinstance(layer, nn.GELU):
        return ACTIVATION_TABLE["gelu" if layer.approximate == "none" else "gelu_tanh"].lipschitz
    if isinstance(layer, nn.ELU):
        return max(1.0, abs(layer.alpha))
    if isinstance(layer, nn.LeakyReLU):
        return max(1.0, abs(layer.negative_slope))
    name = KNOWN.get(type(layer))
    return None if name is None else ACTIVATION_TABLE[name].lipschitz
