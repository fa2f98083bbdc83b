r"""Certified curvature: enclosures of every Hessian of a function over a box, by intervals that carry derivatives."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lemmata.certified.definiteness import certify_definiteness
from lemmata.certified.intervals import TINY, Interval
from lemmata.certified.jets import Jet
from lemmata.certified.rounding import gamma

__all__ = []  # for `smoothness` and its like; users meet only their answers

PIECES = 200  # the most that a box is cut into
TOGETHER, NUMBERS = 32, 2**20  # boxes that are cut at once; fewer where the Hessians of n entries hold more numbers
TIGHT = 1.01  # the box is cut until the bound is within one part in a hundred of what was seen
aten = torch.ops.aten
Function = Callable[[Tensor], Tensor]


def curvature_bounds(f: Function, lowest: Tensor, highest: Tensor, seen: float, aim: str) -> tuple[float, float] | None:
    r"""Two numbers between which lie all eigenvalues of all Hessians of a function over a box.

    $$ \nabla^2 f(x) \in [C - \Delta, C + \Delta] \ \Rightarrow\
       \lambda_{\min}(C) - \|\Delta\|_\infty \le \lambda_i(\nabla^2 f(x)) \le \lambda_{\max}(C) + \|\Delta\|_\infty $$

    The box is cut where the bound is too far off, until it is close to `seen`, the extreme that a search has found: of
    the size ("largest") or of the least eigenvalue ("least"). None where the function does what intervals do not know:
    they know sums, products, whole powers, quotients, linear maps, exp, log, sqrt, sin, cos, tanh, sigmoid, softplus.

    Shapes:
        f: one vector (n,) to one number    lowest, highest: (n,), the corners of the box

    Claims: smooth.descent_lemma, convex.strong

    >>> corners = torch.tensor([0.0]), torch.tensor([9.0])
    >>> low, high = curvature_bounds(lambda x: torch.sin(x).sum(), *corners, 1.0, "largest")
    >>> -1.01 < low <= -1, 1 <= high < 1.01
    (True, True)
    """
    low, high = lowest.double()[:, None], highest.double()[:, None]  # (n, boxes)
    width = high - low
    target = seen if aim == "largest" else -seen
    enough = target + (TIGHT - 1) * abs(target)
    together = max(1, min(TOGETHER, NUMBERS // len(low) ** 3))
    try:
        bounds = _eigenvalue_bounds(_enclose_boxes(f, low, high, lowest.dtype).bend)  # (2, boxes)
        while True:
            worst = torch.maximum(-bounds[0], bounds[1]) if aim == "largest" else -bounds[0]
            bad = worst.argsort(descending=True)[: min(int((worst > enough).sum()), together, PIECES - len(worst))]
            if not len(bad):
                return float(bounds[0].min()), float(bounds[1].max())
            left, right = high[:, bad].clone(), low[:, bad].clone()
            axes, columns = ((high - low) / width)[:, bad].argmax(0), torch.arange(len(bad))
            left[axes, columns] = right[axes, columns] = right[axes, columns] / 2 + left[axes, columns] / 2
            halves = torch.cat([low[:, bad], right], dim=1), torch.cat([left, high[:, bad]], dim=1)
            found = _eigenvalue_bounds(_enclose_boxes(f, *halves, lowest.dtype).bend)
            good = torch.ones(len(worst), dtype=torch.bool).index_fill(0, bad, False)
            low, high = (torch.cat([ends[:, good], new], 1) for ends, new in zip((low, high), halves, strict=True))
            bounds = torch.cat([bounds[:, good], found], dim=1)
    except Exception:  # whatever a user's function answers to a tensor without data, it is not known
        return None


def _eigenvalue_bounds(bend: Interval) -> Tensor:
    """Below and above all eigenvalues in each box: (2, boxes)."""
    n = bend.low.shape[-2]
    low, high = (end.reshape(n, n, -1).permute(2, 0, 1) for end in (bend.low, bend.high))
    low, high = torch.maximum(low, low.mT), torch.minimum(high, high.mT)  # every Hessian is symmetric
    centre = low / 2 + high / 2
    radius = torch.maximum(high - centre, centre - low)
    if not (centre.isfinite().all() and radius.isfinite().all()):
        raise ArithmeticError("the enclosure is infinite")
    # The differences and the sum of n radii are rounded, by 1 + u and 1 + gamma.
    spread = (1 + 2 * gamma(n + 1)) * radius.sum(-1).amax(-1)
    # With a tolerance, so that no fractions are computed where an eigenvalue is near 0.
    floors = certify_definiteness(torch.stack([centre, -centre]), tolerance=TINY).floor - spread
    floors = floors.nextafter(torch.full_like(floors, -math.inf))
    return torch.stack([floors[0], -floors[1]])


def enclosed(f: Function, low: Tensor, high: Tensor, dtype: torch.dtype = torch.float64) -> Jet:
    """The enclosures of a function's value, gradient and Hessian over a box; an error where a step is not known.

    The function is called on a tensor without data, and every operation that torch carries out for it is answered by
    the same one on intervals. Names, keywords, defaults, aliases, hooks and types are thus torch's own business: what
    arrives is one of its elementary operations with its arguments, and only those in `KNOWN` are answered, with no
    argument more than their signature here. To look at a number of the tensor is an error, as is to change one.
    """
    return _enclose_boxes(f, low[:, None], high[:, None], dtype)


def _enclose_boxes(f: Function, low: Tensor, high: Tensor, dtype: torch.dtype) -> Jet:
    """The same over many boxes at once, whose ends are (n, boxes)."""
    enclosing = _Enclosing()
    point = enclosing.stand_in(Jet.variables(low.double(), high.double()), dtype)
    with torch.no_grad(), enclosing:
        result = f(point)
    found = enclosing.jet(result)
    if found is None or found.count != 1:
        raise NotImplementedError("a function whose result is not one number that depends on the point")
    return found


class _Enclosing(TorchDispatchMode):
    """Sees every elementary operation of torch, and carries it out on the jets that the tensors without data stand for.

    A stand-in is known by its storage, which it shares with none: so `y.data = z` and the like mislead nobody.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jets: dict[int, tuple[Tensor, Jet]] = {}

    def stand_in(self, jet: Jet, dtype: torch.dtype) -> Tensor:
        tensor = torch.empty(jet.shape, dtype=dtype, device="meta")
        self.jets[tensor.untyped_storage()._cdata] = (tensor, jet)
        return tensor

    def jet(self, value: Any) -> Jet | None:
        """What a value stands for; None where it is a number, or a tensor of numbers."""
        if not isinstance(value, Tensor) or not value.is_meta:
            return None
        _, jet = self.jets.get(value.untyped_storage()._cdata, (None, None))
        if jet is None or jet.shape != value.shape or not value.is_contiguous() or value.storage_offset():
            raise NotImplementedError("a tensor without data that no known operation has made")
        return jet

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [value for value in _argument_values((args, tuple(kwargs.values()))) if isinstance(value, Tensor)]
        if all(self.jet(tensor) is None for tensor in tensors):
            return self._of_numbers(function, args, kwargs)
        if any(self.jet(value) is not None for value in _argument_values(tuple(kwargs.values()))):
            raise NotImplementedError(f"{function} into a given tensor")
        dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
        if function is aten.squeeze_.dim:  # the one change in place: of the shape, by torch's own products
            tensor, axis = args
            moved = _moving_operation(aten.squeeze.dim)(self.jet(tensor), axis)
            self.jets[tensor.untyped_storage()._cdata] = (tensor, moved)
            return function(tensor, axis)
        if function not in KNOWN:
            raise NotImplementedError(str(function))
        found = KNOWN[function](*self._with_jets(args), **kwargs)
        return [self.stand_in(one, dtype) for one in found] if isinstance(found, list) else self.stand_in(found, dtype)

    def _with_jets(self, args: Any) -> list[Any]:
        return [self._with_jets(a) if isinstance(a, list | tuple) else self.jet(a) or a for a in args]

    @staticmethod
    def _of_numbers(function: Any, args: Any, kwargs: Any) -> Any:
        """Torch itself; what the function puts beside the stand-in's data is put where there is some."""
        if torch.Tag.nondeterministic_seeded in function.tags:
            raise NotImplementedError("a function that draws at random")
        if str(kwargs.get("device")) == "meta":
            kwargs = {**kwargs, "device": torch.device("cpu")}
        return function(*args, **kwargs)


