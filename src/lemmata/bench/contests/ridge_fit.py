"""Ridge regression against scikit-learn's: the same weights, from the normal equations.

Both need the product of the data with themselves, which is nearly all of the work. scikit-learn makes a centred copy of
the data first; we shift and multiply block by block, in the cache, and correct the product by what the shift lacked of
the mean; a quarter of the symmetric product is not computed. We also look for values that are not finite, for the
eigenvalues of the product (rank and condition) and for the residual: a few more passes over the data, for which the
copy that is not made pays. In float32 we still multiply in float64, at half the speed: the normal equations square the
condition number, and single precision has no digits to spare for that.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.linear_regression import LinearRegression

POINTS, FEATURES = 100_000, 100
RIDGE = 0.01


class Table(NamedTuple):
    """Examples and their values."""

    x: Tensor
    y: Tensor


@entry(
    "ridge",
    title="Ridge regression against scikit-learn",
    measures="one fit with a bias: weights from the normal equations",
    cases={"float64": "100,000 x 100, float64", "float32": "100,000 x 100, float32"},
    targets={"scikit-learn": 1.0},
    devices="cpu",
)
def noisy_plane(case: str, device: str) -> Table:
    """Gaussian inputs off the origin, and a noisy linear function of them."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64) + 1
    y = x @ torch.randn(FEATURES, generator=generator, dtype=torch.float64)
    y += torch.randn(POINTS, generator=generator, dtype=torch.float64)
    dtype = getattr(torch, case)
    return Table(x.to(dtype), y.to(dtype))


@ours("lemmata")
def by_blocks(data: Table) -> Callable[[], Any]:
    """Our fit."""

    def fit() -> Any:
        learnt = LinearRegression(ridge=RIDGE).fit(data.x, data.y)
        return learnt.weight_, learnt.bias_

    return fit


@peer("scikit-learn", needs="scikit-learn")
def by_a_copy(data: Table) -> Callable[[], Any]:
    """scikit-learn's Cholesky solver; its penalty is on the sum of squares."""
    from sklearn.linear_model import Ridge

    x, y = data.x.numpy(), data.y.numpy()

    def fit() -> Any:
        learnt: Any = Ridge(alpha=RIDGE * len(x), solver="cholesky").fit(x, y)
        return learnt.coef_, learnt.intercept_

    return fit


@limit("the product of the data with themselves, not centred")
def product_alone(data: Table) -> Callable[[], Any]:
    """Nobody solves the normal equations without them."""
    product = data.x.new_empty(data.x.shape[1], data.x.shape[1])

    def multiply() -> None:
        torch.mm(data.x.T, data.x, out=product)

    return multiply


@agreement(within=1e-4)
def weights_in_numbers(result: Any) -> dict[str, float]:
    """Length and one shadow of the weights, and the bias; in float32 scikit-learn keeps four digits."""
    weight, bias = result
    weight = torch.as_tensor(weight).double()
    shadow = weight @ torch.linspace(-1, 1, len(weight), dtype=weight.dtype)
    return {"length": float(weight.norm()), "shadow": float(shadow), "bias": float(bias)}
