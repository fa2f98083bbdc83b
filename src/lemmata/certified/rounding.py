r"""What rounding may cost: the bounds that certificates rest on, and exact arithmetic where they do not decide.

Every stored number is a fraction, so a sign that rounding leaves open can be had exactly; it only takes longer.
"""

import math
from fractions import Fraction
from typing import Any

import torch
from jaxtyping import Float, Int8, Shaped
from torch import Tensor

__all__ = []  # for certificates; users meet only their answers


def gamma(terms: int, dtype: torch.dtype = torch.float64) -> float:
    r"""The relative error of a sum of so many products, in any order of summation, rounded up.

    $$ \Big|\mathrm{fl}\Big(\sum_i a_i b_i\Big) - \sum_i a_i b_i\Big| \le \gamma_n \sum_i |a_i b_i|, \qquad
       \gamma_n = \frac{n u}{1 - n u} $$

    It says nothing where $n u \ge 1$, and needs that no product is subnormal: scale by a power of two first.

    Source: N. Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.

    >>> gamma(3) > 3 * 2.0**-53
    True
    """
    lost = terms * torch.finfo(dtype).eps / 2
    if lost >= 0.5:
        raise ValueError(f"a sum of {terms} terms has no digit left in {dtype}: use double")
    return lost / (1 - lost) * (1 + 2.0**-50)


def power_of_two(matrix: Float[Tensor, "*batch rows columns"]) -> Float[Tensor, "*batch"]:
    """The largest power of two that is not above the largest entry: dividing by it rounds nothing.

    But for entries that are 2^1022 times smaller than the largest, of which no sum of squares knows.
    """
    # Without an axis torch is ten times as fast.
    ends = matrix.aminmax() if matrix.ndim == 2 else matrix.flatten(-2).aminmax(dim=-1)
    largest = torch.maximum(-ends.min, ends.max)
    return torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1)


def scaled_down(bound: Float[Tensor, "*batch"], unit: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """A lower bound times a power of two, still a lower bound where the product is subnormal or too large to store.

    >>> below, unit = torch.tensor(1.5, dtype=torch.float64), torch.tensor(2.0**-1074, dtype=torch.float64)
    >>> scaled_down(below, unit).item() == 2.0**-1074, scaled_up(below, unit).item() == 2 * 2.0**-1074
    (True, True)
    """
    limits = torch.finfo(bound.dtype)
    product = bound * unit
    rounded = (product.abs() < limits.tiny) & (product / unit != bound)
    product = torch.where(rounded & (product / unit > bound), product.nextafter(product.new_tensor(-math.inf)), product)
    return product.clamp(max=limits.max)


def scaled_up(bound: Float[Tensor, "*batch"], unit: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """An upper bound times a power of two, still an upper bound; infinite where it is too large to store."""
    return -scaled_down(-bound, unit)


def form(
    matrix: Float[Tensor, "*batch rows columns"],
    left: Float[Tensor, "*batch rows"],
    right: Float[Tensor, "*batch columns"],
    unit: Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """The product of a row, a matrix of this power of two and a column, in the dtype of the matrix, with its gradient.

    The column is made larger or smaller first, so that no product is subnormal or infinite unless the form is.
    """
    half = torch.frexp(unit.new_tensor(torch.finfo(matrix.dtype).tiny)).exponent // 2
    lift = torch.ldexp(torch.ones_like(unit), (-torch.frexp(unit).exponent).clamp(half, -half)).to(matrix.dtype)
    image = (matrix @ (right.to(matrix.dtype) * lift[..., None])[..., None])[..., 0]
    return (left.to(matrix.dtype) * image).sum(-1) / lift


def fractions(value: Shaped[Tensor, "*shape"]) -> Any:
    """The entries as they are stored: fractions in lists as deep as the shape, for every dtype of real numbers.

    >>> fractions(torch.tensor([[0.5, 3.0]]))
    [[Fraction(1, 2), Fraction(3, 1)]]
    """
    if value.is_complex():
        raise TypeError(f"complex numbers are no fractions, got {value.dtype}: use torch.view_as_real")
    plain = value.detach().cpu()
    return _deep_list((plain.double() if plain.is_floating_point() else plain).tolist())


def _deep_list(entry: Any) -> Any:
    return [_deep_list(one) for one in entry] if isinstance(entry, list) else Fraction(entry)


def exact_signs(rows: Shaped[Tensor, "points n"], vector: Shaped[Tensor, "n"]) -> Int8[Tensor, "points"]:
    """The signs -1, 0, +1 of all products of a row with a vector, as if nothing were rounded.

    Double precision decides where its error bound allows; the other products are computed in fractions.

    >>> exact_signs(torch.tensor([[1e16, 1.5, -1e16, -1.75]], dtype=torch.float64), torch.ones(4))
    tensor([-1], dtype=torch.int8)
    """
    signs = torch.zeros(len(rows), dtype=torch.int8, device=rows.device)
    open = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    if rows.numel() and rows.is_floating_point() and vector.is_floating_point():
        left, right = rows.detach().double(), vector.detach().double()
        left = left / power_of_two(left[:, None, :])[:, None]
        right = right / power_of_two(right[None])
        found = left @ right
        # The bound is a sum of as many terms, rounded likewise; what is lost below 2^-1074 in each product is added.
        lost = 2 * gamma(len(vector)) * (left.abs() @ right.abs()) + len(vector) * torch.finfo(found.dtype).tiny
        open = found.abs() <= lost
        signs = torch.where(open, 0, found.sign()).to(torch.int8)
    if open.any():
        exact = fractions(vector)
        for index in open.nonzero().flatten().tolist():
            product = sum((a * b for a, b in zip(fractions(rows[index]), exact, strict=True)), Fraction(0))
            signs[index] = (product > 0) - (product < 0)
    return signs
