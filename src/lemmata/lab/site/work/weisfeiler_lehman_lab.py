r"""The Weisfeiler-Lehman lab: two graphs, coloured round by round, until their colours part or nothing changes."""

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.figure import Bars, Figure
from lemmata.geometric.gin import GINConvolution
from lemmata.geometric.graph import Graph
from lemmata.geometric.graph_batches import batch_graphs
from lemmata.geometric.message_passing import MessagePassing
from lemmata.geometric.weisfeiler_lehman import refine_colours
from lemmata.lab.site.labs import LabState
from lemmata.lab.site.work.drawn_graphs import edges_once, graph_figure, placed, rounded
from lemmata.train.randomness import seeded

LAB = {
    "title": "Colours of Weisfeiler and Lehman",
    "sentence": "Colour two graphs round by round: different colours prove that they differ, equal ones prove nothing.",
    "year": 1968,
    "chapter": "geometric",
    "claims": ("graph.wl", "graph.wl.bound", "graph.message_passing"),
    "systems": ("weisfeiler_lehman", "gin", "message_passing"),
    "command": "lemmata check 'graph.wl*'",
    "thumbnail": {"pair": "decalin", "rounds": "3"},
}

MOST = 6  # rounds
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SAME = 1e-9  # outputs nearer than this are the same but for rounding


class State(LabState):
    """Which two graphs, after how many rounds, and whether one node of each begins in a colour of its own."""

    pair: Literal["hexagon", "decalin", "hexanes", "nonanes", "house", "star", "rook"] = "hexagon"
    rounds: Annotated[int, Field(ge=0, le=MOST)] = 1
    start: Literal["alike", "marked"] = "alike"


class Drawn(NamedTuple):
    """A graph, what it is called, and where its nodes are drawn, from -1 to 1."""

    name: str
    graph: Graph
    places: Tensor


# --- The graphs ---


def round_about(nodes: int, radius: float = 0.9, x: float = 0.0, turn: float = 0.0) -> Tensor:
    """Places on a circle, the first on top, clockwise."""
    angle = 2 * math.pi * (torch.arange(nodes).double() / nodes + turn)
    return torch.stack([x + radius * angle.sin(), radius * angle.cos()], 1)


def ring(nodes: int, first: int = 0) -> list[tuple[int, int]]:
    return [(first + k, first + (k + 1) % nodes) for k in range(nodes)]


def drawn(name: str, edges: list[tuple[int, int]], places: Tensor | str) -> Drawn:
    where = placed(places) if isinstance(places, str) else places
    return Drawn(name, Graph(edges, len(where)).undirected(), where)


def alkane(name: str, length: int, at: int) -> Drawn:
    """The carbon skeleton of a chain in zigzag, with one more carbon at one of them."""
    x = torch.linspace(-0.9, 0.9, length).double()
    y = 0.25 * (-1.0) ** torch.arange(length)
    branch = torch.stack([x[at], y[at] + 0.45 * y[at].sign()])
    edges = [(k, k + 1) for k in range(length - 1)] + [(at, length)]
    return drawn(name, edges, torch.cat([torch.stack([x, y.double()], 1), branch[None].double()]))


def torus(name: str, steps: set[tuple[int, int]]) -> Drawn:
    """Sixteen nodes on a square whose sides are glued, joined to those at these steps; drawn on a circle."""
    edges = [
        (4 * a + b, 4 * ((a + across) % 4) + (b + up) % 4) for a in range(4) for b in range(4) for across, up in steps
    ]
    return drawn(name, edges, round_about(16))


