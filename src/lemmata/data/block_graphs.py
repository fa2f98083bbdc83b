r"""Random graphs with communities: the stochastic block model, with features that hint at the block."""

import numpy as np
import torch

from lemmata import validate
from lemmata.data.generated import streams
from lemmata.data.graphs import GraphDataset, labelled
from lemmata.data.registry import dataset

__all__ = ["block_graph"]

MOST_NODES = 5_000  # all pairs of nodes are tossed at once, at nine bytes a pair


@dataset(
    "blocks",
    title="Stochastic block graph",
    task="graph",
    origin="generated",
    size="400 nodes",
    shape="one node of an undirected graph with 8 features",
    licence="generated, none needed",
    credit="P. W. Holland, K. B. Laskey and S. Leinhardt, Stochastic Blockmodels, 1983",
    splits="train, test",
)
def block_graph(
    n: int = 400,
    blocks: int = 4,
    inside: float = 0.1,
    between: float = 0.01,
    features: int = 8,
    signal: float = 1.0,
    labels: int = 5,
    seed: int = 0,
) -> GraphDataset:
    r"""Nodes in blocks of equal size; two nodes are joined independently, more often `inside` a block than `between`.

    $$ P(i \sim j) = \begin{cases} \text{inside} & y_i = y_j \\ \text{between} & y_i \ne y_j \end{cases}, \qquad
    x_i = \text{signal} \cdot m_{y_i} + \varepsilon_i $$

    The $m$ are random unit vectors, one a block, and $\varepsilon$ is standard Gaussian: features alone tell little.
    So many `labels` of each block are in the training part, all other nodes in the test part. Nodes are in the order of
    their blocks.

    Shapes:
        x: (n, features) float32, y: (n,) int64, edges: (2, edges) int64, each edge in both directions
        extra: `probabilities` (blocks, blocks) and `means` (blocks, features), float64

    >>> graph = block_graph(n=100, labels=3)
    >>> graph.train, graph.test
    (Examples(node=(12,), y=(12,)), Examples(node=(88,), y=(88,)))
    """
    validate.count("blocks", blocks, least=1)
    validate.count("n", n, least=2 * blocks, most=MOST_NODES)
    validate.count("features", features, least=1)
    validate.count("labels", labels, least=1, most=n // blocks - 1)
    for name, value in {"inside": inside, "between": between}.items():
        validate.fraction(name, value, most=1)
    validate.number("signal", signal, least=0)
    parameters, nodes, pairs = streams(seed)
    probabilities = np.where(np.eye(blocks), inside, between)
    means = parameters.standard_normal((blocks, features))
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    y = np.sort(np.arange(n) % blocks)
    chosen = torch.from_numpy(_first_of_each_block(nodes, y, labels))
    x = means[y] + nodes.standard_normal((n, features))
    edges = torch.from_numpy(_toss_edges(pairs, probabilities[y][:, y]))
    block = torch.from_numpy(y)
    return GraphDataset(
        name="blocks",
        parts={"train": labelled(chosen, block), "test": labelled(~chosen, block)},
        classes=tuple(map(str, range(blocks))),
        extra={"probabilities": torch.from_numpy(probabilities), "means": torch.from_numpy(means)},
        x=torch.from_numpy(x.astype(np.float32)),
        y=block,
        edges=edges,
        edge_types=torch.zeros_like(edges[0]),
        edge_weights=torch.ones(edges.shape[1]),
        relations=("neighbours",),
    )


def _first_of_each_block(generator: np.random.Generator, y: np.ndarray, labels: int) -> np.ndarray:
    """A mask of so many nodes of each block: the first ones in a random order."""
    order = generator.permutation(len(y))
    chosen = np.zeros(len(y), dtype=bool)
    for block in range(y.max() + 1):
        chosen[order[y[order] == block][:labels]] = True
    return chosen


def _toss_edges(generator: np.random.Generator, probabilities: np.ndarray) -> np.ndarray:
    """Toss once for each pair of nodes; each edge is returned in both directions."""
    joined = np.triu(generator.random(probabilities.shape) < probabilities, k=1)
    return np.stack(np.nonzero(joined | joined.T))
