"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.geometric.graph import Graph as Graph
from lemmata.geometric.graph_batches import batch_graphs as batch_graphs
from lemmata.geometric.graph_batches import pool_nodes as pool_nodes
from lemmata.geometric.graph_batches import unbatch_graphs as unbatch_graphs

__all__ = [
    "Graph",
    "batch_graphs",
    "pool_nodes",
    "unbatch_graphs",
]
