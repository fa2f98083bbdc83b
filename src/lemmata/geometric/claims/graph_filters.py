"""Filters on graphs: by frequency, by polynomials of the Laplacian, and in Chebyshev's basis."""

import math

import torch
from scipy.sparse.csgraph import shortest_path
from scipy.special import ive
from torch import nn

from lemmata.geometric.chebyshev_convolution import ChebyshevConvolution, chebyshev_terms
from lemmata.geometric.claims.drawn_graphs import complete, cycle, graph_of, path, random_graph, small_graphs, star
from lemmata.geometric.graph import Graph
from lemmata.geometric.graph_fourier import GraphFourier
from lemmata.geometric.graph_laplacian import GraphLaplacian
from lemmata.geometric.polynomial_filters import PolynomialConvolution, polynomial_filter
from lemmata.geometric.spectral_filters import spectral_convolution, spectral_filter
from lemmata.judge import Figure, Line, Points, all_of, always, at_most, claim, close, exactly, lie


def _turned_basis(basis, first, second, angle=0.7):
    """The basis with two of its columns rotated among themselves."""
    c, s = math.cos(angle), math.sin(angle)
    pair = basis[:, [first, second]] @ torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    return basis.index_copy(1, torch.tensor([first, second]), pair)


def _transposed_basis(basis):
    return basis.mT


def _as_it_is(basis):
    return basis


@claim("graph.fourier")
@lie("the transform is Ux", analysis=_as_it_is)
@lie("the frequencies of the cycle are -2 cos", constant=0.0)
@lie("the cycle has the path's frequencies", turn=math.pi)
@lie("any two waves may be rotated", pair=(2, 3))
def graph_fourier_transform(
    draw, analysis=_transposed_basis, constant=2.0, turn=2 * math.pi, pair=(1, 2), transform=GraphFourier
):
    """Small graphs, and cycles of even and odd length, where the discrete Fourier transform does the same."""
    found, transformed, back, signals, powers, norms, rebuilt, matrices = ([] for _ in range(8))
    for graph in small_graphs(draw):
        L, x = GraphLaplacian(graph), draw.normal(graph.nodes)
        fourier = transform(L)
        found.append(fourier.transform(x))
        transformed.append(analysis(fourier.basis) @ x)
        back.append(fourier.inverse(transformed[-1]))
        signals.append(x)
        powers.append(found[-1].square().sum())
        norms.append(x.square().sum())
        rebuilt.append((fourier.basis * fourier.frequencies @ fourier.basis.mT).flatten())
        matrices.append(L.dense(x).flatten())
    heat, circular, turned, whole = [], [], [], []
    for n in (6, 7, 12):
        fourier = transform(GraphLaplacian(graph_of(cycle(n))))
        predicted = constant - 2 * torch.cos(turn * torch.arange(n).double() / n)
        heat.append((fourier.basis * (-fourier.frequencies).exp()) @ fourier.basis[0])
        circular.append(torch.fft.ifft((-predicted).exp()).real)
        other = _turned_basis(-fourier.basis, *pair)  # columns 1 and 2 are waves of the same length
        turned.append((other * fourier.frequencies @ other.mT).flatten())
        whole.append(GraphLaplacian(graph_of(cycle(n))).dense(predicted).flatten())
    return all_of(
        close(torch.cat(found), torch.cat(transformed), ulps=1000),
        close(torch.cat(back), torch.cat(signals), ulps=1000),
        close(torch.stack(powers), torch.stack(norms), ulps=1000),
        close(torch.cat(rebuilt), torch.cat(matrices), ulps=1000),
        close(torch.cat(heat), torch.cat(circular), ulps=1000),
        close(torch.cat(turned), torch.cat(whole), ulps=1000),
    )


class _GivenBasis(GraphFourier):
    """A transform with a basis that is given, such as another choice of signs, or waves with complex values."""

    def __init__(self, basis, frequencies):
        self.basis, self.frequencies = basis, frequencies


def _basis_spectrum(basis, y):
    return basis.mT @ y


def _basis_product(basis, y):
    return basis @ y


