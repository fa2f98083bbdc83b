"""What `lemmata train gcn`, `gat`, `gin` and `chebnet` do: tell the class of a node from few labelled ones.

What the defaults reach (seed 0), of Debian's packages and of the club: gcn 0.804 and 0.969, gat 0.817 and 0.969, gin
0.766 and 0.969, chebnet 0.809 and 0.969; without edges 0.65 and 0.594. Over eight seeds each gets 0.875 or more of the
club, and at most 0.6875 without edges. Labels spread along the edges, without words, get 0.731 and 0.969 (see the data
sets).
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.graphs import GraphDataset
from lemmata.data.registry import load
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.figure import Figure, Line, Points
from lemmata.geometric.gcn import GCN, normalized_adjacency
from lemmata.geometric.graph import Graph
from lemmata.geometric.node_networks import NodeClassifier
from lemmata.marks import recipe
from lemmata.measure.principal_axes import principal_plane
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification, accuracy
from lemmata.train.options import Options

__all__ = ["NodeAttentionConfig", "NodeChebyshevConfig", "NodeConfig", "classify_nodes"]

BASELINES = {
    "debian": {"perceptron on words alone": 0.65},
    "karate": {"perceptron on features alone": 0.594},
}
HOW = "The perceptron is the network of gcn on the graph without edges, trained with the same settings and seed 0."
LARGEST_DRAWN = 200  # nodes of a graph whose edges are drawn too
MIXINGS = 64  # by how much depth is carried on in the picture of over-smoothing
TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True)
class NodeConfig:
    """What can be chosen of a network on a graph."""

    width: int = 16
    """Features of each node between two layers."""
    depth: int = 2
    """Layers: how many steps away a node sees."""
    dropout: float = 0.5
    """Fraction of the features left out before each layer while training."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("depth", self.depth)
        validate.fraction("dropout", self.dropout)


@dataclass(frozen=True)
class NodeAttentionConfig(NodeConfig):
    """What can be chosen of a network of graph attention."""

    width: int = 64
    """Features of each node between two layers, which the heads share."""
    heads: int = 8
    """Heads of each layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("heads", self.heads)


@dataclass(frozen=True)
class NodeChebyshevConfig(NodeConfig):
    """What can be chosen of ChebNet."""

    degree: int = 1
    """Degree of the polynomials: steps that each layer reaches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("degree", self.degree, least=0)


CONFIGS = {
    "gcn": NodeConfig(),
    "gat": NodeAttentionConfig(),
    "gin": NodeConfig(),
    "chebnet": NodeChebyshevConfig(),
}
LEARNING = Options(epochs=100, batch_size=1000, lr=0.01, weight_decay=0.05, evaluate=10)


@recipe("gcn", "gat", "gin", "chebnet", data="debian karate", metric="accuracy")
def classify_nodes(
    data: str = "debian",
    config: NodeConfig = CONFIGS,  # type: ignore[assignment] - each system has its own
    options: Options = LEARNING,
    system: str = "gcn",
) -> Experiment:
    """The section of Debian's packages from their words and neighbours, or whom the members of a club follow."""
    found = load(data)
    assert isinstance(found, GraphDataset)
    graph = Graph.of(found).undirected()
    assert graph.x is not None
    graph = graph.replace(x=functional.normalize(graph.x, p=1, dim=1))  # words of a description add up to one
    return node_classification(found, graph, config, options, system)


