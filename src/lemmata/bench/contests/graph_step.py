"""Forward and backward pass of graph networks against PyTorch Geometric's, under the same weights.

The peer's usual form gathers a row of features for every edge and scatters it; with a CSR matrix it calls torch's
sparse product, which it can for a graph convolution but not for attention. Its coupling is computed at each call, as
ours is, unless it is told to keep it.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.geometric.gat import GATConvolution
from lemmata.geometric.gcn import GCNConvolution
from lemmata.geometric.graph import Graph

SIZES = {"cpu": (20_000, 100_000)}  # nodes, joined pairs; each is two edges
ON_GPU = (200_000, 1_000_000)
FEATURES, CLASSES = 64, 10
# Inputs, outputs of each head and heads of every layer.
LAYERS = {
    "gcn": [(FEATURES, 64, 0), (64, CLASSES, 0)],
    "gat": [(FEATURES, 8, 8), (64, CLASSES, 1)],
    "gcn_layer": [(FEATURES, 64, 0)],
    "gat_layer": [(FEATURES, 16, 4)],
}


class Step(NamedTuple):
    """A graph, our layers, whose weights all share, and the labels of its nodes, or the gradient to a single layer."""

    graph: Graph
    x: Tensor
    y: Tensor
    layers: nn.ModuleList
    case: str


@entry(
    "graph_step",
    title="Training passes of graph networks against PyTorch Geometric",
    measures="the loss of all nodes, or the outputs of one layer, and gradients to the features and all weights",
    cases={
        "gcn": "20,000 nodes, 200,000 edges, 64 features (on a GPU ten times the nodes and edges); two GCN layers",
        "gat": "the same graph; two GAT layers, 8 heads of 8 and one",
        "gcn_layer": "the same graph; one GCN layer from 64 to 64",
        "gat_layer": "the same graph; one GAT layer, 4 heads of 16",
    },
    targets={"torch_geometric": 0.26, "torch_geometric, CSR": 0.45},
)
def step(case: str, device: str) -> Step:
    """Pairs joined at random, labels at random."""
    nodes, pairs = SIZES.get(device, ON_GPU)
    generator = torch.Generator().manual_seed(0)
    graph = Graph(torch.randint(nodes, (2, pairs), generator=generator), nodes).without_self_loops().undirected()
    x, y = torch.randn(nodes, FEATURES, generator=generator), torch.randint(CLASSES, (nodes,), generator=generator)
    y = y if len(LAYERS[case]) > 1 else torch.randn(nodes, FEATURES, generator=generator)  # one layer has no loss
    torch.manual_seed(0)
    layers = nn.ModuleList(
        GATConvolution(inputs, outputs, heads) if heads else GCNConvolution(inputs, outputs)
        for inputs, outputs, heads in LAYERS[case]
    )
    return Step(graph.to(device), x.to(device).requires_grad_(), y.to(device), layers.to(device), case)


@ours("lemmata")
def with_ours(problem: Step) -> Callable[[], list[Tensor]]:
    """As it comes."""
    return _both_passes(problem, problem.layers, problem.graph)


@peer("torch_geometric", needs="torch_geometric")
def with_pyg(problem: Step) -> Callable[[], list[Tensor]]:
    """Its usual form."""
    return _both_passes(problem, _peer_layers(problem), problem.graph.edges)


@peer("torch_geometric, CSR", needs="torch_geometric", cases="gcn gcn_layer")
def with_pyg_and_csr(problem: Step) -> Callable[[], list[Tensor]]:
    """The adjacency as torch's CSR matrix, whose product is torch's own; the coupling is kept."""
    rows, nodes = problem.graph.incoming, problem.graph.nodes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that CSR is in beta
        ones = torch.ones(len(rows.columns), device=problem.x.device)
        matrix = torch.sparse_csr_tensor(rows.pointers, rows.columns, ones, (nodes, nodes))
        work = _both_passes(problem, _peer_layers(problem, cached=True), matrix)
        work()
    return work


@limit("the products of the linear maps alone, there and back")
def linear_maps(problem: Step) -> Callable[[], object]:
    """Nothing goes along the edges."""
    shapes = [(inputs, outputs * max(heads, 1)) for inputs, outputs, heads in LAYERS[problem.case]]
    x = [torch.randn(problem.graph.nodes, inputs, device=problem.x.device) for inputs, _ in shapes]
    w = [torch.randn(*shape, device=problem.x.device) for shape in shapes]

    def multiply() -> None:
        for inputs, weights in zip(x, w, strict=True):
            out = inputs @ weights
            out @ weights.mT, inputs.mT @ out

    return multiply


@agreement(within=1e-3)
def losses_and_gradients(found: list[Tensor]) -> dict[str, float]:
    """The loss or the length of the outputs, and the length of every gradient."""
    return {f"{number}": float(value.norm(dtype=torch.float64)) for number, value in enumerate(found)}


def _peer_layers(problem: Step, **options: Any) -> nn.ModuleList:
    from torch_geometric.nn import GATConv, GCNConv  # type: ignore[import-not-found]

    layers = nn.ModuleList(
        GATConv(inputs, outputs, heads) if heads else GCNConv(inputs, outputs, **options)
        for inputs, outputs, heads in LAYERS[problem.case]
    )
    layers.load_state_dict(problem.layers.state_dict())  # the names are the same
    return layers.to(problem.x.device)


def _both_passes(problem: Step, layers: nn.ModuleList, graph: Any) -> Callable[[], list[Tensor]]:
    leaves = [problem.x, *dict(sorted(layers.named_parameters())).values()]

    def work() -> list[Tensor]:
        x = problem.x
        for number, layer in enumerate(layers, 1):
            x = layer(x, graph)  # (nodes, outputs)
            x = x.relu() if number < len(layers) else x
        if len(layers) == 1:
            return [x.detach(), *torch.autograd.grad(x, leaves, problem.y)]
        loss = cross_entropy(x, problem.y)
        return [loss.detach(), *torch.autograd.grad(loss, leaves)]

    return work
