"""A sparse matrix times a dense one: what a graph convolution does between its linear maps.

Ours never holds a row for every entry, and keeps the pattern by columns for the way back. Torch's CSR product has no
gradient to a dense factor without building the transposed pattern, so that it takes part forwards only; scattering is
what libraries of graph networks do by default. On a GPU the size is that of a large graph.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.rows import Rows, rows_of

SIZES = {"cpu": (20_000, 200_000, 64)}  # nodes, entries, features
ON_GPU = (1_000_000, 32_000_000, 128)

Results = tuple[Tensor, ...]


class Product(NamedTuple):
    """A pattern with weights, dense features, and the gradient to the product where that is asked for."""

    rows: Rows
    transposed: Rows
    weights: Tensor  # in the order of the rows
    x: Tensor
    grad: Tensor | None


@entry(
    "sparse_product",
    title="Sparse matrix times dense matrix",
    measures="the product; in training also the gradient to the dense factor",
    cases={
        "forward": "20,000 rows, 200,000 entries, 64 features (on a GPU 1,000,000, 32,000,000 and 128), float32",
        "training": "the same, forward and backward",
    },
    targets={"torch CSR": 1.0, "gather and scatter": 0.5},
)
def product(case: str, device: str) -> Product:
    """Entries at random."""
    nodes, entries, features = SIZES.get(device, ON_GPU)
    generator = torch.Generator(device).manual_seed(0)
    r, c = torch.randint(nodes, (2, entries), generator=generator, device=device)
    r = r.sort().values  # the list is in the order of the rows, as CSR has it
    x, grad = (torch.randn(nodes, features, generator=generator, device=device) for _ in range(2))
    weights = torch.rand(entries, generator=generator, device=device)
    training = case == "training"
    return Product(
        rows_of(r, c, nodes), rows_of(c, r, nodes), weights, x.requires_grad_(training), grad if training else None
    )


@ours("lemmata")
def by_row_sums(problem: Product) -> Callable[[], Results]:
    """As it comes."""
    return _with_gradient(lambda x: row_sums(x, problem.rows, problem.transposed, problem.weights), problem)


@peer("torch CSR", cases="forward")
def by_torch(problem: Product) -> Callable[[], Results]:
    """Torch's own product of a CSR matrix."""
    nodes = problem.rows.number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that CSR is in beta
        matrix = torch.sparse_csr_tensor(problem.rows.pointers, problem.rows.columns, problem.weights, (nodes, nodes))
    return lambda: (matrix @ problem.x,)


@peer("gather and scatter")
def by_scattering(problem: Product) -> Callable[[], Results]:
    """A row for every entry, weighed and added up at its place."""
    r, c = problem.rows.row_of_each(), problem.rows.columns

    def multiply(x: Tensor) -> Tensor:
        return x.new_zeros(x.shape).index_add(0, r, problem.weights[:, None] * x[c])

    return _with_gradient(multiply, problem)


@limit("reading everything and writing the product once")
def copying(problem: Product) -> Callable[[], object]:
    """Half of the bytes are read and half are written; no column is read twice."""
    pattern = 8 * len(problem.rows.columns) + 4 * len(problem.weights)
    numbers = (pattern // 4 + 2 * problem.x.numel()) * (1 if problem.grad is None else 2)
    source = torch.rand(numbers // 2, device=problem.x.device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


@agreement(within=1e-4)
def in_numbers(results: Results) -> dict[str, float]:
    """Length and sum of everything computed."""
    found = {}
    for name, result in zip(("product", "gradient"), results, strict=False):
        found |= {f"{name}: length": float(result.detach().norm(dtype=torch.float64))}
        found |= {f"{name}: size": float(result.detach().abs().mean(dtype=torch.float64))}
    return found


def _with_gradient(multiply: Callable[[Tensor], Tensor], problem: Product) -> Callable[[], Results]:
    def work() -> Results:
        y = multiply(problem.x)
        return (y,) if problem.grad is None else (y, *torch.autograd.grad(y, problem.x, problem.grad))

    return work