def node_classification(
    found: GraphDataset, graph: Graph, config: NodeConfig, options: Options, system: str
) -> Experiment:
    """The experiment on a graph; its features are those of the nodes, its edges may be others than the data's."""
    assert graph.x is not None
    kind, arguments = node_network(system, graph.x.shape[1], len(found.classes), config)
    places: dict[tuple[torch.device, torch.dtype], Graph] = {}

    def seen(network: nn.Module) -> Graph:
        """The graph follows the network to its device and its numbers, and is sorted there once."""
        first = next(network.parameters())
        place = first.device, first.dtype
        if place not in places:
            places[place] = graph.to(*place)
        return places[place]

    def logits(network: nn.Module, batch: Examples) -> Tensor:
        return network(seen(network).x, seen(network))[batch.node]  # (batch, classes)

    def picture(network: nn.Module) -> Figure:
        return embedding(features_of(network, seen(network)).cpu().double(), found, graph)

    def files(network: nn.Module) -> dict[str, bytes]:
        figure = oversmoothing(network, seen(network), parts["test"].to(seen(network).device))
        return {"figure-oversmoothing.json": json.dumps(figure.to_json()).encode()}

    # The network sees all nodes at once; a node's own features stand beside its number for whoever looks at examples.
    x = graph.x
    parts = {name: Examples(x=x[part.node], node=part.node, y=part.y) for name, part in found.parts.items()}
    return Classification(logits).experiment(
        kind, arguments, parts["train"], parts["test"], options, validation=parts.get("validation"),
        classes=found.classes, picture=picture, files=files,
        notes={"baselines": BASELINES.get(found.name, {}), "how": HOW},
    )  # fmt: skip


def node_network(system: str, inputs: int, outputs: int, config: NodeConfig) -> tuple[type[nn.Module], dict[str, Any]]:
    """The network of a name, and its arguments: GCN itself, which `graph.gcn` is about, or layers of another kind."""
    if system == "gcn":
        widths = [config.width] * (config.depth - 1)
        return GCN, {"inputs": inputs, "widths": widths, "outputs": outputs, "dropout": config.dropout}
    return NodeClassifier, {"layer": system, "inputs": inputs, "outputs": outputs, **asdict(config)}


def features_of(network: nn.Module, graph: Graph) -> Float[Tensor, "nodes width"]:
    """What the last layer of a network is given: the features of the layer before it, or x where there is none."""
    given: list[Tensor] = []
    last = _last_layer(network)
    hook = last.register_forward_pre_hook(lambda layer, inputs: given.append(inputs[0]))
    try:
        with evaluating(network):
            network(graph.x, graph)
    finally:
        hook.remove()
    return given[0]


def _last_layer(network: nn.Module) -> nn.Module:
    return network.get_submodule("layers")[-1]  # type: ignore[index]


def embedding(features: Tensor, found: GraphDataset, graph: Graph) -> Figure:
    """The nodes at the two directions in which their features, brought to length one, differ most; edges if few."""
    directed = functional.normalize(features, dim=1)  # nodes with many neighbours would hide the others
    places = principal_plane(directed)  # (nodes, 2)
    marks: list[Line | Points] = []
    if graph.nodes <= LARGEST_DRAWN:
        ends = places[graph.edges[:, graph.edges[0] < graph.edges[1]]]  # (2, edges, 2)
        gaps = torch.full_like(ends[:1], torch.nan)
        line = torch.cat([ends, gaps]).transpose(0, 1).reshape(-1, 2)  # from, to, and a gap, edge by edge
        marks.append(Line(line[:, 0], line[:, 1], "edges"))
    for number, name in enumerate(found.classes):
        mine = places[found.y == number]
        marks.append(Points(mine[:, 0], mine[:, 1], name))
    return Figure("Nodes by the features before the last layer", "first direction", "second direction", marks)


@torch.no_grad()
def oversmoothing(network: nn.Module, graph: Graph, test: Examples) -> Figure:
    r"""What is left of a network's features when the graph mixes them k times more before the last layer.

    Shown is the energy $\langle H, (I - \bar A)H\rangle / \|H\|^2$ of $H = \bar A^k H_0$ as part of that of $H_0$: zero
    where neighbours are the same but for their degrees.
    """
    features, coupling, last = features_of(network, graph), normalized_adjacency(graph), _last_layer(network)
    energies, accuracies = [], []
    for _ in range(MIXINGS + 1):
        mixed = row_sums(features, coupling.incoming, coupling.outgoing, coupling.edge_weights)  # (nodes, width)
        energies.append(1 - float((features * mixed).sum() / features.square().sum().clamp(min=TINY)))
        accuracies.append(accuracy(last(features, graph)[test.node], test.y).item())
        features = mixed
    steps, left = range(MIXINGS + 1), [energy / max(energies[0], TINY) for energy in energies]
    marks = [Line(steps, accuracies, "accuracy on the test"), Line(steps, left, "differences left between neighbours")]
    return Figure("Over-smoothing", "times that the graph mixes the features before the last layer", "", marks)
