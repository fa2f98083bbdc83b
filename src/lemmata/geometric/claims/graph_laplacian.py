"""Laplacians: how far a value is from the mean around it, in space and on a graph."""

import math

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components

from lemmata.geometric.claims.drawn_graphs import graph_of, path, small_graphs, without_isolated
from lemmata.geometric.graph_laplacian import GraphLaplacian
from lemmata.judge import Figure, Line, Points, all_of, at_most, claim, close, exactly, lie, slope_is


def _hessian_trace(f, x):
    return torch.func.hessian(f)(x).trace()


def _sphere_points(d):
    """Points of the unit sphere and weights whose mean is right to rounding for waves as long as those below."""
    angle = 2 * math.pi * torch.arange(24).double() / 24
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    if d < 3:
        points = circle if d == 2 else torch.tensor([[-1.0], [1.0]]).double()
        return points, torch.ones(len(points)).double() / len(points)
    height, weight = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(12))
    around = circle[None] * (1 - height**2).sqrt()[:, None, None]  # (heights, angles, 2)
    points = torch.cat([around, height[:, None, None].expand(-1, 24, 1)], 2)
    return points.reshape(-1, 3), (weight / 48).repeat_interleave(24)


@claim("graph.laplacian.continuous")
@lie("the mean deviates by r²/d times the Laplacian", halves=1.0)
@lie("the eigenvalues of waves are positive", sign=1.0)
def laplacian_measures_the_deviation_from_the_mean(draw, halves=2.0, sign=-1.0):
    """Sums of three waves in one, two and three dimensions: means over spheres, and each wave by itself."""
    radii, slopes, found, waves = torch.tensor([0.4, 0.2, 0.1, 0.05]).double(), [], [], []
    for d in (1, 2, 3):
        a, x = draw.unit(3, d), draw.normal(d)
        phases = math.pi / 4 - a @ x  # each wave is seen where its value is far from zero

        def f(x, a=a, phases=phases):
            return torch.cos(x @ a.mT + phases).sum(-1)

        points, weights = _sphere_points(d)
        means = torch.stack([weights @ f(x + r * points) for r in radii])
        rest = (means - f(x) - radii**2 / (halves * d) * _hessian_trace(f, x)).abs()
        slopes.append(slope_is(radii, rest, 4.0, within=0.1))
        u = draw.normal(d)

        def wave(x, u=u, here=2 * math.pi * (u @ x)):
            return torch.cos(2 * math.pi * (x @ u) - here + 1.0)

        found.append(_hessian_trace(wave, x))
        waves.append(sign * 4 * math.pi**2 * (u @ u) * wave(x))
    return all_of(*slopes, close(torch.stack(found), torch.stack(waves), ulps=1000))


def _component_count(adjacency):
    return connected_components(adjacency.numpy())[0]


def _without_edges(adjacency):
    return int((adjacency.sum(0) == 0).sum())


@claim("graph.laplacian")
@lie("the degrees count the node itself, as a GCN's do", loop=1.0)
@lie("A - D", sign=-1.0)
@lie("each edge counted in both directions", times=2.0)
@lie("zeros count the nodes without edges", zeros=_without_edges)
@lie("on a path it is the second difference itself", bend=1.0)
def laplacian_of_a_graph(
    draw, loop=0.0, sign=1.0, times=1.0, zeros=_component_count, bend=-1.0, laplacian=GraphLaplacian
):
    """Whole numbers on small graphs, weighted too, in one piece and in several; the path apart from its ends."""
    applied, matrix, summed, forms, squares, constant, nullities, pieces = ([] for _ in range(8))
    for graph in small_graphs(draw):
        A, x = graph.dense(torch.float64), draw.integers(-9, 10, graph.nodes).double()
        L = laplacian(graph)
        n, m = graph.edges
        applied.append(L(x))
        matrix.append(sign * ((A.sum(0) + loop) * x - A @ x))
        summed.append(torch.stack([(A[i] * (x[i] - x)).sum() for i in range(graph.nodes)]))
        forms.append(x @ L(x))
        squares.append(times * (A[n, m] * (x[n] - x[m]).square())[n < m].sum())
        constant.append(L(torch.ones_like(x)))
        # No connected graph of n nodes with weights from 1 on has less than its path: 0.098 for 10. Rounding is 1e-14.
        nullities.append(int((torch.linalg.eigvalsh(L.dense(x)) < 1e-3).sum()))
        pieces.append(zeros(A))
    x, line = draw.integers(-9, 10, 9).double(), path(9)
    found, told = laplacian(graph_of(path(9)))(x), sign * ((line.sum(0) + loop) * x - line @ x)
    marks = [Points(range(1, 10), found, "Lx"), Line(range(1, 10), told, "(D − A)x")]
    marks.append(Line(range(2, 9), bend * x.diff(n=2), "second difference"))
    return all_of(
        exactly(torch.cat(applied), torch.cat(matrix)),
        exactly(torch.cat(applied), torch.cat(summed)),
        exactly(torch.stack(forms), torch.stack(squares)),
        at_most(-torch.stack(forms), 0.0),
        exactly(torch.cat(constant), torch.zeros(len(torch.cat(constant))).double()),
        exactly(nullities, pieces),
        exactly(found[1:-1], bend * x.diff(n=2)),
    ).showing(Figure("On a path of nine nodes", "node", "", marks))


def _bipartite_components(adjacency):
    """A bipartite component falls into two in the double cover, whose edges lead from one copy to the other."""
    cover = torch.kron(adjacency, torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double())
    return _component_count(cover) - _component_count(adjacency)


@claim("graph.laplacian.normalised")
@lie("each side is divided by the whole degree", power=-1.0)
@lie("eigenvalues are at most 1", bound=1.0)
@lie("constants have no frequency", null=0.0)
@lie("2 is reached once for each component", twos=_component_count)
def normalised_laplacian(draw, power=-0.5, bound=2.0, null=0.5, twos=_bipartite_components, laplacian=GraphLaplacian):
    """Both forms, the spectrum and its ends on small graphs whose nodes all have edges, weighted too."""
    found, first, second, flipped, values, nulls, counted, wanted = ([] for _ in range(8))
    for graph in map(without_isolated, small_graphs(draw)):
        A, eye = graph.dense(torch.float64), torch.eye(graph.nodes).double()
        d = A.sum(0)
        L = laplacian(graph, "symmetric")
        matrix = L.dense(d)
        scale = d**power
        found.append(matrix.flatten())
        flipped.append(matrix.mT.flatten())
        first.append((eye - scale[:, None] * A * scale).flatten())
        second.append((scale[:, None] * (d.diag() - A) * scale).flatten())
        values.append(torch.linalg.eigvalsh((matrix + matrix.mT) / 2))
        nulls.append(L(d**null))
        # Of the graphs without a bipartite component, the cycle of 5 comes nearest to 2 among the known, with 1.81.
        counted.append(int((values[-1] > 2 - 1e-6).sum()))
        wanted.append(twos(A))
    return all_of(
        close(torch.cat(found), torch.cat(first)),
        close(torch.cat(found), torch.cat(second)),
        close(torch.cat(found), torch.cat(flipped)),
        at_most(torch.cat(values), bound, attained=True),
        at_most(-torch.cat(values) + 1.0, 1.0),  # none below zero, on the scale of the matrix
        close(torch.cat(nulls), torch.zeros(len(torch.cat(nulls))).double(), scale=4.0),
        exactly(counted, wanted),
    )
