"""Run by test_traced_graphs.py, without the shape checks that tests add: layers compiled and exported on new graphs.

It prints one line for each that does not give what the layer itself gives.
"""

import torch
from test_traced_graphs import EDGES, LAYERS, fresh
from torch import nn

from lemmata.geometric import GCNConvolution, GINConvolution, Graph


class OnAGraph(nn.Module):
    """A layer with a graph of its own, which nobody has sorted."""

    def __init__(self, layer, weighted):
        super().__init__()
        self.layer, self.graph = layer, fresh(weighted)

    def forward(self, x):
        return self.layer(x, self.graph)


def passes(layer, call, x):
    y = call(x)
    return [y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]


def whole(function):
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def check(kind, weighted=False):
    layer, x = LAYERS[kind]().eval(), torch.randn(5, 3, requires_grad=True)
    module = OnAGraph(layer, weighted)
    found = passes(layer, whole(module), x)
    torch.testing.assert_close(found, passes(layer, module, x))
    module = OnAGraph(layer, weighted)
    exported = torch.export.export(module, (x.detach(),)).module()
    torch.testing.assert_close(exported(x), module(x))  # whose graph has kept nothing of the export


def check_graph_made_inside():
    edges, x, layer = torch.tensor(EDGES).mT.contiguous(), torch.randn(5, 3), GINConvolution(nn.Linear(3, 2))
    torch.testing.assert_close(whole(lambda x: layer(x, Graph(edges, 5)))(x), layer(x, Graph(edges, 5)))
    looping, refused = GCNConvolution(3, 2), ""
    try:
        whole(lambda x: looping(x, Graph(edges, 5)))(x)
    except Exception as error:
        refused = str(error)
    assert "graph must be made where its edges can be looked at" in refused, refused


if __name__ == "__main__":
    cases = {kind: (lambda kind=kind: check(kind)) for kind in LAYERS}
    cases |= {"gcn, weighted": lambda: check("gcn", weighted=True), "made inside": check_graph_made_inside}
    for name, case in cases.items():
        try:
            case()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
