"""More of what is called: edges in order, sums beside a linear map, and torch's kernels for sequences."""

import random
from collections.abc import Callable
from typing import Any

import torch
from tests.fast.fuzz import answers
from tests.fast.fuzz.targets import OPS, TARGETS, Target, opened, real, sums_given

from lemmata.fast.sequence_kernels import KERNELS
from lemmata.fast.sparse import linear_sums, sorted_edges

__all__ = ["ALL"]


def _mapped_sums(draw: random.Random) -> dict[str, Any]:
    given = sums_given(draw)
    x, outputs = given["x"], draw.choice((1, 5, 30))
    bias = torch.randn(outputs, dtype=x.dtype) if draw.random() < 0.5 else None
    more = {"matrix": torch.randn(outputs, x.shape[1], dtype=x.dtype), "bias": bias}
    return given | more | {"weights": torch.randn(len(given["rows"].columns), dtype=x.dtype)}


def _sum_and_map(matrix: Any, bias: Any, weights: Any, **given: Any) -> torch.Tensor:
    answers.demand(weights is not None and matrix.dtype == given["x"].dtype)
    answers.demand(bias is None or (bias.dtype == matrix.dtype and bias.shape == matrix.shape[:1]))
    if not all(each.isfinite().all() for each in (matrix, weights, given["x"], *([] if bias is None else [bias]))):
        raise answers.Anything
    y = answers.sums(weights=weights, **given) @ answers.wide(matrix).mT
    return y if bias is None else y + answers.wide(bias)


def _edges(draw: random.Random, op: bool = False) -> dict[str, Any]:
    nodes = draw.choice((1, 3, 9))
    edges = torch.randint(nodes, (2, draw.choice((0, 1, 7, 40))))
    given = {"edges": edges, "nodes": nodes, "looped": draw.random() < 0.5}
    return given | ({"loops": int((edges[0] == edges[1]).sum())} if op else {})


def _of_few_nodes(call: Callable[..., Any]) -> Callable[..., Any]:
    """Memory for so many nodes as there are in the argument is what is asked for: not here."""

    def few(edges: Any, nodes: Any, **given: Any) -> Any:
        if isinstance(nodes, int) and nodes > 1000:
            raise ValueError("nodes must be few")
        return call(edges, nodes, *given.values())

    return few


def _sequence(draw: random.Random) -> dict[str, Any]:
    kernel, dtype = draw.choice(list(KERNELS)), real(draw)
    batch, time, inputs, hidden = (draw.choice((1, 2, 5)) for _ in range(4))
    rows = {"gru": 3, "lstm": 4}.get(kernel, 1) * hidden

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=dtype)

    return {
        "kernel": kernel,
        "x": normal(batch, time, inputs),
        "hidden": normal(batch, hidden),
        "cell": normal(batch, hidden) if kernel == "lstm" else None,
        "weights": (normal(rows, inputs), normal(rows, hidden), normal(rows), normal(rows)),
    }


def _adjoint(draw: random.Random) -> dict[str, Any]:
    dtype = real(draw)
    batch, time, blocks, hidden = (draw.choice((1, 2, 4)) for _ in range(4))
    shapes = [(batch, time, hidden), (batch, time, blocks, hidden), (blocks * hidden, hidden)]
    shapes += [(batch, time, hidden), (batch, hidden), (batch, time, hidden)]
    names = ("grad", "factors", "recurrent_weight", "keep", "grad_cell", "shown")
    return {name: torch.randn(shape, dtype=dtype) for name, shape in zip(names, shapes, strict=True)}


def _opened_plain(op: Callable[..., Any]) -> Callable[..., Any]:
    """An operator without a pattern; what torch says of a schema counts as a sentence."""
    return lambda **given: opened(lambda *_: op(**given))(rows=(torch.ones(1),) * 3)


ALL = TARGETS | {
    "linear_row_sums": Target(linear_sums.linear_row_sums, _mapped_sums, _sum_and_map),
    "sorted_edges": Target(_of_few_nodes(sorted_edges.sorted_edges), _edges),
    "counted_edges": Target(_of_few_nodes(sorted_edges.counted_edges), _edges),
    "ops.sort_edges": Target(_opened_plain(_of_few_nodes(OPS.sort_edges)), lambda draw: _edges(draw, op=True)),
    "ops.sequence_kernel": Target(
        lambda weights, **g: _opened_plain(lambda **h: OPS.sequence_kernel(*h.values(), *weights))(**g), _sequence
    ),
    "ops.adjoint_states": Target(_opened_plain(lambda **g: OPS.adjoint_states(*g.values())), _adjoint),
}
