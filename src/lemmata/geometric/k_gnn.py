r"""Graph networks of higher order: messages between sets of nodes, which tell apart what nodes alone cannot."""

import itertools
import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.sparse.rows import Rows, rows_of
from lemmata.geometric.graph import Graph, check_graph, check_nodes
from lemmata.geometric.graph_batches import batch_graphs, pool_nodes
from lemmata.geometric.message_passing import aggregate_neighbours
from lemmata.geometric.weisfeiler_lehman import refine_colours
from lemmata.marks import system

__all__ = ["KGNN", "GraphConvolution", "NodeSets", "node_sets", "same_set_colours"]

LARGEST = 3  # up to three nodes, the number of edges between them says how they are joined


class NodeSets(NamedTuple):
    """All sets of k nodes, as the nodes of a second graph whose edges join neighbouring sets.

    `members` has the nodes of each set, ascending; `degrees` how many nodes of the set each of them is joined to;
    `kinds` how many edges the set has, which for two or three nodes is how they are joined.
    """

    members: Int[Tensor, "sets k"]
    degrees: Int[Tensor, "sets k"]
    kinds: Int[Tensor, " sets"]
    graph: Graph


def node_sets(graph: Graph, size: int = 2, local: bool = True) -> NodeSets:
    r"""The sets of `size` nodes of each graph; two are neighbours if they exchange one node for an adjacent one.

    $$ N(s) = \{\, s \setminus \{v\} \cup \{w\} : v \in s,\ w \notin s,\ \{v, w\} \in E \,\} $$

    Of M nodes there are $\binom Mk$ sets. With `local=False` any exchange makes a neighbour, adjacent or not. Edges
    count once, those from a node to itself not at all; the graph must be undirected. Computed once for a graph.

    >>> path = Graph([[0, 1], [1, 2]]).undirected()
    >>> pairs = node_sets(path)
    >>> pairs.members.tolist(), pairs.kinds.tolist(), pairs.graph
    ([[0, 1], [0, 2], [1, 2]], [1, 0, 1], Graph(3 nodes, 4 edges))
    """
    validate.count("size", size, most=LARGEST)
    validate.flag("local", local)
    return check_graph(graph).once(("node sets", size, local), lambda: _made_sets(graph, size, local))


