"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.geometric.chebyshev_convolution import ChebyshevConvolution as ChebyshevConvolution
from lemmata.geometric.chebyshev_convolution import chebyshev_terms as chebyshev_terms
from lemmata.geometric.conversions import from_dense as from_dense
from lemmata.geometric.conversions import from_networkx as from_networkx
from lemmata.geometric.conversions import from_pyg as from_pyg
from lemmata.geometric.conversions import from_scipy as from_scipy
from lemmata.geometric.conversions import to_networkx as to_networkx
from lemmata.geometric.conversions import to_pyg as to_pyg
from lemmata.geometric.conversions import to_scipy as to_scipy
from lemmata.geometric.deep_sets import DeepSets as DeepSets
from lemmata.geometric.deep_sets import EquivariantDeepSets as EquivariantDeepSets
from lemmata.geometric.deep_sets import pool_elements as pool_elements
from lemmata.geometric.gat import GATConvolution as GATConvolution
from lemmata.geometric.gcn import GCN as GCN
from lemmata.geometric.gcn import GCNConvolution as GCNConvolution
from lemmata.geometric.gcn import gcn_coupling as gcn_coupling
from lemmata.geometric.gcn import normalized_adjacency as normalized_adjacency
from lemmata.geometric.gin import GINConvolution as GINConvolution
from lemmata.geometric.graph import Graph as Graph
from lemmata.geometric.graph_batches import batch_graphs as batch_graphs
from lemmata.geometric.graph_batches import pool_nodes as pool_nodes
from lemmata.geometric.graph_batches import unbatch_graphs as unbatch_graphs
from lemmata.geometric.graph_fourier import GraphFourier as GraphFourier
from lemmata.geometric.graph_laplacian import GraphLaplacian as GraphLaplacian
from lemmata.geometric.graph_networks import GraphClassifier as GraphClassifier
from lemmata.geometric.k_gnn import GraphConvolution as GraphConvolution
from lemmata.geometric.k_gnn import KGNN as KGNN
from lemmata.geometric.k_gnn import NodeSets as NodeSets
from lemmata.geometric.k_gnn import node_sets as node_sets
from lemmata.geometric.k_gnn import same_set_colours as same_set_colours
from lemmata.geometric.message_passing import MessagePassing as MessagePassing
from lemmata.geometric.message_passing import aggregate_neighbours as aggregate_neighbours
from lemmata.geometric.neighbour_sampling import NeighbourSample as NeighbourSample
from lemmata.geometric.neighbour_sampling import neighbour_batches as neighbour_batches
from lemmata.geometric.neighbour_sampling import sample_neighbours as sample_neighbours
from lemmata.geometric.node_networks import NodeClassifier as NodeClassifier
from lemmata.geometric.pointnet import PointFeatures as PointFeatures
from lemmata.geometric.pointnet import PointNetClassifier as PointNetClassifier
from lemmata.geometric.pointnet import PointNetFeatures as PointNetFeatures
from lemmata.geometric.pointnet import PointNetSegmenter as PointNetSegmenter
from lemmata.geometric.pointnet import TransformNetwork as TransformNetwork
from lemmata.geometric.polynomial_filters import PolynomialConvolution as PolynomialConvolution
from lemmata.geometric.polynomial_filters import polynomial_filter as polynomial_filter
from lemmata.geometric.set_network import SetNetwork as SetNetwork
from lemmata.geometric.spectral_filters import spectral_convolution as spectral_convolution
from lemmata.geometric.spectral_filters import spectral_filter as spectral_filter
from lemmata.geometric.weisfeiler_lehman import ColourRefinement as ColourRefinement
from lemmata.geometric.weisfeiler_lehman import refine_colours as refine_colours
from lemmata.geometric.weisfeiler_lehman import same_colours as same_colours

__all__ = [
    "ChebyshevConvolution",
    "ColourRefinement",
    "DeepSets",
    "EquivariantDeepSets",
    "GATConvolution",
    "GCN",
    "GCNConvolution",
    "GINConvolution",
    "Graph",
    "GraphClassifier",
    "GraphConvolution",
    "GraphFourier",
    "GraphLaplacian",
    "KGNN",
    "MessagePassing",
    "NeighbourSample",
    "NodeClassifier",
    "NodeSets",
    "PointFeatures",
    "PointNetClassifier",
    "PointNetFeatures",
    "PointNetSegmenter",
    "PolynomialConvolution",
    "SetNetwork",
    "TransformNetwork",
    "aggregate_neighbours",
    "batch_graphs",
    "chebyshev_terms",
    "from_dense",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "gcn_coupling",
    "neighbour_batches",
    "node_sets",
    "normalized_adjacency",
    "polynomial_filter",
    "pool_elements",
    "pool_nodes",
    "refine_colours",
    "same_colours",
    "same_set_colours",
    "sample_neighbours",
    "spectral_convolution",
    "spectral_filter",
    "to_networkx",
    "to_pyg",
    "to_scipy",
    "unbatch_graphs",
]
