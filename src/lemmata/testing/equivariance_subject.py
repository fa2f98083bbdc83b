"""The module under test in a conformance suite of equivariance, and the ways to move what it is given."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.geometric.graph import Graph
from lemmata.testing.findings import Broken

__all__ = []  # for the suite alone

GROUPS = ("permutation", "translation", "rotation")
SETS, ELEMENTS, DRAWN = 2, 6, 8


class Motion(NamedTuple):
    """One element of a group: in words, what it does to a tensor, and its linear part, by which gradients move."""

    words: str
    act: Callable[[Tensor], Tensor]
    turn: Callable[[Tensor], Tensor]
    order: Tensor | None = None


@dataclass
class Subject:
    """A module, an example of its input, and the law that it must keep."""

    module: Callable[..., Any]
    name: str
    group: str
    invariant: bool
    x: Tensor
    graph: Any
    tolerance: float
    generator: torch.Generator
    known: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, module: Any, group: str, x: Any, graph: Any, inputs: Any, output: str, tolerance: Any) -> "Subject":
        if not callable(module):
            raise TypeError(f"module must be callable, got {type(module).__name__}")
        validate.one_of("group", group, GROUPS)
        validate.one_of("output", output, ("equivariant", "invariant"))
        generator = torch.Generator().manual_seed(0)
        x = _checked_example(_example_input(module, graph, inputs, generator) if x is None else x, group)
        if graph is not None and not _graph_fits(graph, x.shape[-2]):
            raise ValueError(f"x must have a row for each of {_node_count(graph)} nodes, got shape {tuple(x.shape)}")
        if tolerance is None:
            tolerance = math.sqrt(torch.finfo(x.dtype if x.is_floating_point() else torch.float32).eps)
        name = type(module).__name__ if isinstance(module, nn.Module) else getattr(module, "__name__", repr(module))
        tolerance = validate.positive("tolerance", tolerance)
        return cls(module, name, group, output == "invariant", x, graph, tolerance, generator)

    @property
    def axis(self) -> int:
        """The axis of the elements, the same for inputs and outputs."""
        return self.x.ndim - 2

    def run(self, x: Tensor, graph: Any = None) -> Tensor:
        """The module on a copy of the inputs, should it write into them."""
        return self.call(x.clone(), self.graph if graph is None else graph)

    def call(self, x: Tensor, graph: Any) -> Tensor:
        found = self.module(x) if graph is None else self.module(x, graph)
        if not isinstance(found, Tensor):
            wrap = "give a function that picks one, as lambda x: module(x).logits"
            raise Broken(f"the module must return a tensor, got {type(found).__name__}: {wrap}")
        return found

    def whole(self) -> Tensor:
        """The example as it is, run once."""
        if "whole" not in self.known:
            self.known["whole"] = self.run(self.x)
        return self.known["whole"]

    def demand_law(self, motion: Motion, x: Tensor | None = None) -> None:
        """Moved inputs must have moved outputs, or the same where the outputs are invariant."""
        plain = self.whole() if x is None else self.run(x)
        found = self.run(motion.act(self.x if x is None else x), relabelled(self.graph, motion.order))
        wanted = plain if self.invariant else motion.act(plain)
        if found.shape != wanted.shape:
            shapes = f"{tuple(found.shape)} instead of {tuple(wanted.shape)}"
            raise Broken(f"after {motion.words} the outputs have the shape {shapes}")
        wrong = self.differ(found, wanted)
        if wrong.any():
            place = tuple(wrong.nonzero()[0].tolist())
            values = f"{found[place].item():.4g} instead of {wanted[place].item():.4g}"
            raise Broken(
                f"after {motion.words} the output at {place} is {values}{self._hint_of_motion(motion, found, plain)}"
            )

    def _hint_of_motion(self, motion: Motion, found: Tensor, plain: Tensor) -> str:
        if motion.order is None or self.invariant:
            return ""
        back = plain.index_select(self.axis, motion.order.argsort())
        return "" if self.differ(found, back).any() else ": outputs are moved by the inverse permutation"

    def differ(self, one: Tensor, two: Tensor) -> Tensor:
        """Where two tensors of equal shape differ, relative to the largest entry; a NaN differs."""
        one, two = one.detach().double(), two.detach().double()
        size = max((float(part.abs().max()) for part in (one, two) if part.numel()), default=0.0)
        return ~((one - two).abs() <= self.tolerance * size)

    # --- What moves ---

    def permuted(self, words: str, order: Any) -> Motion:
        order = torch.as_tensor(order, device=self.x.device)

        def act(values: Tensor) -> Tensor:
            return values.index_select(self.axis, order)

        return Motion(words, act, act, order)

    def translated(self, words: str, shift: Tensor) -> Motion:
        shift = shift.to(self.x)
        return Motion(words, lambda values: values + shift, lambda values: values)

    def rotated(self, words: str, matrix: Tensor) -> Motion:
        matrix = matrix.to(self.x)

        def act(values: Tensor) -> Tensor:
            return values @ matrix.mT

        return Motion(words, act, act)

    def drawn(self) -> Iterator[Motion]:
        """Some elements of the group, drawn uniformly; translations as wide as the example."""
        elements, dimensions = self.x.shape[-2:]
        for number in range(DRAWN):
            if self.group == "permutation":
                order = torch.randperm(elements, generator=self.generator)
                yield self.permuted(f"the order {order.tolist()}", order)
                continue
            normal = torch.randn(dimensions, dimensions, generator=self.generator, dtype=torch.float64)
            if self.group == "translation":
                shift = normal[0] * float(self.x.detach().double().std())
                yield self.translated(f"a translation by {[round(step, 3) for step in shift.tolist()]}", shift)
            else:
                matrix, upper = torch.linalg.qr(normal)
                matrix = matrix * upper.diagonal().sign()
                matrix[0] *= torch.linalg.det(matrix).sign()  # a reflection becomes a rotation
                yield self.rotated(f"drawn rotation {number}", matrix)


def relabelled(graph: Any, order: Tensor | None) -> Any:
    """The graph whose node i is the old node `order[i]`: ours, a list of edges (2, edges), or a square matrix."""
    if graph is None or order is None:
        return graph
    if isinstance(graph, Graph):
        return graph.permuted(order)
    order = order.to(graph.device)
    return order.argsort()[graph] if _lists_edges(graph) else graph[..., order, :][..., order]


def _lists_edges(graph: Tensor) -> bool:
    return not graph.is_floating_point() and graph.ndim == 2 and graph.shape[0] == 2 and graph.dtype != torch.bool


def _graph_fits(graph: Any, rows: int) -> bool:
    """A list of edges does not say how many nodes without an edge there are beyond the last."""
    nodes = _node_count(graph)
    return rows == nodes or (rows > nodes and isinstance(graph, Tensor) and _lists_edges(graph))


def _node_count(graph: Any) -> int:
    if isinstance(graph, Graph):
        return graph.nodes
    if not isinstance(graph, Tensor):
        raise TypeError(f"graph must be a Graph, edges (2, edges) or an adjacency matrix, got {type(graph).__name__}")
    if _lists_edges(graph):
        return int(graph.max()) + 1 if graph.numel() else 0
    if graph.layout != torch.strided:
        raise TypeError(f"graph must be a dense matrix, got {graph.layout}: use graph.to_dense()")
    if graph.ndim < 2 or graph.shape[-1] != graph.shape[-2]:
        raise ValueError(f"graph must be edges (2, edges) or a square matrix, got shape {tuple(graph.shape)}")
    return graph.shape[-1]


def _example_input(module: Any, graph: Any, inputs: int | None, generator: torch.Generator) -> Tensor:
    for name in ("inputs", "input_size", "dimensions", "in_features", "in_channels"):
        found = getattr(module, name, None)
        inputs = found if inputs is None and isinstance(found, int) else inputs
    if inputs is None:
        raise ValueError("inputs must be given (or an example x): the module does not say how many features it takes")
    shape = (SETS, ELEMENTS) if graph is None else (_node_count(graph),)
    x = torch.randn(*shape, validate.count("inputs", inputs), generator=generator)
    parameters = module.parameters() if isinstance(module, nn.Module) else ()
    return next((x.to(p) for p in parameters if p.is_floating_point()), x)


def _checked_example(x: Tensor, group: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a tensor, got {type(x).__name__}")
    if x.is_meta:
        raise ValueError("x must be on a device that holds numbers, got meta: build the module on another")
    least = 3 if group == "permutation" else 1
    if x.ndim < 2 or x.shape[-2] < least or not x.numel():
        wanted = f"(..., elements, features) with at least {least} element{'s' if least > 1 else ''}"
        raise ValueError(f"x must be {wanted}, got shape {tuple(x.shape)}")
    if group != "permutation" and not x.is_floating_point():
        raise TypeError(f"x must hold floating-point numbers for the group {group}, got {x.dtype}: use x.float()")
    if group == "rotation" and x.shape[-1] < 2:
        raise ValueError(
            f"x must have at least 2 coordinates on its last axis to be rotated, got shape {tuple(x.shape)}"
        )
    if x.is_floating_point() and not x.isfinite().all():
        raise ValueError("x must be finite, found NaN or infinity")
    if group == "permutation" and (x == x[..., :1, :]).all():
        raise ValueError("x must have elements that differ: nobody sees whether equal ones were moved")
    return x.detach()
