r"""Lipschitz constants: certified for networks by products of spectral norms, measured for anything else."""

import math

import torch
from torch import nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks

from lemmata import validate
from lemmata.certified.norms import p_norm
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.analysis.curvature import search_box
from lemmata.foundations.analysis.function_values import Function, batch_jacobians
from lemmata.foundations.analysis.measurements import Measured
from lemmata.foundations.analysis.regions import POINTS, Box, seeded
from lemmata.marks import system
from lemmata.measure.spectral import certified_spectral_norm

__all__ = ["lipschitz"]

# The layers whose constant is known: the activation of the table that each of torch's modules computes. Softplus is
# none of them: torch's own goes over to a straight line at its threshold, with a jump that no constant bounds.
KNOWN = {
    nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid", nn.SiLU: "silu", nn.Softsign: "softsign",
}  # fmt: skip
EXACTLY = {nn.Linear, nn.Identity, nn.Flatten, nn.ELU, nn.LeakyReLU, nn.GELU, *KNOWN}
CALLS = {"forward", "_call_impl", "_compiled_call_impl"}  # what a call of a module runs, if it has them of its own


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
    reason = "the product of the spectral norms of its layers"
    if region is None:
        if certified is None:
            raise ValueError("region must be a pair (low, high): only networks of known layers do without")
        return Measured("Lipschitz constant", certified, True, reason)
    box, generator = search_box(region), seeded(generator)
    point = box.worst(
        lambda x: torch.linalg.matrix_norm(batch_jacobians(f, x), 2), validate.count("points", points), generator
    )
    steepest = torch.linalg.svd(batch_jacobians(f, point).detach()).Vh[0]
    x, y = box.pair(point, steepest)
    with torch.no_grad():
        first, second = f(x).reshape(-1), f(y).reshape(-1)
    distance = p_norm(x - y)
    seen = float(p_norm((first - second) / distance))
    # Rounding inside the map is its own secret: half of the digits are left to it.
    eps = torch.finfo(distance.dtype).eps
    noise = eps**0.5 * seen + 8 * eps * float(p_norm(first / distance) + p_norm(second / distance))
    if certified is not None and seen <= certified + noise:
        return Measured("Lipschitz constant", certified, True, reason, (x, y), seen)
    reason = f"the largest found in the box, {points:,} points"
    return Measured("Lipschitz constant", seen, False, reason, (x, y), seen)


def _product_of_norms(network: nn.Module) -> float | None:
    """None where a layer is unknown; rounded up at every factor."""
    if not _is_plain_layer(network):
        return None
    if type(network) is not nn.Sequential:
        return _layer_constant(network)
    product = 1.0
    for layer in network:
        inner = _product_of_norms(layer)
        if inner is None:
            return None
        product = product * inner if inner == 1 else math.nextafter(product * inner, math.inf)
    return product if math.isfinite(product) else None


def _is_plain_layer(layer: nn.Module) -> bool:
    """Whether nothing but the forward pass of its class is called: none of its own, and no hook."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, _global_forward_hooks, _global_forward_pre_hooks)
    return not CALLS & vars(layer).keys() and not any(hooks)


def _layer_constant(layer: nn.Module) -> float | None:
    """None for a subclass of torch's layers too, which may compute anything: one with a parametrised weight is such."""
    if type(layer) not in EXACTLY:
        return None
    if isinstance(layer, nn.Linear):
        return float(certified_spectral_norm(layer.weight.detach()).upper)
    if isinstance(layer, nn.ELU | nn.LeakyReLU):
        slope = float(layer.alpha if isinstance(layer, nn.ELU) else layer.negative_slope)
        return max(1.0, abs(slope)) if math.isfinite(slope) else None
    if isinstance(layer, nn.GELU):
        return ACTIVATION_TABLE["gelu" if layer.approximate == "none" else "gelu_tanh"].lipschitz
    return ACTIVATION_TABLE[KNOWN[type(layer)]].lipschitz if type(layer) in KNOWN else 1.0