def _argument_values(arguments: Any) -> list[Any]:
    if not isinstance(arguments, list | tuple):
        return [arguments]
    return [value for part in arguments for value in _argument_values(part)]


def _moving_operation(function: Callable) -> Callable:
    """An operation that only moves entries, or repeats or leaves some out: it is applied to their numbers."""

    def moved(jet: Jet, *args: Any, **kwargs: Any) -> Any:
        entries = function(torch.arange(jet.count).reshape(jet.shape), *args, **kwargs)
        return jet.taken(entries) if isinstance(entries, Tensor) else [jet.taken(some) for some in entries]

    return moved


def _joining_operation(function: Callable) -> Callable:
    """Several tensors put together, of which some may be numbers."""

    def joined(some: list[Any], dim: int = 0) -> Jet:
        like = next(one for one in some if isinstance(one, Jet))
        jets = [one if isinstance(one, Jet) else like.constant(one) for one in some]
        numbers = torch.arange(sum(jet.count for jet in jets)).split([jet.count for jet in jets])
        flat = [jet.taken(torch.arange(jet.count)) for jet in jets]
        row = Jet(*(
            Interval(torch.cat([part.low for part in parts]), torch.cat([part.high for part in parts]))
            for parts in zip(*(jet.parts for jet in flat), strict=True)
        ))  # fmt: skip
        return row.taken(function([n.reshape(jet.shape) for n, jet in zip(numbers, jets, strict=True)], dim))

    return joined


