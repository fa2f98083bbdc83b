r"""The oversmoothing lab: two nodes of a real graph say what they are, layer after layer passes it on, and it fades."""

import functools
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from lemmata.data.graphs import debian, karate
from lemmata.figure import Figure, Line, Points
from lemmata.geometric.gcn import GCNConvolution, normalized_adjacency
from lemmata.geometric.graph import Graph
from lemmata.geometric.message_passing import aggregate_neighbours
from lemmata.lab.site.labs import LabState
from lemmata.lab.site.work.drawn_graphs import CLUB, PACKAGES, edges_once, graph_figure, placed, rounded

LAB = {
    "title": "Oversmoothing",
    "sentence": "Drag the depth of a graph network: a few layers tell the nodes apart, many make them all alike.",
    "year": 2018,
    "chapter": "geometric",
    "claims": ("graph.limit.oversmoothing", "graph.limit.depth", "graph.gcn.coupling", "graph.gcn.spectral_norm"),
    "systems": ("gcn_convolution", "gcn", "message_passing"),
    "command": "lemmata check 'graph.limit.*'",
    "thumbnail": {"graph": "debian", "depth": "3"},
}

DEEPEST = 64
TIED = 1e-9  # features this near each other, of their sum, are the same but for rounding


class State(LabState):
    """The graph, how many layers, how they mix the nodes, and what they keep of what was before."""

    graph: Literal["karate", "debian"] = "karate"
    depth: Annotated[int, Field(ge=0, le=DEEPEST)] = 4
    mix: Literal["coupling", "mean"] = "coupling"
    skip: Literal["none", "residual", "initial"] = "none"
    alpha: Annotated[float, Field(ge=0.05, le=0.5)] = 0.1


class Scene(NamedTuple):
    """A graph whose nodes belong to one of two groups, with one node of each that is known."""

    graph: Graph
    places: Tensor
    y: Tensor
    known: tuple[int, int]
    names: tuple[str, ...]
    groups: tuple[str, str]
    values: Tensor  # the coupling's eigenvalues, ascending: the last is one
    waves: Tensor  # its eigenvectors, as columns


@functools.cache
def scene(name: str) -> Scene:
    """The karate club with its two leaders, or ghostscript and imagemagick with the packages of their section near."""
    if name == "karate":
        club = karate()
        graph, y, known, names, places = Graph.of(club), club.y, (0, 33), club.names, placed(CLUB)
        names = tuple(name if name.isalpha() else f"member {name}" for name in names)
        groups = ("the instructor", "the officer")
    else:
        packages = debian().undirected()
        hubs = [packages.names.index(hub) for hub in ("ghostscript", "imagemagick")]
        sources, targets = packages.edges
        near = torch.cat([targets[(sources == hub) & (packages.y[targets] == packages.y[hub])] for hub in hubs])
        nodes = torch.cat([near, torch.tensor(hubs)]).unique()  # ascending
        graph = Graph(packages.edges, len(packages.y))
        graph, places = within(graph, nodes), placed(PACKAGES)
        y = (packages.y[nodes] != packages.y[hubs[0]]).long()
        known = (nodes.tolist().index(hubs[0]), nodes.tolist().index(hubs[1]))
        names, groups = tuple(packages.names[node] for node in nodes.tolist()), ("text", "graphics")
    graph = graph.undirected().replace(x=None)
    values, waves = torch.linalg.eigh(normalized_adjacency(graph, torch.float64).dense(torch.float64))
    return Scene(graph, places, y, known, names, groups, values, waves)


def within(graph: Graph, nodes: Tensor) -> Graph:
    """These nodes, numbered anew, and the edges between them."""
    number = torch.full((graph.nodes,), -1).index_copy(0, nodes, torch.arange(len(nodes)))
    edges = number[graph.edges]
    return Graph(edges[:, (edges >= 0).all(0)], len(nodes))


# --- What the layers do, and what is known of it ---


def kept(state: State, mixed: Any, before: Any, start: Any) -> Any:
    """What a layer gives, from its mixture of neighbours, what it was given, and what the first one was given."""
    if state.skip == "residual":
        return (before + mixed) / 2
    return state.alpha * start + (1 - state.alpha) * mixed if state.skip == "initial" else mixed


@torch.no_grad()
def layers(state: State) -> Tensor:
    """The features of all nodes after 0 to 64 layers with unit weights: (65, nodes, 2)."""
    here = scene(state.graph)
    x = torch.zeros(here.graph.nodes, 2, dtype=torch.float64)
    x[here.known[0], 0] = x[here.known[1], 1] = 1.0
    layer = GCNConvolution(2, 2, bias=False, dtype=torch.float64)
    torch.nn.init.eye_(layer.lin.weight)
    coupling, looped, found = normalized_adjacency(here.graph, torch.float64), here.graph.with_self_loops(), [x]
    for _ in range(DEEPEST):
        x = found[-1]
        mean = state.mix == "mean"
        mixed = aggregate_neighbours(x, looped, "mean") if mean else layer(x, coupling, normalized=True)
        found.append(kept(state, mixed, x, found[0]))
    return torch.stack(found)


def scale(state: State) -> Tensor:
    """What nodes are multiplied by, so that the mixture is the symmetric coupling: with means, roots of the degrees."""
    degrees = scene(state.graph).graph.degrees(dtype=torch.float64) + 1
    return degrees.sqrt()[:, None] if state.mix == "mean" else torch.ones_like(degrees)[:, None]


def left(state: State, features: Tensor) -> Tensor:
    """How large what is not the limit's one direction is at each depth, beside how large it was: (depths,)."""
    u = scene(state.graph).waves[:, -1:]
    scaled = features * scale(state)
    return torch.linalg.matrix_norm(scaled - u @ (u.mT @ scaled)) / torch.linalg.matrix_norm(
        scaled[0] - u @ (u.mT @ scaled[0])
    )


