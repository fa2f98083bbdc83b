r"""Products of vectors with the curvature matrices of a network's loss, none of which is ever written down."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.chain_curvature import ChainCurvature, known_chain, takes_batches
from lemmata.measure.random_parts import without_draws
from lemmata.measure.second_derivatives import differentiable_again

__all__ = [
    "CurvatureOperator",
    "EmpiricalFisherOperator",
    "FisherOperator",
    "GaussNewtonOperator",
    "HessianOperator",
]

Batch = tuple[Any, Any]  # inputs, a tensor or a tuple of tensors, and targets
Tensors = list[Tensor]
Product = Callable[[Tensors], Tensors]


class CurvatureOperator(ABC):
    r"""A symmetric matrix of the size of all parameters, known by its products with vectors.

    Parameters and buffers are copies, made when the operator is, of those of the model, in the order of
    `named_parameters`; with `names` only some parameters, in that order. `batches` is one pair of inputs and targets,
    or several that can be gone through again and again, such as a list or a data loader. `loss(outputs, targets)` gives
    the mean over a batch (or with `reduction="sum"` the sum), and the matrix is that of the mean (or sum) over all
    batches. Only what reaches the loss through the outputs counts: a penalty on `model.parameters()` inside it is not
    seen, as those are not the copies.

    Several vectors at once, rows of a block, share one pass through the network; products with a single batch share
    that of the first product. On a GPU they are also computed at once (`at_once`).

    Shapes:
        vectors: (..., size)    returns: (..., size)
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Batch | Iterable[Batch],
        names: Iterable[str] | None = None,
        reduction: str = "mean",
        at_once: bool | None = None,
    ) -> None:
        self.reduction = validate.one_of("reduction", reduction, ("mean", "sum"))
        chosen = dict(model.named_parameters()) if names is None else _named_parameters(model, names)
        chosen = {name: value for name, value in chosen.items() if names is not None or value.requires_grad}
        if not chosen:
            raise ValueError("model must have parameters that require gradients, got none")
        if len({value.dtype for value in chosen.values()}) > 1:
            raise TypeError("parameters must have one dtype: use model.to(torch.float32)")
        if any(value.is_meta for value in chosen.values()):
            raise ValueError("model must hold numbers, got parameters on the meta device: load it on another one")
        if isinstance(batches, Iterator):
            raise TypeError("batches must be gone through again and again, got an iterator: use list(batches)")
        self.model = without_draws(model)
        self.parameters = {name: value.detach().clone().requires_grad_() for name, value in chosen.items()}
        self.buffers = {name: value.clone() for name, value in model.named_buffers()}
        self.batches: Iterable[Any] = [batches] if isinstance(batches, tuple) else batches
        values = list(self.parameters.values())
        self.size = sum(value.numel() for value in values)
        self.dtype, self.device = values[0].dtype, values[0].device
        self.at_once = self.device.type == "cuda" if at_once is None else validate.flag("at_once", at_once)
        self.examples = sum(_example_count(inputs) for inputs, _ in self.batches)
        if self.examples == 0:
            raise ValueError("batches must hold at least one example, got none")
        self._kept: tuple[Product, float] | None = None

    @abstractmethod
    def _prepare_product(self, inputs: Any, targets: Any) -> Product:
        """One pass through the network, and a function that then gives products with the matrix of this batch."""

    def __call__(self, vectors: Float[Tensor, "*block size"]) -> Float[Tensor, "*block size"]:
        validate.last_axis("vectors", vectors, self.size, "number")
        if vectors.dtype != self.dtype:
            raise TypeError(f"vectors must be {self.dtype} as the parameters, got {vectors.dtype}")
        block = vectors.detach().reshape(-1, self.size)  # (vectors, size)
        total = torch.zeros_like(block)
        if len(block):
            for product, weight in self._batch_products():
                total += weight * self._apply_product(product, block)
        return total.reshape(vectors.shape)

    def forms(self, vectors: Float[Tensor, "*block size"]) -> Float[Tensor, "*block"]:
        """The quadratic form of each vector, in double precision; for some networks at half the cost of a product."""
        validate.last_axis("vectors", vectors, self.size, "number")
        block = vectors.detach().reshape(-1, self.size)
        total = block.new_zeros(len(block), dtype=torch.float64)
        for product, weight in self._batch_products():
            if isinstance(product, ChainCurvature):
                total += weight * torch.stack([product.form(list(self.split(row).values())) for row in block])
            else:
                total += weight * (block.double() * self._apply_product(product, block).double()).sum(-1)
        return total.reshape(vectors.shape[:-1])

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix, which is written down nowhere."""
        return self.size, self.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} x {self.size}, {self.dtype}, {self.examples} examples)"

    def __matmul__(self, columns: Tensor) -> Tensor:
        """As a matrix times a vector, or times a matrix whose columns are vectors."""
        return self(columns) if columns.ndim == 1 else self(columns.mT).mT

    def dense(self) -> Float[Tensor, "size size"]:
        """The whole matrix, for small networks; symmetric but for rounding."""
        return self(torch.eye(self.size, dtype=self.dtype, device=self.device))

    def split(self, vectors: Float[Tensor, "*block size"]) -> dict[str, Tensor]:
        """The parts of flat vectors that belong to each parameter, in its shape."""
        parts = vectors.split([value.numel() for value in self.parameters.values()], -1)
        pairs = zip(self.parameters.items(), parts, strict=True)
        return {name: part.reshape(*vectors.shape[:-1], *value.shape) for (name, value), part in pairs}

    def start(self, *block: int, generator: torch.Generator | None = None) -> Tensor:
        """Independent normal vectors, with which iterations begin."""
        return torch.randn(*block, self.size, dtype=self.dtype, device=self.device, generator=generator)

    def _batch_products(self) -> Iterator[tuple[Product, float]]:
        if self._kept is not None:
            yield self._kept
            return
        single = isinstance(self.batches, list) and len(self.batches) == 1
        for inputs, targets in self.batches:
            if _example_count(inputs) == 0:  # its mean would be NaN
                continue
            weight = _example_count(inputs) / self.examples if self.reduction == "mean" else 1.0
            with torch.enable_grad():
                product = self._prepare_product(inputs, targets)
            if single:
                self._kept = product, weight
            yield product, weight

    def _apply_product(self, product: Product, block: Tensor) -> Tensor:
        if self.at_once:
            return self._flat_parts(product(list(self.split(block).values())), 1)
        return torch.stack([self._flat_parts(product(list(self.split(row).values())), 0) for row in block])

    def _flat_parts(self, parts: Sequence[Tensor], start: int) -> Tensor:
        return torch.cat([part.flatten(start) for part in parts], -1)

    def _model_outputs(self, inputs: Any) -> Tensor:
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        buffers = {name: value.clone() for name, value in self.buffers.items()}  # batch normalisation counts in them
        return functional_call(self.model, self.parameters | buffers, arguments)

    def _pull_back(self, outputs: Tensors, into: Tensors, cotangents: Tensors, batched: bool) -> Tensors:
        """Products of cotangents with a Jacobian, by going back through the graph; zero where there is no way."""
        lead = cotangents[0].shape[:1] if batched else ()
        pairs = [pair for pair in zip(outputs, cotangents, strict=True) if pair[0].requires_grad]
        found: Sequence[Tensor | None] = [None] * len(into)
        if pairs:
            ends, given = zip(*pairs, strict=True)
            words = {"retain_graph": True, "is_grads_batched": batched, "allow_unused": True}
            found = torch.autograd.grad(ends, into, given, **words)
        pairs = zip(found, into, strict=True)
        return [part.new_zeros(*lead, *part.shape) if one is None else one for one, part in pairs]


class _OfLoss(CurvatureOperator):
    """A matrix to which the loss of outputs and targets must be given."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Tensor, Any], Tensor],
        batches: Batch | Iterable[Batch],
        names: Iterable[str] | None = None,
        reduction: str = "mean",
        at_once: bool | None = None,
    ) -> None:
        self.loss = loss
        super().__init__(model, batches, names, reduction, at_once)