def _as_printed(basis, y):
    return basis @ y.mT


@claim("graph.spectral_convolution")
@lie(
    "the second signal is a row, and its wave basis not transposed",
    printed="003/1",
    raises=RuntimeError,
    second=_as_printed,
)
@lie("the basis of the second signal is not transposed", second=_basis_product)
@lie("on the cycle it is circular convolution as it stands", power=0.0)
@lie("the signs of the waves do not matter", sign=1.0)
def spectral_graph_convolution(draw, second=_basis_spectrum, power=-0.5, sign=-1.0, convolve=spectral_convolution):
    """The formula, its algebra and other signs on small graphs; cycles with the waves of the Fourier transform."""
    found, formula, flipped, opposite, filtered, same, mixed, sums = ([] for _ in range(8))
    for graph in small_graphs(draw):
        fourier = GraphFourier(GraphLaplacian(graph))
        x, y, z = draw.normal(3, graph.nodes, 1)
        other = _GivenBasis(-fourier.basis, fourier.frequencies)
        found.append(convolve(x, y, fourier))
        formula.append(fourier.basis @ ((fourier.basis.mT @ x) * second(fourier.basis, y)))
        flipped.append(convolve(x, y, other))
        opposite.append(sign * found[-1])
        filtered.append(spectral_filter(x, other, torch.exp))
        same.append(spectral_filter(x, fourier, torch.exp))
        mixed.append(convolve(2 * x - 3 * z, y, fourier))
        sums.append(2 * convolve(y, x, fourier) - 3 * convolve(y, z, fourier))
    circles, products = [], []
    for n in (2, 5, 8):
        waves = torch.fft.fft(torch.eye(n).to(torch.complex128)).conj() / math.sqrt(n)
        x, y = draw.normal(2, n).to(torch.complex128)
        circles.append(convolve(x, y, _GivenBasis(waves, None)))
        around = [[(i - j) % n for j in range(n)] for i in range(n)]
        products.append(float(n) ** power * (x[torch.tensor(around)] @ y))
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=1000),
        close(torch.cat(flipped), torch.cat(opposite), ulps=1000),
        close(torch.cat(filtered), torch.cat(same), ulps=1000),
        close(torch.cat(mixed), torch.cat(sums), ulps=1000),
        close(torch.cat(circles), torch.cat(products), ulps=1000),
    )


def _of_the_frequency(frequencies):
    return 1 / (1 + frequencies)


def _of_the_wave(frequencies):
    return torch.arange(len(frequencies)).double()


@claim("graph.spectral_filter")
@lie("a factor of its own for each wave", gain=_of_the_wave)
@lie("heat grows", sign=1.0)
@lie("the signal is transformed by U", analysis=_as_it_is)
def spectral_filters_are_functions_of_the_frequency(
    draw, gain=_of_the_frequency, sign=-1.0, analysis=_transposed_basis, filtered=spectral_filter
):
    """Heat against the matrix exponential, nodes in another order, and eigenspaces with another basis."""
    found, formula, heat, exponentials, moved, wanted, turned, before = ([] for _ in range(8))
    for graph in small_graphs(draw):
        n, x, t = graph.nodes, draw.normal(graph.nodes, 2), 0.3
        L = GraphLaplacian(graph)
        fourier = GraphFourier(L)
        found.append(filtered(x, fourier, gain).flatten())
        formula.append(((fourier.basis * gain(fourier.frequencies)) @ analysis(fourier.basis) @ x).flatten())
        heat.append(filtered(x, fourier, lambda f, t=t: (sign * t * f).exp()).flatten())
        exponentials.append((torch.matrix_exp(-t * L.dense(x)) @ x).flatten())
        order = torch.arange(n).roll(1)  # all in one round: an exchange of two would be its own inverse
        relabelled = GraphFourier(GraphLaplacian(graph.permuted(order)))
        moved.append(filtered(x[order], relabelled, gain).flatten())
        wanted.append(filtered(x, fourier, gain)[order].flatten())
    twofold = cycle(8), star(6), complete(5)  # their second and third wave have the same frequency
    for graph in map(graph_of, twofold):
        fourier, x = GraphFourier(GraphLaplacian(graph)), draw.normal(graph.nodes)
        before.append(filtered(x, fourier, gain))
        turned.append(filtered(x, _GivenBasis(_turned_basis(fourier.basis, 1, 2), fourier.frequencies), gain))
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=1000),
        close(torch.cat(heat), torch.cat(exponentials), ulps=1000),
        close(torch.cat(moved), torch.cat(wanted), ulps=1000),
        close(torch.cat(turned), torch.cat(before), ulps=1000),
    )