PAIRS: dict[str, tuple[Callable[[], tuple[Drawn, Drawn]], str]] = {
    "hexagon": (
        lambda: (
            drawn("a hexagon", ring(6), round_about(6)),
            drawn(
                "two triangles",
                ring(3) + ring(3, 3),
                torch.cat([round_about(3, 0.45, -0.5), round_about(3, 0.45, 0.5, 0.5)]),
            ),
        ),
        "they differ: one is in one piece, the other in two",
    ),
    "decalin": (
        lambda: (
            drawn(
                "decalin",
                [*ring(10), (0, 5)],
                "0,30 43,55 87,30 87,-30 43,-55 0,-30 -43,-55 -87,-30 -87,30 -43,55",
            ),
            drawn(
                "bicyclopentyl",
                [*ring(5), *ring(5, 5), (0, 5)],
                "-18,0 -46,-42 -92,-26 -92,26 -46,42 18,0 46,42 92,26 92,-26 46,-42",
            ),
        ),
        "they differ: one has rings of six, the other rings of five",
    ),
    "hexanes": (
        lambda: (alkane("2-methylhexane", 6, 1), alkane("3-methylhexane", 6, 2)),
        "they differ: the branch sits elsewhere",
    ),
    "nonanes": (
        lambda: (alkane("4-methylnonane", 9, 3), alkane("5-methylnonane", 9, 4)),
        "they differ: the branch sits elsewhere",
    ),
    "house": (
        lambda: (
            drawn(
                "a house",
                [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (3, 4), (4, 2)],
                "-60,-85 60,-85 60,15 -60,15 0,85",
            ),
            drawn(
                "the same house",
                [(4, 2), (2, 0), (0, 3), (3, 4), (4, 0), (2, 3), (3, 1), (1, 2)],
                "0,35 0,-85 85,-20 -85,-20 0,85",
            ),
        ),
        "they are the same graph, drawn in two ways",
    ),
    "star": (
        lambda: (
            drawn("a path", [(0, 1), (1, 2), (2, 3)], "-90,-20 -30,20 30,-20 90,20"),
            drawn("a star", [(0, 1), (0, 2), (0, 3)], "0,-10 0,80 -78,-55 78,-55"),
        ),
        "they differ: only one has a node with three neighbours",
    ),
    "rook": (
        lambda: (
            torus("the rook’s graph", {(0, k) for k in (1, 2, 3)} | {(k, 0) for k in (1, 2, 3)}),
            torus("Shrikhande’s graph", {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}),
        ),
        "they differ: only one has four nodes that are all joined to each other",
    ),
}


@functools.cache
def pair(name: str) -> tuple[Drawn, Drawn, Graph]:
    """Both graphs, and both as one."""
    one, other = PAIRS[name][0]()
    return one, other, batch_graphs([one.graph, other.graph])


# --- Colours ---


def start(state: State) -> Tensor:
    """Colours to begin with: all nodes alike, or the first of each graph in one of its own."""
    one, _, both = pair(state.pair)
    colours = torch.zeros(both.nodes, dtype=torch.int64)
    if state.start == "marked":
        colours[[0, one.graph.nodes]] = 1
    return colours


def coloured(state: State) -> list[list[int]]:
    """Small numbers for the colours after 0, 1, ... rounds; of a class that splits, the largest part keeps its own."""
    both, begun = pair(state.pair)[2], start(state)
    history = [begun.tolist()]
    for number in range(1, state.rounds + 1):
        hashes = refine_colours(both, begun, number).colours.tolist()
        members: dict[int, list[int]] = {}
        for node, colour in enumerate(hashes):
            members.setdefault(colour, []).append(node)
        before, known, names = history[-1], len(set(history[-1])), {}
        taken: set[int] = set()
        for colour, nodes in sorted(members.items(), key=lambda item: (-len(item[1]), item[1])):
            own = before[nodes[0]]
            names[colour] = known if own in taken else own
            known += own in taken
            taken.add(own)
        history.append([names[colour] for colour in hashes])
    return history


def counts(state: State, colours: list[int]) -> list[list[int]]:
    """How often each colour comes in each graph: (colours, 2)."""
    nodes = pair(state.pair)[0].graph.nodes
    return [[part.count(colour) for part in (colours[:nodes], colours[nodes:])] for colour in range(max(colours) + 1)]


def parted(state: State) -> int | None:
    """After how many rounds the colours of the two graphs part, if they ever do."""
    both, begun, nodes = pair(state.pair)[2], start(state), pair(state.pair)[0].graph.nodes
    for number in range(refine_colours(both, begun).rounds + 1):
        colours = refine_colours(both, begun, number).colours
        if not torch.equal(colours[:nodes].sort().values, colours[nodes:].sort().values):
            return number
    return None


# --- Networks ---