@system("hessian", title="Hessian-vector products", kind="function")
class HessianOperator(_OfLoss):
    r"""The Hessian of a loss in the parameters: $v \mapsto \nabla^2 L(\theta)\,v$.

    $$ Hv = \nabla_\theta \big(\nabla_\theta L(\theta)^\top v\big) $$

    The gradient is differentiated once more by going back through it, for which torch has more and better derivatives
    than for going forwards: by `torch.func.hessian`, a network with `nn.LayerNorm` has a wrong one (torch 2.13). For
    chains of linear layers, convolutions, activations and pools on a processor, both passes are written out, which
    takes half the time. Where the loss has kinks (rectifiers), the Hessian is that of the piece on which the parameters
    lie.

    Shapes:
        vectors: (..., size)    returns: (..., size)

    Source: B. Pearlmutter, Fast exact multiplication by the Hessian (1994).

    >>> model, data = nn.Linear(3, 1), (torch.rand(5, 3), torch.rand(5, 1))
    >>> hessian = HessianOperator(model, functional.mse_loss, data)
    >>> torch.allclose(hessian.dense()[:3, :3], 2 / 5 * data[0].mT @ data[0])
    True
    """

    def _prepare_product(self, inputs: Any, targets: Any) -> Product:
        chain = known_chain(self.model, self.parameters) if self._is_plain(inputs) else None
        if chain is not None and takes_batches(chain, inputs):
            return ChainCurvature(chain, lambda f, y: _one_number(self.loss(f, y)), inputs.detach(), targets)
        values = list(self.parameters.values())
        loss = _one_number(self.loss(self._model_outputs(inputs), targets))
        gradient = list(torch.autograd.grad(loss, values, create_graph=True, materialize_grads=True))
        differentiable_again(gradient)
        return lambda vectors: self._pull_back(gradient, values, vectors, self.at_once)

    def _is_plain(self, inputs: Any) -> bool:
        """Whether products may be written out: on a processor, one vector after the other."""
        single = isinstance(inputs, Tensor) and self.dtype in (torch.float32, torch.float64)
        return single and self.device.type == "cpu" and not self.at_once


