r"""The graph filter lab: a frequency response is drawn, and what it makes of a signal on a graph is seen."""

import functools
import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.data.graphs import karate
from lemmata.figure import Figure, Points
from lemmata.geometric.chebyshev_convolution import chebyshev_terms
from lemmata.geometric.graph import Graph
from lemmata.geometric.graph_fourier import GraphFourier
from lemmata.geometric.graph_laplacian import GraphLaplacian
from lemmata.geometric.spectral_filters import spectral_filter
from lemmata.lab.site.labs import LabState
from lemmata.lab.site.work.drawn_graphs import CLUB, edges_once, graph_figure, placed, rounded

LAB = {
    "title": "Filters on a graph",
    "sentence": "Draw how much of each frequency a filter lets pass, and see what it makes of a signal on a graph.",
    "year": 2013,
    "chapter": "geometric",
    "claims": (
        "graph.fourier",
        "graph.spectral_filter",
        "graph.polynomial_filter",
        "graph.polynomial_locality",
        "graph.chebnet",
    ),
    "systems": ("graph_laplacian", "graph_fourier", "spectral_filter", "chebnet"),
    "command": "lemmata check graph.spectral_filter graph.chebnet",
    "thumbnail": {"signal": "groups", "response": "heat"},
}

KNOTS = 9  # frequencies at which the response is drawn: 0, 1/4, ..., 2
RESPONSES = {
    "low": "10,10,8,4,1,0,0,0,0",
    "high": "0,0,0,1,4,8,10,10,10",
    "band": "0,2,8,10,8,2,0,0,0",
    "heat": "10,6,4,2,1,1,0,0,0",
    "all": "10,10,10,10,10,10,10,10,10",
}
GAIN = "-?(10|[0-9])"
NOISE = 0.6  # beside groups of ±1
SAMPLES = 64  # of the response, for its polynomial: three times the highest degree, so that its kinks are seen


class State(LabState):
    """The graph, the signal on it, the response by name or by the reader's hand, and the degree of its polynomial."""

    graph: Literal["karate", "grid", "ring", "path"] = "karate"
    signal: Literal["groups", "noise", "impulse"] = "groups"
    node: Annotated[int, Field(ge=0, le=35)] = 0
    response: Literal["low", "high", "band", "heat", "all"] = "low"
    gains: Annotated[str, StringConstraints(max_length=40, pattern=rf"^{GAIN}(,{GAIN}){{8}}$")] | None = None
    degree: Annotated[int, Field(ge=0, le=20)] = 4
    by: Literal["spectrum", "polynomial"] = "spectrum"

    def drawn(self) -> Tensor:
        """The response at each of the nine frequencies, from -1 to 1."""
        tenths = (self.gains or RESPONSES[self.response]).split(",")
        return torch.tensor([int(tenth) for tenth in tenths], dtype=torch.float64) / 10


# --- The graphs and what lies on them ---