def bound(state: State) -> Tensor:
    """The most that 0 to 64 layers let pass of any wave but the last: (65,)."""
    others = scene(state.graph).values[:-1]
    passed = [torch.ones_like(others)]
    for _ in range(DEEPEST):
        passed.append(kept(state, others * passed[-1], passed[-1], passed[0]))
    return torch.stack(passed).abs().amax(1)


def limit(state: State, start: Tensor) -> Tensor:
    """The features after endlessly many layers."""
    here = scene(state.graph)
    passed = torch.zeros_like(here.values)
    if state.skip == "initial":
        passed = state.alpha / (1 - (1 - state.alpha) * here.values)
    passed[-1] = 1.0
    return here.waves @ (passed[:, None] * (here.waves.mT @ (start * scale(state)))) / scale(state)


def shares(x: Tensor) -> Tensor:
    """From 1, where a node heard of the first group alone, to -1; 0 where of both alike, or of none."""
    difference, total = x[..., 0] - x[..., 1], x.sum(-1)
    return torch.where(difference.abs() > TIED * total, difference / total.clamp(min=1e-300), 0.0)


def right(state: State, features: Tensor) -> Tensor:
    """How many nodes hear more of their own group, at each depth: (depths,)."""
    return (shares(features).sign() == 1 - 2 * scene(state.graph).y).sum(-1)


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """The nodes on the graph and by their features, and for all depths how many are told and what is left."""
    here, features = scene(state.graph), layers(state)
    x, end = features[state.depth], limit(state, features[0])
    found, most = right(state, features), torch.cat([x, end]).max()
    fades, allowed = left(state, features), bound(state)
    return {
        "places": rounded(here.places),
        "edges": edges_once(here.graph).tolist(),
        "names": here.names,
        "groups": here.groups,
        "y": here.y.tolist(),
        "known": here.known,
        "shares": rounded(shares(x)),
        "x": rounded(x / most),
        "end": rounded(end / most),
        "right": int(found[state.depth]),
        "best": [int(found.max()), found.tolist().index(int(found.max()))],  # the first such depth
        "left": float(fades[state.depth]),
        "bound": float(allowed[state.depth]),
        "second": float(here.values[:-1].abs().max()),
        "python": python(state),
        "figures": {"left": faded(state, fades, allowed), "right": told(state, found)},
    }


def faded(state: State, fades: Tensor, allowed: Tensor) -> Figure:
    """What is left at every depth, below what the eigenvalues allow."""
    depths = list(range(DEEPEST + 1))
    marks = [
        Line(depths, allowed, "at most, by the eigenvalues"),
        Line(depths, fades, "measured"),
        Points([state.depth], [fades[state.depth]], "here"),
    ]
    return Figure("What is left of the differences between nodes", "layers", "", marks, y_log=True)


def told(state: State, found: Tensor) -> Figure:
    """How many nodes are told right at every depth."""
    marks = [Line(list(range(DEEPEST + 1)), found, "right"), Points([state.depth], [int(found[state.depth])], "here")]
    return Figure(f"Told right, of {len(scene(state.graph).y)}", "layers", "nodes", marks)


def still(state: State) -> Figure:
    """The graph in the colours of what each node heard more of."""
    here = scene(state.graph)
    values = shares(layers(state)[state.depth])
    label = f"1: heard of {here.groups[0]} alone, −1: of {here.groups[1]}"
    return graph_figure(f"After {state.depth} layers", here.graph, here.places, values, label)


def python(state: State) -> str:
    """The same in Python."""
    graphs = {
        "karate": 'data = load("karate")\ngraph, y, known = Graph.of(data).undirected(), data.y, (0, 33)',
        "debian": 'data = load("debian").undirected()\n'
        'hubs = [data.names.index(name) for name in ("ghostscript", "imagemagick")]\n'
        "sources, targets = data.edges\n"
        "near = [targets[(sources == hub) & (data.y[targets] == data.y[hub])] for hub in hubs]\n"
        "nodes = torch.cat([*near, torch.tensor(hubs)]).unique()\n"
        "edges = torch.full(data.y.shape, -1).index_copy(0, nodes, torch.arange(len(nodes)))[data.edges]\n"
        "graph, y = Graph(edges[:, (edges >= 0).all(0)]), (data.y[nodes] != data.y[hubs[0]]).long()\n"
        "known = [nodes.tolist().index(hub) for hub in hubs]",
    }
    layer = {
        "none": "mixed",
        "residual": "(x + mixed) / 2",
        "initial": f"{state.alpha:g} * start + {1 - state.alpha:g} * mixed",
    }
    mean = state.mix == "mean"
    imported = "Graph, aggregate_neighbours" + ("" if mean else ", normalized_adjacency")
    coupled = 'graph.with_self_loops(), "mean"' if mean else "normalized_adjacency(graph, torch.float64)"
    return (
        f"import torch\nfrom lemmata.data import load\nfrom lemmata.geometric import {imported}\n\n"
        f"{graphs[state.graph]}\n"
        "start = torch.zeros(graph.nodes, 2, dtype=torch.float64)\n"
        "start[known[0], 0] = start[known[1], 1] = 1\n"
        "x = start\n"
        f"for depth in range({state.depth}):\n"
        f"    mixed = aggregate_neighbours(x, {coupled})\n"
        f"    x = {layer[state.skip]}\n"
        "told = (x[:, 0] - x[:, 1]).sign() == 1 - 2 * y\n"
        "print(x)\nprint(int(told.sum()))"
    )