def _frequency_powers(alphas, frequencies):
    return sum(alpha * frequencies**k for k, alpha in enumerate(alphas)), alphas


def _without_the_power(alphas, frequencies):
    """As printed: no power of the frequencies on the left, no constant term on the right."""
    return alphas.sum() * frequencies, torch.cat([torch.zeros(1).double(), alphas[1:]])


class _Counted(GraphLaplacian):
    """A Laplacian that counts how often it is applied."""

    products = 0

    def __call__(self, x):
        self.products += 1
        return super().__call__(x)


@claim("graph.polynomial_filter")
@lie("no power on the left, and the sum on the right from k = 1", printed="000/1", sides=_without_the_power)
@lie("K free coefficients", printed="000/2", extra=0)
@lie("one product more", products=1)
def polynomial_filters(draw, sides=_frequency_powers, extra=1, products=0, filtered=polynomial_filter):
    """Degrees up to 4 on small graphs, both Laplacians; products counted; how many directions the filters span."""
    spectral, found, counted, degrees = [], [], [], []
    for i, graph in enumerate(small_graphs(draw)):
        K, x = i % 5, draw.normal(graph.nodes)
        L = _Counted(graph, ("combinatorial", "symmetric")[i % 2])
        fourier, alphas = GraphFourier(L), draw.normal(K + 1)
        L.products = 0
        gains, coefficients = sides(alphas, fourier.frequencies)
        size = alphas.abs() @ L.largest_eigenvalue_bound() ** torch.arange(K + 1).double()
        found.append(filtered(x, L, coefficients) / size)
        spectral.append(fourier.basis @ (gains * (fourier.basis.mT @ x)) / size)
        counted.append(L.products)
        degrees.append(K + products)
    ranks, free = [], []
    for K in range(5):  # the path of 6 nodes has six frequencies, all different
        eye = torch.eye(6).double()
        columns = [filtered(eye, GraphLaplacian(graph_of(path(6))), eye[k, : k + 1]).flatten() for k in range(K + 1)]
        ranks.append(int(torch.linalg.matrix_rank(torch.stack([c / c.norm() for c in columns]))))
        free.append(K + extra)
    return all_of(
        close(torch.cat(found), torch.cat(spectral), ulps=1000),
        exactly(counted, degrees),
        exactly(ranks, free),
    )


def _laplacian_power(graph, k):
    eye = torch.eye(graph.nodes).double()
    return polynomial_filter(eye, GraphLaplacian(graph), [0.0] * k + [1.0])


def _heat_kernel(graph, k):
    return spectral_filter(
        torch.eye(graph.nodes).double(), GraphFourier(GraphLaplacian(graph)), lambda f: (-k * f).exp()
    )


def _path_distances(graph):
    return torch.from_numpy(shortest_path(graph.dense().numpy(), unweighted=True))


@claim("graph.polynomial_locality")
@lie("one step less", reach=-1, loose="what is zero beyond k steps is zero beyond k + 1")
@lie("no sign", sign=1)
@lie("heat stays within k steps", operator=_heat_kernel)
def polynomials_of_degree_k_reach_k_steps(draw, reach=0, sign=-1, operator=_laplacian_power):
    """Whole numbers: powers up to 5 on small graphs and on 60 random ones, beside the distances."""
    outside, shortest, counted = [], [], []
    for graph in [*small_graphs(draw, weighted=False), *(random_graph(draw, 9, 0.2) for _ in range(60))]:
        distance, A = _path_distances(graph), graph.dense(torch.float64)
        for k in range(6):
            entries = operator(graph, k)
            outside.append(entries[distance > k + reach])
            shortest.append(entries[distance == k])
            counted.append(sign**k * torch.linalg.matrix_power(A, k)[distance == k])
    return all_of(
        exactly(torch.cat(outside), torch.zeros(len(torch.cat(outside))).double()),
        exactly(torch.cat(shortest), torch.cat(counted)),
        always(torch.cat(shortest) != 0),
    )


