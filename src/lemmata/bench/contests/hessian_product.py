"""Products of a block of vectors with the Hessian of a wide network, in units of a gradient.

The limit is as many gradients as there are vectors. Counted in products of matrices, a gradient takes three for each
layer and a product with the Hessian six more; the first layer takes fewer of both. Elsewhere than on a GPU the sizes
are small.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vmap
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.curvature_products import HessianOperator

VECTORS = 8
SIZES = {"cuda": (3072, 2048, 4096), "cpu": (256, 256, 512)}  # inputs, width, examples
CLASSES = 10


class Problem(NamedTuple):
    """A network, its data, and vectors as rows."""

    model: nn.Module
    x: Tensor
    y: Tensor
    vectors: Tensor


@entry(
    "hessian_product",
    title="Products with the Hessian of a network",
    measures="8 products, the passes through the network included",
    cases={"mlp": "3072-2048-2048-10, tanh, batch 4,096, float32 (256-256-256-10, batch 512 without a GPU)"},
    targets={"torch reverse over reverse": 1.05, "torch forward over reverse": 1.0, "curvlinops": 1.0},
)
def network(case: str, device: str) -> Problem:
    """Data and vectors drawn at random."""
    generator = torch.Generator().manual_seed(0)
    inputs, width, examples = SIZES.get(torch.device(device).type, SIZES["cpu"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hidden = [nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()]
        model = nn.Sequential(*hidden, nn.Linear(width, CLASSES))
    size = sum(p.numel() for p in model.parameters())
    x, vectors = (torch.randn(*shape, generator=generator) for shape in ((examples, inputs), (VECTORS, size)))
    y = torch.randint(CLASSES, (examples,), generator=generator)
    return Problem(model.to(device), x.to(device), y.to(device), vectors.to(device))


@ours("lemmata")
def in_a_block(problem: Problem) -> Callable[[], Tensor]:
    """One pass, then all vectors; at once on a GPU, one after the other elsewhere."""
    model, x, y, vectors = problem
    return lambda: HessianOperator(model, functional.cross_entropy, (x, y))(vectors)


@ours("lemmata, at once")
def at_once(problem: Problem) -> Callable[[], Tensor]:
    """All vectors at once wherever it is."""
    model, x, y, vectors = problem
    return lambda: HessianOperator(model, functional.cross_entropy, (x, y), at_once=True)(vectors)


@ours("lemmata, one by one")
def one_by_one(problem: Problem) -> Callable[[], Tensor]:
    """One pass, then each vector by itself."""
    model, x, y, vectors = problem
    return lambda: HessianOperator(model, functional.cross_entropy, (x, y), at_once=False)(vectors)


@peer("torch reverse over reverse")
def reverse_over_reverse(problem: Problem) -> Callable[[], Tensor]:
    """As most people write it: a new graph for each vector."""
    model, x, y, vectors = problem
    parameters = list(model.parameters())
    sizes = [p.numel() for p in parameters]

    def product(vector: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(x), y)
        gradient = torch.autograd.grad(loss, parameters, create_graph=True)
        parts = [v.view_as(p) for v, p in zip(vector.split(sizes), parameters, strict=True)]
        return torch.cat([part.flatten() for part in torch.autograd.grad(gradient, parameters, parts)])

    return lambda: torch.stack([product(vector) for vector in vectors])


@peer("torch forward over reverse")
def forward_over_reverse(problem: Problem) -> Callable[[], Tensor]:
    """`torch.func`: the derivative of the gradient along each vector, all of them at once."""
    model, x, y, vectors = problem
    point = {name: p.detach() for name, p in model.named_parameters()}
    parts = vectors.split([p.numel() for p in point.values()], 1)
    block = {name: part.view(-1, *p.shape) for (name, p), part in zip(point.items(), parts, strict=True)}
    slope = grad(lambda point: functional.cross_entropy(functional_call(model, point, (x,)), y))

    def products() -> Tensor:
        found = vmap(lambda vector: jvp(slope, (point,), (vector,))[1])(block)
        return torch.cat([part.flatten(1) for part in found.values()], 1)

    return products


@peer("curvlinops", needs="curvlinops-for-pytorch")
def by_curvlinops(problem: Problem) -> Callable[[], Tensor]:
    """Its operator times a matrix with the vectors as columns."""
    from curvlinops import HessianLinearOperator  # type: ignore[import-not-found]

    model, x, y, vectors = problem
    parameters, columns = list(model.parameters()), vectors.mT.contiguous()

    def products() -> Tensor:
        words = {"check_deterministic": False}
        operator = HessianLinearOperator(model, nn.CrossEntropyLoss(), parameters, [(x, y)], **words)
        return (operator @ columns).mT

    return products


@limit("a gradient for each vector")
def eight_gradients(problem: Problem) -> Callable[[], object]:
    """Forwards and backwards."""
    model, x, y, vectors = problem
    parameters = list(model.parameters())
    return lambda: [torch.autograd.grad(functional.cross_entropy(model(x), y), parameters) for _ in vectors]


@agreement(within=1e-3)
def in_numbers(products: Tensor) -> dict[str, float]:
    """Lengths of the first and the last product, and the largest number in any."""
    found = products.detach().double()
    return {"first": float(found[0].norm()), "last": float(found[-1].norm()), "largest": float(found.abs().max())}