@system("gauss_newton", title="Gauss-Newton-vector products", kind="function")
class GaussNewtonOperator(_OfLoss):
    r"""The generalised Gauss-Newton matrix: the Hessian without the curvature of the network itself.

    $$ G = J^\top \big[\nabla_f^2\, \ell(f, y)\big]\, J, \qquad J = \frac{\partial f_\theta(x)}{\partial \theta} $$

    Positive semidefinite where the loss is convex in the outputs, and the Hessian where the network is linear in its
    parameters or fits its targets.

    Shapes:
        vectors: (..., size)    returns: (..., size)

    Source: N. Schraudolph, Fast curvature matrix-vector products for second-order gradient descent (2002).

    >>> model, data = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), (torch.rand(5, 3), torch.rand(5, 2))
    >>> matrix = GaussNewtonOperator(model, functional.mse_loss, data).dense()
    >>> bool(torch.linalg.eigvalsh(matrix).min() > -1e-6)
    True
    """

    def _prepare_product(self, inputs: Any, targets: Any) -> Product:
        values = list(self.parameters.values())
        outputs = self._model_outputs(inputs)
        inner = self._inner_hessian(outputs, targets)
        # What is pulled back is linear in the cotangent; pulling that back in turn pushes a vector forward.
        cotangent = torch.zeros_like(outputs, requires_grad=True)
        pulled = list(torch.autograd.grad(outputs, values, cotangent, create_graph=True, materialize_grads=True))

        def product(vectors: Tensors) -> Tensors:
            pushed = self._pull_back(pulled, [cotangent], vectors, self.at_once)
            return self._pull_back([outputs], values, inner(pushed), self.at_once)

        return product

    def _inner_hessian(self, outputs: Tensor, targets: Any) -> Product:
        """Products with the Hessian of the loss in the outputs."""
        end = outputs.detach().requires_grad_()
        slope = torch.autograd.grad(_one_number(self.loss(end, targets)), end, create_graph=True)[0]
        return lambda pushed: self._pull_back([slope], [end], pushed, self.at_once)


