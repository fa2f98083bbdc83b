r"""Products with the Hessian of a network that can be differentiated only once."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lemmata.measure.curvature_products import Batch, HessianOperator, Product, Tensors

__all__ = ["DifferencedHessian"]


class DifferencedHessian(HessianOperator):
    r"""The Hessian by central differences of gradients, for networks with kernels that have one derivative only.

    $$ Hv \approx \frac{\nabla L(\theta + hv) - \nabla L(\theta - hv)}{2h}, \qquad
       h = \epsilon^{1/3}\,\frac{\max(\|\theta\|, 1)}{\|v\|} $$

    The error is of second order in $h$, and rounding adds $\epsilon / h$ of the gradient: about three digits of single
    precision and ten of double are left.

    Shapes:
        vectors: (..., size)    returns: (..., size)

    >>> model, data = nn.Linear(3, 1).double(), (torch.rand(5, 3).double(), torch.rand(5, 1).double())
    >>> matrix = DifferencedHessian(model, nn.functional.mse_loss, data).dense()
    >>> torch.allclose(matrix, HessianOperator(model, nn.functional.mse_loss, data).dense(), atol=1e-8)
    True
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Tensor, Any], Tensor],
        batches: Batch | Iterable[Batch],
        names: Iterable[str] | None = None,
        reduction: str = "mean",
    ) -> None:
        # One vector at a time: each goes to points of its own.
        super().__init__(model, loss, batches, names, reduction, at_once=False)

    def _prepare_product(self, inputs: Any, targets: Any) -> Product:
        own = list(self.parameters.values())
        here = [value.detach().clone() for value in own]
        length = max(_parts_norm(here), 1.0)

        def gradient(step: float, vectors: Tensors) -> Tensors:
            moved = {
                name: (value + step * part).requires_grad_()
                for name, value, part in zip(self.parameters, here, vectors, strict=True)
            }
            with torch.enable_grad():
                buffers = {name: value.clone() for name, value in self.buffers.items()}
                arguments = inputs if isinstance(inputs, tuple) else (inputs,)
                loss = self.loss(functional_call(self.model, moved | buffers, arguments), targets)
            return list(torch.autograd.grad(loss, list(moved.values()), materialize_grads=True))

        def product(vectors: Tensors) -> Tensors:
            size = _parts_norm(vectors)
            if size == 0:
                return [torch.zeros_like(part) for part in vectors]
            step = torch.finfo(self.dtype).eps ** (1 / 3) * length / size
            pairs = zip(gradient(step, vectors), gradient(-step, vectors), strict=True)
            return [(ahead - behind) / (2 * step) for ahead, behind in pairs]

        return product


def _parts_norm(parts: Tensors) -> float:
    return torch.stack([part.detach().double().square().sum() for part in parts]).sum().sqrt().item()