def _made_sets(graph: Graph, size: int, local: bool) -> NodeSets:
    edges = graph.edges
    if not Graph(edges, graph.nodes).simple("amax").is_undirected:
        raise ValueError("graph must have each edge in both directions, got some in one: use graph.undirected()")
    # As one number for both ends, edges are sorted and looked up.
    joined = (edges[0] * graph.nodes + edges[1])[edges[0] != edges[1]].unique()
    members = _node_combinations(graph, size)  # (sets, k)
    degrees = torch.zeros_like(members)
    for one, other in itertools.combinations(range(size), 2):
        there = torch.isin(members[:, one] * graph.nodes + members[:, other], joined).long()
        degrees[:, one] += there
        degrees[:, other] += there
    if local:
        rows = rows_of(joined // max(graph.nodes, 1), joined % max(graph.nodes, 1), graph.nodes)
    else:
        pairs = _node_combinations(graph, 2)
        both = torch.cat([pairs, pairs.flip(1)])
        rows = rows_of(both[:, 0], both[:, 1], graph.nodes)
    found = _node_exchanges(members, rows, graph.nodes)
    home = None if graph.graph_of is None else graph.graph_of[members[:, 0]]
    between = Graph(found, len(members), graph_of=home, graphs=None if home is None else graph.graphs)
    return NodeSets(members, degrees, degrees.sum(1) // 2, between)


def _node_combinations(graph: Graph, size: int) -> Int[Tensor, "sets k"]:
    """The sets of so many nodes of one graph each, in lexicographic order."""
    of = torch.zeros(graph.nodes, dtype=torch.int64, device=graph.device) if graph.graph_of is None else graph.graph_of
    counts = torch.bincount(of, minlength=graph.graphs)
    starts = counts.cumsum(0) - counts
    parts = []
    for count in counts.unique().tolist():  # graphs of one size have the same sets
        nodes = torch.arange(count, device=graph.device)
        sets = torch.combinations(nodes, size)  # (sets, k)
        parts.append((starts[counts == count][:, None, None] + sets).flatten(0, 1))
    found = torch.cat(parts) if parts else of.new_zeros(0, size)
    return found[_colour_key(found, graph.nodes).argsort()]


def _colour_key(members: Tensor, nodes: int) -> Int[Tensor, " sets"]:
    """One number for each set, in their order."""
    places = [nodes ** (members.shape[1] - 1 - place) for place in range(members.shape[1])]
    return (members * members.new_tensor(places)).sum(1)


def _node_exchanges(members: Tensor, rows: Rows, nodes: int) -> Int[Tensor, "2 edges"]:
    """The edges between sets that differ in one node, where the rows have the one node beside the other."""
    keys, lengths = _colour_key(members, nodes), rows.lengths()
    found = []
    for place in range(members.shape[1]):
        given = members[:, place]
        many = lengths[given]  # (sets,) how many nodes this one can be exchanged for
        which = torch.arange(len(members), device=members.device).repeat_interleave(many)
        step = torch.arange(len(which), device=members.device) - (many.cumsum(0) - many)[which]
        taken = rows.columns[rows.pointers[given][which] + step]
        new = (members[which] != taken[:, None]).all(1)
        which, taken = which[new], taken[new]
        exchanged = members[which].clone()
        exchanged[:, place] = taken
        others = torch.searchsorted(keys, _colour_key(exchanged.sort(1).values, nodes))
        found.append(torch.stack([others, which]))
    return torch.cat(found, 1)


def same_set_colours(one: Graph, other: Graph, size: int = 2, local: bool = True) -> bool:
    """Whether refining the colours of sets of nodes gives two graphs the same histogram, as `same_colours` for nodes.

    >>> hexagon = Graph([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]).undirected()
    >>> triangles = Graph([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]).undirected()
    >>> same_set_colours(hexagon, triangles, size=1), same_set_colours(hexagon, triangles, size=2)
    (True, False)
    """
    if check_graph(one).nodes != check_graph(other).nodes:
        return False
    sets = node_sets(batch_graphs([Graph(graph.edges, graph.nodes) for graph in (one, other)]), size, local)
    plain = Graph(sets.graph.edges, sets.graph.nodes)
    found = refine_colours(plain, sets.kinds).colours
    half = len(found) // 2
    return torch.equal(found[:half].sort().values, found[half:].sort().values)


class GraphConvolution(nn.Module):
    r"""The layer of Morris et al.: a linear map of each node and one of the sum of its neighbours.

    $$ x_m' = W_1 x_m + W_2 \sum_{n \to m} x_n + b $$

    Shapes:
        x: (nodes, inputs)    returns: (nodes, outputs)

    Claims: graph.kgnn
    Source: C. Morris et al., Weisfeiler and Leman go neural (2019). Weights have PyTorch Geometric's names.

    >>> GraphConvolution(3, 2)(torch.randn(4, 3), Graph([[0, 1], [1, 2]], nodes=4)).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        self.lin_rel = nn.Linear(inputs, outputs, device=device, dtype=dtype)
        self.lin_root = nn.Linear(inputs, outputs, bias=False, device=device, dtype=dtype)

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        check_nodes(x, graph, self.inputs)
        return self.lin_root(x) + self.lin_rel(aggregate_neighbours(x, graph, "sum"))


@system(
    "k_gnn",
    title="Higher-order graph network",
    kind="module",
    example="KGNN(inputs=3, outputs=2, width=8)(torch.randn(5, 3), Graph([[0, 1], [1, 0], [1, 2], [2, 1]], nodes=5))",
)
class KGNN(nn.Module):
    r"""A network of whole graphs whose messages go between sets of k nodes in place of nodes.

    $$ x_s' = \sigma\Big(W_1 x_s + W_2 \sum_{u \in N(s)} x_u + b\Big), \qquad
       Y = \rho\Big(\sum_{|s| = k} x_s^{(L)}\Big) $$

    A set starts with how its nodes are joined, one-hot, with the sum of their features, and with that sum weighted by
    how many others of the set each node is joined to: for features that are one-hot and k up to three, that is the set
    up to isomorphism. With `size=1` it is message passing between nodes, with 2 it tells a hexagon from two triangles.
    Time and memory grow like the number of sets times their neighbours: pairs for graphs of some hundreds of nodes,
    triples for molecules.

    Shapes:
        x: (nodes, inputs)    graph: several side by side, or one    returns: (graphs, outputs)

    Claims: graph.kgnn
    Source: C. Morris et al., Weisfeiler and Leman go neural (2019).
    Differs: every set takes part, joined or not, and no features come from a network of smaller sets.

    >>> hexagon = Graph([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]).undirected()
    >>> KGNN(inputs=3, outputs=2, size=3)(torch.randn(6, 3), hexagon).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int = 2,
        width: int = 32,
        depth: int = 3,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        self.size = validate.count("size", size, most=LARGEST)
        validate.count("width", width)
        validate.count("depth", depth)
        self.kinds = math.comb(size, 2) + 1  # from no edge to all of them
        place = {"device": device, "dtype": dtype}
        sizes = [self.kinds + 2 * inputs, *[width] * depth]
        self.layers = nn.ModuleList(GraphConvolution(*pair, **place) for pair in itertools.pairwise(sizes))
        self.read_out = nn.Sequential(nn.Linear(width, width, **place), nn.ReLU(), nn.Linear(width, outputs, **place))

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "graphs outputs"]:
        return self.read_out(self.embed(x, graph))

    def embed(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "graphs width"]:
        """The sum over each graph's sets, of which the perceptron reads the outputs."""
        check_nodes(x, graph, self.inputs)
        sets = node_sets(graph, self.size)
        x = self.set_features(x, sets)  # (sets, kinds + 2 inputs)
        for layer in self.layers:
            x = layer(x, sets.graph).relu()  # (sets, width)
        return pool_nodes(sets.graph, x, "sum")

    def set_features(self, x: Float[Tensor, "nodes inputs"], sets: NodeSets) -> Float[Tensor, "sets features"]:
        """What each set starts with: how it is joined, and sums over its nodes."""
        each = x[sets.members]  # (sets, k, inputs)
        kinds = functional.one_hot(sets.kinds, self.kinds).to(x.dtype)
        weighted = (each * sets.degrees[:, :, None].to(x.dtype)).sum(1)
        return torch.cat([kinds, each.sum(1), weighted], 1)