def _over_channels(layer, x, L):
    """Each output channel: polynomials of the Laplacian on all input channels, and one number for all nodes."""
    C, D = layer.weight.shape[1:]
    filtered = [[polynomial_filter(x[:, j], L, layer.weight[:, j, i]) for j in range(C)] for i in range(D)]
    return torch.stack([sum(terms) + layer.bias[i] for i, terms in enumerate(filtered)], 1)


def _over_nodes(layer, x, L):
    """As printed: one summand for each node, and the bias of the summand."""
    N, D = len(x), layer.weight.shape[2]
    filtered = [
        [polynomial_filter(x[:, n], L, layer.weight[:, n, m]) + layer.bias[n] for n in range(N)] for m in range(D)
    ]
    return torch.stack([torch.stack(terms).sum(0) for terms in filtered], 1)


def _with_bias(layer):
    """The layer with a bias that is not zero."""
    nn.init.normal_(layer.bias)
    return layer.requires_grad_(False)


@claim("graph.polynomial_layer")
@lie("the sum runs over the nodes, and the bias with it", printed="003/1", summed=_over_nodes)
@lie("K coefficients for each pair of channels", extra=0)
@lie("a bias for each pair of channels", biases=2)
def polynomial_layers(draw, summed=_over_channels, extra=1, biases=1, layer=PolynomialConvolution):
    """One layer on graphs of several sizes, with nodes in another order, weights counted, and a grid that is turned."""
    C, D, K = 4, 3, 3
    net = _with_bias(layer(C, D, K, dtype=torch.float64))
    found, loops, moved, wanted = [], [], [], []
    for graph in map(graph_of, (path(3), path(2), complete(3))):
        x, L = draw.normal(graph.nodes, C), GraphLaplacian(graph)
        found.append(net(x, L).flatten())
        loops.append(summed(net, x, L).flatten())
        order = torch.arange(graph.nodes).roll(1)
        moved.append(net(x[order], GraphLaplacian(graph.permuted(order))).flatten())
        wanted.append(net(x, L)[order].flatten())
    places = torch.arange(25).reshape(5, 5)
    steps = [torch.stack([places, places.roll(1, axis)]).reshape(2, -1) for axis in (0, 1)]
    grid = GraphLaplacian(Graph(torch.cat(steps, 1)).undirected())  # on a torus, so that every node has four neighbours
    x, turn = draw.normal(25, C), torch.rot90(places).flatten()
    sizes = [(C, D, K), (1, 1, 0), (2, 5, 6)]
    counted = [sum(p.numel() for p in layer(*size).parameters()) for size in sizes]
    return all_of(
        close(torch.cat(found), torch.cat(loops), ulps=1000),
        close(torch.cat(moved), torch.cat(wanted), ulps=1000),
        close(net(x[turn], grid), net(x, grid)[turn], ulps=1000),
        exactly(counted, [(k + extra) * c * d + d**biases for c, d, k in sizes]),
    )


def _chebyshev_recursion(y, degree, twice):
    """Chebyshev's polynomials up to a degree at some places."""
    found = [torch.ones_like(y), y]
    while len(found) <= degree:
        found.append(twice * y * found[-1] - found[-2])
    return found[: degree + 1]


def _fifth_term(shift, twice, frequencies):
    """The polynomial of degree 5 over all frequencies that there can be, those of a path of nine nodes marked."""
    every = torch.linspace(0, 2, 81).double()
    marks = [Line(every, _chebyshev_recursion(every - shift, 5, twice)[5], "T₅")]
    marks += [Points(frequencies, _chebyshev_recursion(frequencies - shift, 5, twice)[5], "frequencies of a path")]
    marks += [Line([0, 2, None, 0, 2], [1, 1, None, -1, -1], "±1")]
    return Figure("A term of degree 5 by frequency", "frequency", "", marks)