def _jet_plus(a: Any, b: Any, *, alpha: int | float = 1) -> Jet:
    if alpha != 1:
        b = (b if isinstance(b, Jet) else a.constant(b)) * alpha
    return a + b if isinstance(a, Jet) else b + a


def _jet_minus(a: Any, b: Any, *, alpha: int | float = 1) -> Jet:
    return _jet_plus(a, b, alpha=-alpha)


def _jet_times(a: Any, b: Any) -> Jet:
    return a * b if isinstance(a, Jet) else b * a


def _jet_over(a: Any, b: Any) -> Jet:
    return a / b if isinstance(a, Jet) else b.reciprocal() * a


def _jet_sum(jet: Jet, dim: list[int] | None = None, keepdim: bool = False) -> Jet:
    axes = sorted(axis % jet.ndim for axis in dim) if dim and jet.ndim else list(range(jet.ndim))
    for axis in reversed(axes):
        jet = jet.sum(axis)
    for axis in axes if keepdim else []:
        jet = _with_axis(jet, axis)
    return jet


def _jet_mean(jet: Jet, dim: list[int] | None = None, keepdim: bool = False) -> Jet:
    total = _jet_sum(jet, dim, keepdim)
    return total / (jet.count // total.count)


def _jet_logsumexp(jet: Jet, dim: list[int], keepdim: bool = False) -> Jet:
    return jet.logsumexp(lambda terms: _jet_sum(terms, dim, keepdim))


def _jet_softplus(jet: Jet, beta: int | float = 1, threshold: int | float = 20) -> Jet:
    if beta != 1 or not bool((jet.value.high < threshold).all()):
        raise NotImplementedError("softplus at its threshold, where it jumps to a straight line")
    return jet.softplus()


def _jet_mm(a: Any, b: Any) -> Jet:
    if not isinstance(a, Jet):
        return b.mapped(a)
    turn = _moving_operation(aten.t.default)
    return _jet_bmm(a, b) if isinstance(b, Jet) else turn(turn(a).mapped(b.mT))


def _jet_bmm(a: Any, b: Any) -> Jet:
    terms = _jet_times(_with_axis(a, -1), _with_axis(b, -3))  # (..., rows, inner, columns)
    return terms.sum(terms.ndim - 2)


def _jet_mv(matrix: Any, vector: Any) -> Jet:
    return _jet_times(matrix, vector).sum(1) if isinstance(matrix, Jet) else vector.mapped(matrix)


def _with_axis(value: Any, axis: int) -> Any:
    return _moving_operation(aten.unsqueeze.default)(value, axis) if isinstance(value, Jet) else value.unsqueeze(axis)


def _as_double(jet: Jet, *, dtype: torch.dtype) -> Jet:
    if dtype is not torch.float64:
        raise NotImplementedError(f"rounding to {dtype}")
    return jet


MOVES = (
    aten.view.default, aten._unsafe_view.default, aten.select.int, aten.slice.Tensor, aten.unbind.int,
    aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default,
    aten.t.default, aten.transpose.int, aten.permute.default, aten.clone.default, aten.alias.default,
)  # fmt: skip

# Torch's elementary operations, each with the arguments that are understood; one more is an error.
KNOWN: dict[Any, Callable] = {
    **{move: _moving_operation(move) for move in MOVES},
    **{join: _joining_operation(join) for join in (aten.cat.default, aten.stack.default)},
    aten.add.Tensor: _jet_plus,
    aten.sub.Tensor: _jet_minus,
    aten.rsub.Scalar: lambda a, b, alpha=1: _jet_minus(b, a, alpha=alpha),
    aten.mul.Tensor: _jet_times,
    aten.div.Tensor: _jet_over,
    aten.neg.default: lambda jet: -jet,
    aten.reciprocal.default: lambda jet: jet.reciprocal(),
    aten.pow.Tensor_Scalar: lambda jet, exponent: jet**exponent,
    aten.sum.default: _jet_sum,
    aten.sum.dim_IntList: _jet_sum,
    aten.mean.default: _jet_mean,
    aten.mean.dim: _jet_mean,
    aten.logsumexp.default: _jet_logsumexp,
    aten.mm.default: _jet_mm,
    aten.bmm.default: _jet_bmm,
    aten.mv.default: _jet_mv,
    aten.dot.default: lambda a, b: _jet_times(a, b).sum(0),
    aten.addmm.default: lambda shift, a, b: _jet_plus(_jet_mm(a, b), shift),
    aten.softplus.default: _jet_softplus,
    aten._to_copy.default: _as_double,
    **{
        getattr(aten, name).default: (lambda jet, name=name: getattr(jet, name)())
        for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid")
    },
}
