r"""Dropout: units left out at random, the networks that are averaged by it, and the one network put in their place."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode, handle_torch_function, has_torch_function_unary

from lemmata import validate
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating

__all__ = ["Dropout", "DropoutEnsemble", "dropout_ensemble", "scaled_for_inference"]


@system("dropout", title="Dropout", kind="module", example="Dropout([0.5, 0.2, 0.1])(torch.randn(4, 3))")
class Dropout(nn.Module):
    r"""While training, leave each unit out with probability `p`, independently: it is kept with $\pi_i = 1 - p_i$.

    $$ \text{training: } \frac{b_i}{\pi_i}\,x_i, \quad b_i \sim \mathrm{Be}(\pi_i), \qquad \text{evaluation: } x_i $$

    As in torch, `p` is the probability to be dropped; books often write the keep probability $\pi$, which is `keep`
    here. `p` may have a number for each unit, along the last axis. With `inverted=False` nothing is divided while
    training and everything is multiplied by $\pi_i$ in evaluation, as dropout was first described;
    `scaled_for_inference` moves that factor into the next layer. As a parametrisation it drops weights
    (`torch.nn.utils.parametrize.register_parametrization(layer, "weight", Dropout(0.5))`).

    Shapes:
        x: (..., units)    returns: the same

    Claims: reg.dropout, reg.dropout.ensemble, reg.dropout.weight_scaling, reg.dropout.regulariser
    Source: N. Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting (2014); for weights
        L. Wan et al., Regularization of neural networks using DropConnect (2013).
    Differs: one `p` for all units is torch's own kernel; several are kept in float32, or in float64
        where the module or its input is, whatever else the module computes in.

    >>> layer = Dropout([0.0, 1.0, 0.5])
    >>> layer(torch.ones(3))[:2], layer.eval()(torch.ones(3))
    (tensor([1., 0.]), tensor([1., 1., 1.]))
    >>> Dropout(1.2)
    Traceback (most recent call last):
    ValueError: p must be in [0, 1], got 1.2
    """

    keep: Tensor

    def __init__(self, p: int | float | Sequence[float] | Tensor = 0.5, inverted: bool = True) -> None:
        super().__init__()
        given: Any = getattr(p, "tolist", lambda: p)()  # of tensors and arrays
        several = isinstance(given, list | tuple)
        for each in given if several else (given,):
            validate.fraction("p", each, most=1.0)
        self.p: float | tuple[float, ...] = tuple(map(float, given)) if several else float(given)
        if self.p == ():
            raise ValueError("p must be a number, or have one for each unit, got none")
        self.inverted = validate.flag("inverted", inverted)
        self.register_buffer("keep", self._keep_probabilities(torch.empty(0)), persistent=False)

    def _keep_probabilities(self, like: Tensor) -> Tensor:
        """The probabilities to be kept where `like` lies, as fine as its numbers, in float32 at least."""
        exact = 1 - torch.tensor(self.p, dtype=torch.float64)
        return exact.to(like.device, torch.promote_types(like.dtype, torch.float32))

    def forward(self, x: Float[Tensor, "*batch units"]) -> Float[Tensor, "*batch units"]:
        if isinstance(self.p, float) and self.inverted:
            return functional.dropout(x, self.p, self.training)
        if isinstance(self.p, tuple):
            validate.last_axis("x", x, len(self.p), "unit")
        # A module without parameters may be given float64 though it was never told of it.
        keep = self._keep_probabilities(x) if x.dtype == torch.float64 != self.keep.dtype else self.keep
        return drop_units(x, keep, self.training, self.inverted)

    def _apply(self, fn: Any, recurse: bool = True) -> "Dropout":
        # As numbers of the module they would be rounded, 0.999 to 1 in bfloat16, and come from the meta device empty.
        super()._apply(fn, recurse)
        self.keep = self._keep_probabilities(self.keep)
        return self

    def extra_repr(self) -> str:
        return f"p={self.p}" + ("" if self.inverted else ", inverted=False")


def drop_units(x: Tensor, keep: Tensor, training: bool, inverted: bool) -> Tensor:
    """What `Dropout` does where torch has no kernel for it. `dropout_ensemble` puts masks of its own in its place."""
    if has_torch_function_unary(x):
        return handle_torch_function(drop_units, (x,), x, keep, training, inverted)
    if not training:
        return x if inverted else x * keep.to(x.dtype)
    kept = torch.rand(x.shape, device=x.device) < keep  # (..., units)
    return x * (kept / torch.where(keep > 0, keep, 1.0) if inverted else kept).to(x.dtype)


# --- All networks ---


@dataclass(frozen=True)
class DropoutEnsemble:
    """All networks that dropout makes of one.

    Shapes:
        masks: (networks, units), true where a unit is kept; probability: (networks,); outputs: (networks, batch, ...)
    """

    masks: Bool[Tensor, "networks units"]
    probability: Float[Tensor, "networks"]
    outputs: Float[Tensor, "networks ..."]

    def mean(self) -> Float[Tensor, "..."]:
        r"""The mean of the outputs, $\sum_b p(b) f_b(x)$."""
        return torch.tensordot(self.probability.to(self.outputs), self.outputs, 1)

    def geometric_mean(self) -> Float[Tensor, "*batch classes"]:
        r"""For outputs that are probabilities of classes: $\prod_b p_b(y|x)^{p(b)}$, divided by its sum over $y$."""
        used = self.probability > 0  # 0 log 0 is 0
        return torch.tensordot(self.probability[used].to(self.outputs), self.outputs[used].log(), 1).softmax(-1)


@system("dropout_ensemble", title="The networks that dropout averages", kind="function")
def dropout_ensemble(
    model: nn.Module, x: Float[Tensor, "batch ..."], outputs: Callable[[Tensor], Tensor] | None = None
) -> DropoutEnsemble:
    r"""Every network that dropout can make of a small one, with its probability and its output: $2^R$ for $R$ units.

    $$ p(y|x) = \sum_{b\in\{0,1\}^R} p(b)\,p[\theta\odot b](y|x), \qquad
       p(b) = \prod_i \pi_i^{b_i}(1-\pi_i)^{1-b_i} $$

    `outputs` is applied to what the model returns (`lambda logits: logits.softmax(-1)`). Everything but dropout is in
    evaluation mode, and a mask is the same for the whole batch.

    Shapes:
        x: (batch, ...)    returns: masks (2^R, R), probability (2^R,), outputs (2^R, batch, ...)

    Claims: reg.dropout.ensemble, reg.dropout.weight_scaling, reg.dropout.regulariser
    Source: P. Baldi and P. Sadowski, Understanding dropout (2013).
    Differs: finds the `Dropout` here, and all that calls `torch.nn.functional.dropout` (`nn.Dropout`, `MLP`) in
        evaluation too; no whole channels (`nn.Dropout2d`), no weights, no dropout inside torch's attention and
        recurrent layers, no gradients, and at most 20 units: a million networks.

    >>> model = nn.Sequential(Dropout(0.5, inverted=False), nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.ones_(model[1].weight)
    >>> dropout_ensemble(model, torch.tensor([[1.0, 10.0]])).outputs[:, 0, 0]
    tensor([ 0.,  1., 10., 11.])
    """
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"x must be a batch of one example or more, got shape {tuple(x.shape)}")
    for name, part in model.named_modules():  # torch drops in these where it cannot be seen
        inside = isinstance(part, nn.MultiheadAttention) or (isinstance(part, nn.RNNBase) and part.num_layers > 1)
        if inside and part.dropout:
            told = f"{type(part).__name__}(dropout={part.dropout:g}), {name!r}," if name else type(part).__name__
            raise ValueError(f"the dropout inside {told} cannot be masked: set its dropout to 0")
    with evaluating(model), _Counting(len(x)) as found:
        model(x)
    keep = torch.cat([part.flatten() for part in found.keep]) if found.keep else x.new_zeros(0)
    if len(keep) > MOST_UNITS:
        told = f"the model drops {len(keep)} units, which is 2^{len(keep)} networks"
        raise ValueError(f"{told}: use at most {MOST_UNITS}, or the mean of many calls in training mode")
    numbers = torch.arange(2 ** len(keep), device=x.device)
    masks = (numbers[:, None] >> torch.arange(len(keep), device=x.device)) & 1 > 0  # (networks, units)
    probability = torch.where(masks, keep, 1 - keep).prod(1)
    answers = []
    for some in masks.split(max(1, ROWS // len(x))):
        many = x.repeat(len(some), *[1] * (x.ndim - 1))  # (networks * batch, ...)
        with evaluating(model), _Masked(some, len(x), [part.shape for part in found.keep]):
            answer = model(many)
        answer = answer if outputs is None else outputs(answer)
        answers.append(answer.unflatten(0, (len(some), len(x))))
    return DropoutEnsemble(masks, probability, torch.cat(answers))


MOST_UNITS = 20
ROWS = 16_384  # examples times networks that are computed at once


class _Counting(TorchFunctionMode):
    """Note at each dropout with which probability each unit of an example is kept."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows, self.keep = rows, list[Tensor]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (call := _dropout_call(func, args, kwargs)) is None:
            return func(*args, **kwargs)
        x, keep, _ = call
        if not bool((keep == 1).all()):  # with p = 0 there is nothing to drop
            _check_rows(x, self.rows)
            self.keep.append(torch.as_tensor(keep, dtype=torch.double, device=x.device).expand(x.shape[1:]))
        return x


class _Masked(TorchFunctionMode):
    """Put given masks in the place of each dropout, in the order in which they were counted."""

    def __init__(self, masks: Tensor, batch: int, shapes: Iterable[torch.Size]) -> None:
        super().__init__()
        shapes = list(shapes)
        parts = masks.split([math.prod(shape) for shape in shapes], 1)
        self.masks = [part.unflatten(1, shape or (1,)) for part, shape in zip(parts, shapes, strict=True)]
        self.rows, self.batch, self.next = len(masks) * batch, batch, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (call := _dropout_call(func, args, kwargs)) is None:
            return func(*args, **kwargs)
        x, keep, inverted = call
        if bool((keep == 1).all()):
            return x
        _check_rows(x, self.rows)
        mask = self.masks[self.next].repeat_interleave(self.batch, 0).reshape(x.shape)  # (networks * batch, ...)
        self.next += 1
        scale = 1 / torch.where(keep > 0, keep, 1.0) if inverted else 1.0
        return x * mask * torch.as_tensor(scale, device=x.device).to(x.dtype)


def _check_rows(x: Tensor, rows: int) -> None:
    if x.ndim == 0 or len(x) != rows:
        told = f"got shape {tuple(x.shape)} for {rows} examples"
        raise ValueError(f"what is dropped must have a row for each example, {told}: neither weights nor time first")


def _dropout_call(func: Any, args: Any, kwargs: Any) -> tuple[Tensor, Tensor, bool] | None:
    """Input, keep probabilities and scaling of a call of dropout, or None for any other function."""
    if func is drop_units:
        x, keep, _, inverted = args
        return x, keep.double(), inverted
    if func is functional.dropout:
        p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        return args[0] if args else kwargs["input"], torch.tensor(1 - p, dtype=torch.double), True
    if func in OF_CHANNELS:
        raise ValueError(f"{func.__name__} drops more than single units: use Dropout")
    return None


OF_CHANNELS = (
    functional.dropout1d,
    functional.dropout2d,
    functional.dropout3d,
    functional.alpha_dropout,
    functional.feature_alpha_dropout,
)


# --- One network in their place ---


@system("scaled_for_inference", title="Weight scaling after dropout", kind="function")
def scaled_for_inference(model: nn.Module) -> nn.Module:
    r"""A copy in evaluation mode without dropout, whose weights are scaled by the probability of their input.

    $$ \tilde w_{ij} = \pi_j w_{ij} $$

    Each `Dropout(..., inverted=False)` must stand in an `nn.Sequential`, right before an `nn.Linear` or a convolution.
    What dropout divided while training, as torch's does, has the right scale already and is taken out.

    Claims: reg.dropout.weight_scaling
    Source: N. Srivastava et al. (2014), section 10.

    >>> model = nn.Sequential(Dropout([0.5, 0.0], inverted=False), nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.ones_(model[1].weight)
    >>> scaled_for_inference(model)[1].weight.tolist()
    [[0.5, 1.0]]
    """
    twin = copy.deepcopy(model).eval()
    for block in [part for part in twin.modules() if isinstance(part, nn.Sequential)]:
        for number, layer in enumerate(block):
            if isinstance(layer, Dropout) and not layer.inverted:
                _scale_weights(block[number + 1] if number + 1 < len(block) else None, layer, twin)
            if isinstance(layer, Dropout | nn.Dropout):
                block[number] = nn.Identity()
    if left := [name for name, part in twin.named_modules() if isinstance(part, Dropout) and not part.inverted]:
        raise ValueError(f"dropout {left[0]!r} stands in no nn.Sequential before the layer that its factor goes into")
    return twin


def _scale_weights(layer: nn.Module | None, dropout: Dropout, model: nn.Module) -> None:
    if not isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d):
        got = "nothing" if layer is None else type(layer).__name__
        raise ValueError(f"dropout must stand right before a linear layer or a convolution, {got} follows {dropout}")
    if isinstance(dropout.p, tuple) and not isinstance(layer, nn.Linear):
        raise ValueError(f"p must be one number before a convolution, got {len(dropout.p)}")
    if layer._parameters.get("weight") is None:
        cure = "use torch.nn.utils.parametrize.remove_parametrizations first"
        raise ValueError(f"the weight after {dropout} must be a parameter, not computed from others: {cure}")
    places = sum(each is layer for part in model.modules() for each in part._modules.values())
    owners = sum(each is layer.weight for part in model.modules() for each in part._parameters.values())
    if max(places, owners) > 1:
        raise ValueError(
            f"the weight after {dropout} is used in {max(places, owners)} places: it can have one scale only"
        )
    with torch.no_grad():
        layer.weight.mul_(
            dropout._keep_probabilities(layer.weight).to(layer.weight)
        )  # (outputs, inputs), by columns; or everything alike