@claim("graph.chebnet")
@lie("the normalised Laplacian itself, on [0, 2]", shift=0.0)
@lie("divided by the largest eigenvalue alone, on [-1, 0]", stretch=1.0)
@lie("the recursion without the factor 2", twice=1.0)
@lie("one step less is seen", reach=-1, loose="what is zero beyond K steps is zero beyond K + 1")
@lie("one product more", products=1)
def chebyshev_layers(draw, stretch=2.0, shift=1.0, twice=2.0, reach=0, products=0, layer=ChebyshevConvolution):
    """Layers of degrees up to 6 against their spectra, for the bound 2 and the largest eigenvalue; degree 40; heat."""
    found, spectral, terms, cosines, outside, sizes, bounds, counted = ([] for _ in range(8))
    # Of all of them but the cycle of 5 and the complete graph the largest eigenvalue is 2.
    known = (path(2), cycle(5), cycle(5), star(6), complete(5), path(9), complete(5))
    for i, graph in enumerate(map(graph_of, known)):
        K, x = i, draw.normal(graph.nodes, 1 + i % 3)
        L = GraphLaplacian(graph, "symmetric")
        fourier = GraphFourier(L)
        largest = 2.0 if i % 2 else float(fourier.frequencies[-1])
        net = _with_bias(layer(1 + i % 3, 2, K, eigenvalue_bound=largest, dtype=torch.float64))
        y = stretch / largest * fourier.frequencies - shift
        terms += _chebyshev_recursion(y, K, twice)
        cosines += [torch.cos(k * torch.arccos(y.clamp(-1, 1))) for k in range(K + 1)]
        waves = [fourier.inverse(T[:, None] * fourier.transform(x)) for T in terms[-K - 1 :]]
        found.append(net(x, graph).flatten())
        mixed = torch.stack([lin(wave) for lin, wave in zip(net.lins, waves, strict=True)]).sum(0)
        spectral.append((mixed + net.get_parameter("bias")).flatten())
        single = layer(1, 1, K, bias=False, eigenvalue_bound=largest, dtype=torch.float64).requires_grad_(False)
        response = torch.cat([single(impulse[:, None], graph) for impulse in torch.eye(graph.nodes).double()], 1)
        outside.append(response[_path_distances(graph) > K + reach])
        operated = []
        scale = stretch / largest
        far = chebyshev_terms(x, 40, lambda s, L=L, c=scale, seen=operated: seen.append(1) or c * L(s) - shift * s)
        counted.append(len(operated))
        sizes.append(torch.stack(far).norm(dim=1).flatten())
        bounds.append(x.norm(dim=0).expand(41, -1).flatten())
    heat, (t, K) = layer(1, 1, 20, bias=False, dtype=torch.float64), (1.5, 20)
    for k, weight in enumerate(heat.parameters()):  # the coefficients of exp(-t(1 + y))
        nn.init.constant_(weight, (-1) ** k * (2 if k else 1) * float(ive(k, t)))
    x, L = draw.normal(9, 1), GraphLaplacian(graph_of(path(9)), "symmetric")
    return all_of(
        close(torch.cat(found), torch.cat(spectral), ulps=1000),
        close(torch.cat(terms), torch.cat(cosines), ulps=1000),
        at_most(
            torch.cat(sizes), torch.cat(bounds), ulps=2 * 40**2
        ),  # the slope of a term at ±1 is its degree's square
        exactly(torch.cat(outside), torch.zeros(len(torch.cat(outside))).double()),
        exactly(counted, [40 + products] * len(counted)),
        close(heat(x, L).detach(), torch.matrix_exp(-t * L.dense(x)) @ x, ulps=1000),
    ).showing(_fifth_term(shift, twice, GraphFourier(L).frequencies))
