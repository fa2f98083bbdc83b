r"""The edges of a graph sorted by target and by source at once, in C where there is a compiler."""

import ctypes
import functools
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from lemmata import validate
from lemmata.fast.compiled_library import load_compiled
from lemmata.fast.sparse.rows import MOST, Rows, has_values, is_looked_at, rows_of

__all__ = ["counted_edges", "sorted_edges"]


def sorted_edges(
    edges: Int[Tensor, "2 edges"], nodes: int, looped: bool = False, loops: int = 0
) -> tuple[Int[Tensor, "2 kept"], Rows, Rows]:
    """The edges, for each node the sources of those that lead to it, and the targets of those that leave it.

    With `looped`, edges from a node to itself are left out, and one for each node stands behind the others; `loops` is
    how many are left out, for where their values cannot be looked at: there one operator of torch sorts them.
    """
    _check_edges(edges, nodes, looped)
    if is_looked_at() and has_values(edges):
        return counted_edges(edges, nodes, looped) or _sorted_by_torch(edges, nodes, looped)
    kept, *pattern = torch.ops.lemmata.sort_edges(edges, nodes, looped, loops)
    return kept, Rows(*pattern[:3]), Rows(*pattern[3:])


def counted_edges(
    edges: Int[Tensor, "2 edges"], nodes: int, looped: bool = False
) -> tuple[Int[Tensor, "2 kept"], Rows, Rows] | None:
    """The same by counting, in C; None where nothing compiled can be had, and where an end is no node."""
    _check_edges(edges, nodes, looped)
    if type(edges) is not Tensor or edges.device.type != "cpu":
        return None
    library = _sorting_library()
    if library is None or edges.dtype is not torch.int64:
        return None
    edges = edges.contiguous()  # and all results lie in one piece of memory
    number = edges.shape[1]
    most = number + (nodes if looped else 0)
    pointers = torch.zeros(2, nodes + 1, dtype=torch.int64)
    memory = torch.empty(6, most, dtype=torch.int64)
    first, second = memory.data_ptr(), pointers.data_ptr()
    places = [first + 8 * most * row for row in range(6)]  # of sources, targets, and twice columns and entries
    order = (places[0], places[1], second, places[2], places[3], second + 8 * (nodes + 1), places[4], places[5])
    start = edges.data_ptr()
    count = library.sort_edges(start, start + 8 * number, number, nodes, int(looped), *order)
    if count < 0:
        return None
    kept = memory[:2, :count]
    _, _, columns, entries, back_columns, back_entries = memory[:, :count].unbind()
    there, back = pointers.unbind()
    return kept, Rows(there, columns, entries), Rows(back, back_columns, back_entries)


def _check_edges(edges: Tensor, nodes: int, looped: bool) -> None:
    """Refuse what is no list of edges: compiled code would read beside it, and an operator is called by hand too."""
    validate.tensor("edges", edges)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.layout is not torch.strided:
        raise ValueError(f"edges must be a dense (2, edges), got shape {tuple(edges.shape)}: use edges.mT")
    if edges.is_floating_point() or edges.is_complex() or edges.dtype is torch.bool:
        raise TypeError(f"edges must hold integers, got {edges.dtype}: use edges.long()")
    validate.flag("looped", looped)
    if not isinstance(nodes, torch.SymInt):  # where nothing is known yet, a compiler has a symbol
        validate.count("nodes", nodes, least=0, most=MOST)


def _sorted_by_torch(edges: Tensor, nodes: int, looped: bool) -> tuple[Tensor, Rows, Rows]:
    """One order after the other."""
    low, high = (int(end) for end in edges.aminmax()) if edges.shape[1] else (0, -1)
    if low < 0 or high >= nodes:  # changed in place since: compiled code would read outside the features
        raise ValueError(f"edges were changed and must join nodes below {nodes}, got {low} to {high}: make a new Graph")
    if looped:
        loops = torch.arange(nodes, device=edges.device).expand(2, -1)
        edges = torch.cat([edges[:, edges[0] != edges[1]], loops], 1)
    return edges, rows_of(edges[1], edges[0], nodes), rows_of(edges[0], edges[1], nodes)


@functools.cache
def _sorting_library() -> ctypes.CDLL | None:
    library, _ = load_compiled(Path(__file__).with_suffix(".c"))
    if library is not None:
        library.sort_edges.restype = ctypes.c_int64
        pointer, whole = ctypes.c_void_p, ctypes.c_int64
        library.sort_edges.argtypes = [pointer, pointer, whole, whole, whole, *[pointer] * 8]
    return library


# --- The operator that torch.compile, torch.export and torch.func see ---

_operators = torch.library.Library("lemmata", "FRAGMENT")
_operators.define(f"sort_edges(Tensor edges, int nodes, bool looped, int loops) -> ({', '.join(['Tensor'] * 7)})")


def _sort_edges(edges: Tensor, nodes: int, looped: bool, loops: int) -> tuple[Tensor, ...]:
    kept, incoming, outgoing = counted_edges(edges, nodes, looped) or _sorted_by_torch(edges, nodes, looped)
    if kept.shape[1] != edges.shape[1] + (nodes - loops if looped else 0):
        raise ValueError(f"loops must be the number of edges from a node to itself, got {loops}: make a new Graph")
    return tuple(part.clone() for part in (kept, *incoming, *outgoing))  # results of an operator share no memory


_operators.impl("sort_edges", _sort_edges, "CompositeExplicitAutograd")


@torch.library.register_fake("lemmata::sort_edges", lib=_operators)
def _(edges: Tensor, nodes: int, looped: bool, loops: int) -> tuple[Tensor, ...]:
    number = edges.shape[1] + (nodes - loops if looped else 0)
    rows = [edges.new_empty(size) for _ in range(2) for size in (nodes + 1, number, number)]
    return edges.new_empty(2, number), *rows