@torch.no_grad()
def outputs(state: State, reduce: str) -> list[float]:
    """What a network with as many layers as rounds and drawn weights says of each graph: the mean over its nodes."""
    one, _, both = pair(state.pair)
    x = torch.stack([torch.ones(both.nodes).double(), start(state).double()], 1)
    with seeded(0):
        first, last = nn.Linear(2, 8).double(), nn.Linear(8, 1).double()
        layers = [layer(reduce).double() for _ in range(state.rounds)]
    x = first(x)
    for each in layers:
        x = each(x, both).tanh()
    said = last(x)[:, 0]
    return [float(part.mean()) for part in said.split([one.graph.nodes, both.nodes - one.graph.nodes])]


def layer(reduce: str) -> nn.Module:
    """Of GIN, which adds; or one that takes means or maxima instead."""
    if reduce == "sum":
        return GINConvolution(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)))
    return MessagePassing(nn.Linear(8, 8), nn.Linear(16, 8), reduce)


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """Both graphs in their colours, where each colour comes from, how often it comes, and what networks say."""
    one, other, both = pair(state.pair)
    history = coloured(state)
    now, before = history[-1], history[-2] if state.rounds else None
    found = {reduce: outputs(state, reduce) for reduce in ("sum", "mean", "max")}
    sides = [
        {"name": each.name, "places": rounded(each.places), "edges": edges_once(each.graph).tolist()}
        for each in (one, other)
    ]
    return {
        "sides": sides,
        "colours": now,
        "before": before,
        "kinds": kinds(both, now, before),
        "counts": counts(state, now),
        "parted": parted(state),
        "stable": refine_colours(both, start(state)).rounds,
        "truth": PAIRS[state.pair][1],
        "networks": [[reduce, *said, abs(said[0] - said[1]) > SAME] for reduce, said in found.items()],
        "python": python(state),
        "figures": {"counts": histogram(state)},
    }


def kinds(both: Graph, now: list[int], before: list[int] | None) -> list[list[Any]]:
    """For each colour: what its nodes were before, and what they heard from their neighbours; equal for all of them."""
    if before is None:
        return [[colour, []] for colour in range(max(now) + 1)]
    sources, targets = both.edges.tolist()
    heard: list[list[int]] = [[] for _ in now]
    for source, target in zip(sources, targets, strict=True):
        heard[target].append(before[source])
    first = [now.index(colour) for colour in range(max(now) + 1)]
    return [[before[node], sorted(heard[node])] for node in first]


def histogram(state: State) -> Figure:
    """How often each colour comes on the left and on the right."""
    one, other, _ = pair(state.pair)
    found = counts(state, coloured(state)[-1])
    names = [LETTERS[colour] for colour in range(len(found))]
    marks = [Bars(names, [row[side] for row in found], each.name) for side, each in enumerate((one, other))]
    return Figure(f"Nodes of each colour after round {state.rounds}", "colour", "nodes", marks)


def still(state: State) -> Figure:
    """Both graphs side by side."""
    one, other, both = pair(state.pair)
    aside = torch.tensor([1.1, 0.0]).double()
    places = torch.cat([one.places - aside, other.places + aside])
    colours = torch.tensor(coloured(state)[-1]).double()
    title = f"{one.name} and {other.name} after {state.rounds} rounds"
    return graph_figure(title[0].upper() + title[1:], both, places, colours, "colour")


def python(state: State) -> str:
    """The same in Python."""
    one, other, _ = pair(state.pair)
    lists = [[tuple(edge) for edge in edges_once(each.graph).tolist()] for each in (one, other)]
    marked = state.start == "marked"
    begun = "\nbegin = torch.zeros(one.nodes, dtype=torch.int64)\nbegin[0] = 1" if marked else ""
    colours = ", begin" if marked else ""
    return (
        f"{'import torch' + chr(10) if marked else ''}from lemmata.geometric import Graph, refine_colours\n\n"
        f"one = Graph({lists[0]}).undirected()\n"
        f"other = Graph({lists[1]}).undirected(){begun}\n"
        "histograms = [\n"
        f"    refine_colours(graph{colours}, rounds={state.rounds}).histogram() for graph in (one, other)\n"
        "]\n"
        "print(*histograms, sep='\\n')\nprint(histograms[0] == histograms[1])"
    )