@functools.cache
def scene(name: str) -> tuple[GraphLaplacian, GraphFourier, Tensor, Tensor]:
    """A graph's Laplacian and waves, where its nodes are drawn, and which of two groups each belongs to, ±1."""
    if name == "karate":
        data = karate()
        graph, groups = Graph.of(data).undirected(), 1.0 - 2.0 * data.y.double()
        places = placed(CLUB)
    elif name == "grid":
        at = torch.arange(36).reshape(6, 6)
        pairs = torch.cat(
            [torch.stack([at[1:], at[:-1]]).flatten(1), torch.stack([at[:, 1:], at[:, :-1]]).flatten(1)], 1
        )
        graph, groups = Graph(pairs).undirected(), (at // 6 < 3).flatten().double() * 2 - 1
        places = torch.stack([at % 6, 5 - at // 6], -1).reshape(-1, 2).double() / 2.5 - 1
    else:
        n, turn = 34, 2 * math.pi * torch.arange(34).double() / 34
        graph = Graph([(i, (i + 1) % n) for i in range(n if name == "ring" else n - 1)]).undirected()
        groups = (torch.arange(n) < n // 2).double() * 2 - 1
        round_ = torch.stack([turn.sin(), turn.cos()], 1)
        along = torch.stack([torch.linspace(-1, 1, n).double(), 0.5 * torch.sin(1.5 * turn)], 1)
        places = round_ if name == "ring" else along
    laplacian = GraphLaplacian(graph.replace(x=None), "symmetric")
    return laplacian, GraphFourier(laplacian), places, groups


def place(state: State) -> int:
    """The node of the impulse; where a graph has fewer, its last."""
    return min(state.node, scene(state.graph)[0].graph.nodes - 1)


def signal(state: State) -> Tensor:
    """A number for each node."""
    groups = scene(state.graph)[3]
    if state.signal == "impulse":
        return torch.zeros_like(groups).index_fill(0, torch.tensor([place(state)]), 1.0)
    noise = torch.randn(len(groups), dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    return noise if state.signal == "noise" else groups + NOISE * noise


# --- The filter, in both ways ---


def passed(frequencies: Tensor, gains: Tensor) -> Tensor:
    """The drawn response at any frequency from 0 to 2, straight between the drawn ones."""
    steps = (frequencies.clamp(0, 2) * (KNOTS - 1) / 2).clamp(max=KNOTS - 1 - 1e-9)
    left = steps.floor().long()
    return gains[left].lerp(gains[left + 1], steps - left)


def coefficients(gains: Tensor, degree: int) -> Tensor:
    """The response in Chebyshev's basis: sums over the places of the polynomial of degree 64 where it is zero."""
    y = torch.cos(math.pi * (torch.arange(SAMPLES).double() + 0.5) / SAMPLES)
    terms = torch.stack(chebyshev_terms(torch.ones(SAMPLES, 1).double(), degree, lambda t: y[:, None] * t))[..., 0]
    halved = torch.cat([torch.tensor([1.0]), torch.full((degree,), 2.0)]).double()
    return halved * (terms @ passed(1 + y, gains)) / SAMPLES


def filtered(state: State) -> tuple[Tensor, Tensor]:
    """The signal filtered by its spectrum, and by the polynomial of the Laplacian that comes near the response."""
    laplacian, fourier, _, _ = scene(state.graph)
    x, gains = signal(state), state.drawn()
    terms = chebyshev_terms(x[:, None], state.degree, lambda x: laplacian(x) - x)
    polynomial = torch.stack(terms)[..., 0].mT @ coefficients(gains, state.degree)
    return spectral_filter(x, fourier, lambda f: passed(f, gains)), polynomial


def fitted(state: State, frequencies: Tensor) -> Tensor:
    """The polynomial's own response."""
    ones = torch.ones(len(frequencies), 1).double()
    terms = chebyshev_terms(ones, state.degree, lambda t: (frequencies - 1)[:, None] * t)
    return torch.stack(terms)[..., 0].mT @ coefficients(state.drawn(), state.degree)


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """The graph with the signal before and after, both responses, and the signal's spectrum."""
    laplacian, _, places, _ = scene(state.graph)
    exact, polynomial = filtered(state)
    x, after = signal(state), exact if state.by == "spectrum" else polynomial
    return {
        "places": rounded(places),
        "edges": edges_once(laplacian.graph).tolist(),
        "before": rounded(x),
        "after": rounded(after),
        "gains": [round(10 * gain) for gain in state.drawn().tolist()],
        "fitted": rounded(fitted(state, torch.linspace(0, 2, 41).double())),
        "kept": float(after.square().sum() / x.square().sum()),
        "apart": float((exact - polynomial).abs().max()),
        "reached": int((polynomial != 0).sum()) if state.signal == "impulse" else None,
        "python": python(state),
        "figures": {"spectrum": spectrum(state, x, after)},
    }


def spectrum(state: State, x: Tensor, after: Tensor) -> Figure:
    """How much of the signal each frequency holds; waves of the same frequency are one."""
    fourier = scene(state.graph)[1]
    frequencies, which = fourier.frequencies.round(decimals=6).unique(return_inverse=True)
    held = [
        torch.zeros(len(frequencies)).double().index_add(0, which, fourier.transform(each).square()).sqrt()
        for each in (x, after)
    ]
    marks = [Points(frequencies, rounded(size), name) for size, name in zip(held, ("before", "after"), strict=True)]
    return Figure("How much of the signal each frequency holds", "frequency", "size", marks)


def still(state: State) -> Figure:
    """The filtered signal on the graph, nodes as small areas in the colour of their value."""
    laplacian, _, places, _ = scene(state.graph)
    exact, polynomial = filtered(state)
    values = exact if state.by == "spectrum" else polynomial
    return graph_figure("A signal on a graph, filtered", laplacian.graph, places, values, "value")


def python(state: State) -> str:
    """The same in Python."""
    graphs = {
        "karate": 'graph = Graph.of(load("karate")).undirected()',
        "grid": "at = torch.arange(36).reshape(6, 6)\n"
        "pairs = [(at[1:], at[:-1]), (at[:, 1:], at[:, :-1])]\n"
        "graph = Graph(torch.cat([torch.stack(pair).flatten(1) for pair in pairs], 1)).undirected()",
        "ring": "graph = Graph([(i, (i + 1) % 34) for i in range(34)]).undirected()",
        "path": "graph = Graph([(i, i + 1) for i in range(33)]).undirected()",
    }
    noise = "noise = torch.randn(graph.nodes, dtype=torch.float64, generator=torch.Generator().manual_seed(3))\n"
    halves = "2.0 * (torch.arange(graph.nodes) < graph.nodes // 2) - 1"
    groups = '1.0 - 2.0 * load("karate").y' if state.graph == "karate" else halves
    signals = {
        "impulse": f"x = torch.zeros(graph.nodes, dtype=torch.float64)\nx[{place(state)}] = 1",
        "noise": f"{noise}x = noise",
        "groups": f"{noise}x = {groups} + {NOISE} * noise",
    }
    gains = [round(gain, 1) for gain in state.drawn().tolist()]
    return (
        "import numpy\nimport torch\n"
        f"{'from lemmata.data import load' + chr(10) if state.graph == 'karate' else ''}"
        "from lemmata.geometric import Graph, GraphFourier, GraphLaplacian, chebyshev_terms, spectral_filter\n\n"
        f"{graphs[state.graph]}\n"
        'laplacian = GraphLaplacian(graph, "symmetric")\n'
        f"{signals[state.signal]}\n"
        f"knots, gains = numpy.linspace(0, 2, 9), {gains}\n"
        "drawn = lambda f: torch.from_numpy(numpy.interp(f, knots, gains))\n"
        "print(spectral_filter(x, GraphFourier(laplacian), drawn))\n\n"
        "# The same without the waves: a polynomial of the Laplacian in Chebyshev's basis\n"
        "y = torch.cos(torch.pi * (torch.arange(64).double() + 0.5) / 64)\n"
        f"at = torch.stack(chebyshev_terms(torch.ones(64, 1).double(), {state.degree}, lambda t: y[:, None] * t))\n"
        "c = 2 * at[..., 0] @ drawn(1 + y) / 64\nc[0] /= 2\n"
        f"terms = chebyshev_terms(x[:, None], {state.degree}, lambda x: laplacian(x) - x)\n"
        "print(sum(c[k] * term[:, 0] for k, term in enumerate(terms)))"
    )
