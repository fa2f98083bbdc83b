r"""What the labs of graphs share: where nodes are drawn, and a graph as a figure."""

import math
from typing import Any

import torch
from torch import Tensor

from lemmata.figure import Figure, Line, Polygons
from lemmata.geometric.graph import Graph

__all__ = ["CLUB", "PACKAGES", "edges_once", "graph_figure", "placed", "rounded"]

# Where nodes are drawn, from -100 to 100: by Kamada and Kawai's springs, then pushed apart. The members of the karate
# club, and the packages of Debian around ghostscript and imagemagick, in the order of the data set.
CLUB = (
    "-2,24 -35,15 7,-14 22,13 30,50 29,66 -7,65 46,10 -39,-15 7,-47 64,47 -41,58 74,29 -22,-8 -100,-49 -93,-63 23,100 "
    "-59,45 -80,-75 -58,-6 -61,-84 -76,36 -36,-87 38,-72 100,-48 96,-32 -15,-100 47,-47 28,-47 6,-84 -78,-24 30,-22 "
    "-40,-49 -24,-53"
)
PACKAGES = (
    "-24,24 -21,-37 -72,-84 3,-51 3,-34 -49,-100 96,-39 53,-35 97,19 95,38 32,-75 5,26 -57,90 -77,40 41,64 -40,1 6,48 "
    "55,49 -19,-16 -39,90 87,54 -71,83 -1,4 35,1 -97,31 76,-31 46,-60 78,68 76,0 84,-53 67,80 -55,-41 -88,60 39,86 "
    "6,-16 74,29 -9,37 -69,63 -10,-58 55,92 -74,-64 30,100 -100,9 -72,2 -90,-52 -96,-10 54,-91 66,-79 -95,-33 39,-98 "
    "98,-19 -53,-81 79,-71 100,1 -10,57 20,-89 14,77"
)
RADIUS = 0.05  # of a node, where a graph reaches from -1 to 1


def placed(text: str) -> Tensor:
    """Places from -1 to 1, (nodes, 2)."""
    return torch.tensor([[int(c) for c in pair.split(",")] for pair in text.split()]).double() / 100


def rounded(values: Tensor) -> list[Any]:
    """As many digits as a picture needs."""
    return (values * 1000).round().div(1000).tolist()


def edges_once(graph: Graph) -> Tensor:
    """The edges of an undirected graph, each in one direction: (edges, 2)."""
    sources, targets = graph.edges
    once = sources < targets
    return torch.stack([sources[once], targets[once]], 1)


def graph_figure(title: str, graph: Graph, places: Tensor, values: Tensor, label: str, note: str = "") -> Figure:
    """Nodes as small areas in the colour of their value, edges as lines between them."""
    turn = 2 * math.pi * torch.arange(8).double() / 8
    corners = places[:, None] + RADIUS * torch.stack([turn.cos(), turn.sin()], 1)  # (nodes, corners, 2)
    n, m = edges_once(graph).mT
    apart = places[m] - places[n]
    short = RADIUS * apart / apart.norm(dim=1, keepdim=True)  # edges end where nodes begin
    gap = torch.full((len(n), 2), math.nan).double()
    edges = torch.stack([places[n] + short, places[m] - short, gap], 1).reshape(-1, 2)
    areas = Polygons(rounded(corners[..., 0]), rounded(corners[..., 1]), rounded(values), label)
    return Figure(title, marks=[areas, Line(rounded(edges[:, 0]), rounded(edges[:, 1]))], note=note)