@system("fisher", title="Fisher-vector products", kind="function")
class FisherOperator(GaussNewtonOperator):
    r"""The Fisher information of a network whose outputs are the parameters of a distribution.

    $$ F = \mathbb E_{x}\, \mathbb E_{y \sim p_\theta(\cdot \mid x)}
       \big[\nabla_\theta \log p_\theta(y \mid x)\, \nabla_\theta \log p_\theta(y \mid x)^\top\big] $$

    The labels are those that the network expects, by the expectation in closed form, not those of the data: targets are
    ignored. `categorical` takes logits with the classes on the second axis, `bernoulli` logits, `gaussian` means with
    variance one. It is the Gauss-Newton matrix of the negative log-likelihood.

    Shapes:
        vectors: (..., size)    returns: (..., size)

    Source: S. Amari, Natural gradient works efficiently in learning (1998); J. Martens, New insights and perspectives
        on the natural gradient method (2020).

    >>> model, x = nn.Linear(3, 4), torch.rand(5, 3)
    >>> fisher = FisherOperator(model, (x, None))
    >>> same = GaussNewtonOperator(model, functional.cross_entropy, (x, torch.tensor([0, 1, 2, 3, 0])))
    >>> torch.allclose(fisher.dense(), same.dense(), atol=1e-7)
    True
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Batch | Iterable[Batch],
        distribution: str = "categorical",
        names: Iterable[str] | None = None,
        reduction: str = "mean",
        at_once: bool | None = None,
    ) -> None:
        self.distribution = validate.one_of("distribution", distribution, ("categorical", "bernoulli", "gaussian"))
        super().__init__(model, functional.mse_loss, batches, names, reduction, at_once)

    def _inner_hessian(self, outputs: Tensor, targets: Any) -> Product:
        number = len(outputs) if self.reduction == "mean" else 1
        logits = outputs.detach()
        if self.distribution == "gaussian":
            return lambda pushed: [pushed[0] / number]
        if self.distribution == "bernoulli":
            p = torch.sigmoid(logits)
            return lambda pushed: [p * (1 - p) * pushed[0] / number]
        if logits.ndim < 2:
            raise ValueError(f"outputs must be (batch, classes, ...) logits, got shape {tuple(logits.shape)}")
        p = torch.softmax(logits, 1)
        axis = 2 if self.at_once else 1
        return lambda pushed: [p * (pushed[0] - (p * pushed[0]).sum(axis, keepdim=True)) / number]


class EmpiricalFisherOperator(CurvatureOperator):
    r"""The second moment of the gradients of single examples with the labels of the data.

    $$ \hat F = \frac1n \sum_i \nabla_\theta \ell_i\, \nabla_\theta \ell_i^\top $$

    Often taken for the Fisher information, and not the same: its labels are those of the data. `losses(outputs,
    targets)` gives the loss of each example.

    Shapes:
        vectors: (..., size)    returns: (..., size)

    Source: F. Kunstner, P. Hennig and L. Balles, Limitations of the empirical Fisher approximation (2019).

    >>> def losses(outputs, targets):
    ...     return functional.cross_entropy(outputs, targets, reduction="none")
    >>> fisher = EmpiricalFisherOperator(nn.Linear(3, 2), losses, (torch.rand(5, 3), torch.tensor([0, 1, 1, 0, 1])))
    >>> torch.linalg.matrix_rank(fisher.dense()) <= 5
    tensor(True)
    """

    def __init__(
        self,
        model: nn.Module,
        losses: Callable[[Tensor, Any], Tensor],
        batches: Batch | Iterable[Batch],
        names: Iterable[str] | None = None,
        reduction: str = "mean",
        at_once: bool | None = None,
    ) -> None:
        self.losses = losses
        super().__init__(model, batches, names, reduction, at_once)

    def _prepare_product(self, inputs: Any, targets: Any) -> Product:
        values = list(self.parameters.values())
        losses, number = self.losses(self._model_outputs(inputs), targets), _example_count(inputs)
        if losses.shape != (number,):
            raise ValueError(f"losses must give ({number},) numbers, one for each example, got {tuple(losses.shape)}")
        cotangent = torch.zeros_like(losses, requires_grad=True)
        pulled = list(torch.autograd.grad(losses, values, cotangent, create_graph=True, materialize_grads=True))
        number = number if self.reduction == "mean" else 1

        def product(vectors: Tensors) -> Tensors:
            pushed = self._pull_back(pulled, [cotangent], vectors, self.at_once)[
                0
            ]  # slopes of the losses along the vector
            return self._pull_back([losses], values, [pushed / number], self.at_once)

        return product


def _one_number(loss: Tensor) -> Tensor:
    if loss.numel() != 1:
        raise ValueError(f"loss must give one number, got shape {tuple(loss.shape)}: take its mean or sum")
    return loss.reshape(())


def _example_count(inputs: Any) -> int:
    first = inputs[0] if isinstance(inputs, tuple) else inputs
    if not isinstance(first, Tensor) or first.ndim == 0:
        raise TypeError(f"batches must hold pairs of inputs and targets, with tensors as inputs, got {type(first)}")
    return len(first)


def _named_parameters(model: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
    if isinstance(names, str):
        raise TypeError(f"names must be a list of names, got {names!r}: use [{names!r}]")
    known = dict(model.named_parameters(remove_duplicate=False))
    return {validate.one_of("names", name, known): known[name] for name in names}
