r"""Cross-entropy of logits: of many classes and of two, with whole, smoothed or soft targets."""

import math
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["binary_cross_entropy", "cross_entropy"]

REDUCTIONS = ("mean", "sum", "none")
NOBODY = -(2**62)  # a class that no example has
FEW = 1 << 18  # logits; a pass over so many is short beside a call


@system("cross_entropy", title="Cross-entropy of logits", kind="function")
def cross_entropy(
    logits: Float[Tensor, "*batch classes"],
    y: Shaped[Tensor, "..."],
    smoothing: float = 0.0,
    reduction: str = "mean",
    weight: Float[Tensor, "classes"] | None = None,
    ignore_index: int | None = None,
) -> Float[Tensor, "..."]:
    r"""The negative logarithm of the probability that softmax gives to the right class, in nats.

    $$ \ell(z, y) = -\log\mathrm{softmax}(z)_y = -z_y + \log\sum_j e^{z_j}, \qquad
       \nabla_z\ell = \mathrm{softmax}(z) - e_y $$

    With `smoothing` $\epsilon$ the target is $(1-\epsilon)e_y + \epsilon/k$ instead of $e_y$; `y` may also be a
    distribution $t$ over the classes, and $\ell(z, t) = -\sum_j t_j \log\mathrm{softmax}(z)_j$. With `weight` the term
    of class $j$ counts $w_j$ times, and the mean is over the weights of the right classes; examples whose class is
    `ignore_index` do not count.

    Shapes:
        logits: (..., classes), y: (...) of class numbers, or (..., classes) of probabilities, weight: (classes,)
        returns: scalar, or (...) with `reduction="none"`

    Claims: softmax.cross_entropy
    Differs: from `torch.nn.functional.cross_entropy` in having the classes on the last axis, whatever the batch, and in
        ignoring nothing unless it is told to. The values and gradients are the same. On a CPU the gradient is written
        down in one pass over the logits, where torch's is put together from two; on a GPU torch's kernels are called.

    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> cross_entropy(logits, torch.tensor([0, 2]), reduction="none")
    tensor([0.2395, 1.0986])
    >>> cross_entropy(logits, torch.tensor([0, 3]))
    Traceback (most recent call last):
    ValueError: y must hold classes from 0 to 2, got 0 to 3
    """
    validate.one_of("reduction", reduction, REDUCTIONS)
    validate.fraction("smoothing", smoothing, most=1.0)
    logits = _wide_logits(logits)
    if logits.ndim == 0:
        raise ValueError("logits must have the classes on their last axis, got shape ()")
    weight = _class_weights(weight, logits)
    if validate.tensor("y", y).is_floating_point():
        if ignore_index is not None:
            raise ValueError("ignore_index must be left out for probabilities: give the rows to ignore no weight")
        return _reduce_losses(_soft_losses(logits, y, smoothing, weight), reduction)
    if y.shape != logits.shape[:-1]:
        hint = ": use y.argmax(-1)" if y.shape == logits.shape else ""
        wanted = f"of shape {tuple(logits.shape[:-1])} for logits of shape {tuple(logits.shape)}"
        raise ValueError(f"y must hold a class {wanted}, got shape {tuple(y.shape)}{hint}")
    # A compiler finds the one pass by itself, and torch.func differentiates the formula as often as it likes.
    quick = not _is_transformed() and not (weight is not None and weight.requires_grad)
    few = logits.numel() <= FEW and logits.device.type == "cpu" and not _has_tangents(logits)
    ignored = None
    try:
        if quick and (few or (logits.is_cuda and ignore_index is None)):
            return _torch_losses(logits, y, smoothing, reduction, weight, ignore_index)
        if ignore_index is not None:
            ignored = y == ignore_index
            # Whatever stands in a row that does not count, its gradient is 0; the one pass sees to that itself.
            logits = logits if quick else logits.masked_fill(ignored[..., None], 0.0)
        y = y.long() if ignored is None else y.long().masked_fill(ignored, 0)
        losses = (_quick_losses if quick else _readable_losses)(logits, y, smoothing, weight, ignored)
    except (RuntimeError, IndexError):  # looking at the classes first would cost time, and on a GPU make each step wait
        seen = y if ignore_index is None else y[y != ignore_index]
        if y.device.type == "cpu" and seen.numel() and not 0 <= int(seen.min()) <= int(seen.max()) < logits.shape[-1]:
            hint = f": use ignore_index={int(y.min())}" if ignore_index is None and int(y.min()) == -100 else ""
            told = f"from 0 to {logits.shape[-1] - 1}, got {int(seen.min())} to {int(seen.max())}{hint}"
            raise ValueError(f"y must hold classes {told}") from None
        raise
    if ignored is None and weight is None:
        return _reduce_losses(losses, reduction)
    counts = torch.ones_like(losses) if weight is None else weight[y]  # (...): how much each example counts
    if ignored is not None:
        losses, counts = losses.masked_fill(ignored, 0.0), counts.masked_fill(ignored, 0.0)
    return losses.sum() / counts.sum() if reduction == "mean" else _reduce_losses(losses, reduction)


@system("binary_cross_entropy", title="Binary cross-entropy of logits", kind="function")
def binary_cross_entropy(
    logits: Float[Tensor, "*batch"], y: Shaped[Tensor, "*batch"], reduction: str = "mean"
) -> Float[Tensor, "..."]:
    r"""The cross-entropy of two classes, from the logit of class 1.

    $$ \ell(z, y) = -y\log\sigma(z) - (1-y)\log(1-\sigma(z)), \qquad \frac{\partial\ell}{\partial z} = \sigma(z) - y $$

    Since $1-\sigma(z) = \sigma(-z)$, neither logarithm is taken of a number that has been rounded to 0 or 1.

    Shapes:
        logits, y: (...), y from 0 to 1    returns: scalar, or (...) with `reduction="none"`

    Claims: logistic.bce, logistic.bce_compact
    Differs: from `torch.nn.functional.binary_cross_entropy_with_logits` in keeping all digits of a loss near 0, which
        there is the difference of two numbers near $|z|$.

    >>> binary_cross_entropy(torch.tensor([-60.0, 0.0, 60.0]), torch.tensor([0, 1, 0]), reduction="none")
    tensor([8.7565e-27, 6.9315e-01, 6.0000e+01])
    """
    validate.one_of("reduction", reduction, REDUCTIONS)
    logits = _wide_logits(logits)
    if validate.tensor("y", y).shape != logits.shape:
        raise ValueError(f"y must have the shape of logits, {tuple(logits.shape)}, got {tuple(y.shape)}")
    if y.device.type == "cpu" and y.numel() and not _is_transformed():
        low, high = map(float, y.detach().aminmax())
        if not 0 <= low <= high <= 1:
            hint = ": use (y + 1) / 2" if (low, high) == (-1, 1) else ""
            raise ValueError(f"y must lie from 0 to 1, got {low:g} to {high:g}{hint}")
    y = y.to(logits.dtype)
    return _reduce_losses(-(y * functional.logsigmoid(logits) + (1 - y) * functional.logsigmoid(-logits)), reduction)


def _readable_losses(
    logits: Tensor, y: Tensor, smoothing: float, weight: Tensor | None = None, ignored: Tensor | None = None
) -> Tensor:
    """The losses of class numbers, as the formula has them; what is ignored is left to the caller."""
    log_p = logits.log_softmax(-1)  # (..., classes)
    log_p = log_p if weight is None else weight * log_p
    losses = -log_p.gather(-1, y[..., None])[..., 0]  # (...)
    return (1 - smoothing) * losses - smoothing * log_p.mean(-1) if smoothing else losses


def _torch_losses(
    logits: Tensor, y: Tensor, smoothing: float, reduction: str, weight: Tensor | None, ignore_index: int | None = None
) -> Tensor:
    """The same by torch's kernels, which are the quicker ones on a GPU, and for few logits."""
    if ignore_index is None:
        ignore_index = NOBODY
    elif logits.requires_grad and not math.isfinite(logits.detach().sum()):
        # A row that does not count has a gradient of NaN there, where it holds one.
        logits = logits.masked_fill((y == ignore_index)[..., None], 0.0)
    rows = logits if logits.ndim == 2 else logits.reshape(-1, logits.shape[-1])  # (points, classes)
    y = y.long()
    told: dict[str, Any] = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignore_index}
    losses = functional.cross_entropy(rows, y.flatten(), weight, **told)
    return losses.reshape(y.shape) if reduction == "none" else losses


def _quick_losses(logits: Tensor, y: Tensor, smoothing: float, weight: Tensor | None, ignored: Tensor | None) -> Tensor:
    """The same; the gradient is written where the probabilities stand, which saves passes over the logits."""
    return _OnePass.apply(logits, y, smoothing, weight, ignored)[0]


class _OnePass(torch.autograd.Function):
    """Losses and log-probabilities, with the derivative of the first."""

    @staticmethod
    def forward(
        logits: Tensor, y: Tensor, smoothing: float, weight: Tensor | None, ignored: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        log_p = logits.log_softmax(-1)  # (..., classes)
        losses = -log_p.gather(-1, y[..., None])[..., 0]  # (...)
        losses = losses if weight is None else losses * weight[y]
        if smoothing:
            mean = log_p.mean(-1) if weight is None else (log_p @ weight) / len(weight)
            losses = (1 - smoothing) * losses - smoothing * mean
        return losses, log_p

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        logits, y, ctx.smoothing, weight, ignored = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logits, y, output[1], weight, ignored)
        ctx.save_for_forward(logits, y, output[1], weight, ignored)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        if grad is None:
            return None, None, None, None, None
        try:  # What is differentiated again must not be overwritten,
            slope = _logit_gradient(ctx)[0] * grad[..., None] if torch.is_grad_enabled() else _written_slope(ctx, grad)
        except RuntimeError:  # nor can it be by many gradients at once
            slope = _logit_gradient(ctx)[0] * grad[..., None]
        return slope.to(ctx.saved_tensors[0].dtype), None, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, *_: None) -> tuple[Tensor | None, None]:  # type: ignore[override]
        if tangent is None:
            return None, None
        slope, ignored = _logit_gradient(ctx)
        tangent = tangent if ignored is None else tangent.masked_fill(ignored[..., None], 0.0)
        return (slope * tangent).sum(-1), None


def _logit_gradient(ctx: Any) -> tuple[Tensor, Tensor | None]:
    """Softmax less the target, (..., classes): the gradient of each loss in its logits; and what is ignored."""
    logits, y, log_p, weight, ignored = ctx.saved_tensors
    logits = logits if ignored is None else logits.masked_fill(ignored[..., None], 0.0)
    one = functional.one_hot(y, logits.shape[-1]).to(log_p.dtype)  # integers times 0.9 would be float32
    target = (1 - ctx.smoothing) * one + ctx.smoothing / logits.shape[-1]
    if weight is None:
        return logits.softmax(-1) - target, ignored
    target = weight * target
    return target.sum(-1, keepdim=True) * logits.softmax(-1) - target, ignored


def _written_slope(ctx: Any, grad: Tensor) -> Tensor:
    """The same times the gradient of each loss, written where the probabilities stand: second derivatives have none."""
    _, y, log_p, weight, ignored = ctx.saved_tensors
    classes, smoothing = log_p.shape[-1], ctx.smoothing
    own = (1 - smoothing) * grad if weight is None else (1 - smoothing) * grad * weight[y]  # (...): the right class's
    slope = log_p.exp()  # (..., classes)
    if weight is None:
        slope = slope.sub_(smoothing / classes) if smoothing else slope
        slope.mul_(grad[..., None])
    elif not smoothing:
        slope.mul_(own[..., None])
    else:  # the other classes have shares of their own: an outer product
        slope.mul_((own + smoothing * weight.mean() * grad)[..., None])
        rows = slope.view(-1, classes)
        rows.addr_(grad.reshape(-1), weight, alpha=-smoothing / classes)
    slope.scatter_add_(-1, y[..., None], -own[..., None])
    if ignored is not None:  # 0 times what stands there may be NaN
        slope.view(-1, classes).index_fill_(0, ignored.flatten().nonzero()[:, 0], 0.0)
    return slope


def _soft_losses(logits: Tensor, y: Tensor, smoothing: float, weight: Tensor | None) -> Tensor:
    if y.shape != logits.shape:
        hint = ": use y.long()" if y.shape == logits.shape[:-1] else ""
        wanted = f"class numbers, or probabilities of shape {tuple(logits.shape)} as the logits have"
        raise ValueError(f"y must hold {wanted}, got {y.dtype} of shape {tuple(y.shape)}{hint}")
    target = (1 - smoothing) * y + smoothing / logits.shape[-1]  # (..., classes)
    target = target if weight is None else weight * target
    return -(target * logits.log_softmax(-1)).sum(-1)


def _class_weights(weight: Tensor | None, logits: Tensor) -> Tensor | None:
    if weight is None:
        return None
    if validate.tensor("weight", weight).shape != logits.shape[-1:]:
        wanted = f"one entry for each of {logits.shape[-1]} classes"
        raise ValueError(f"weight must have {wanted}, got shape {tuple(weight.shape)}")
    return weight.to(logits)


def _is_transformed() -> bool:
    """Whether a compiler or torch.func is at work, for which no value may be looked at."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def _has_tangents(logits: Tensor) -> bool:
    """Whether derivatives are pushed forwards, which torch's loss of class numbers does not know."""
    return forward_ad.unpack_dual(logits).tangent is not None if forward_ad._current_level >= 0 else False


def _wide_logits(logits: Tensor) -> Tensor:
    """Under autocast the losses are computed in float32, as torch computes its own."""
    if not validate.tensor("logits", logits).is_floating_point():
        raise TypeError(f"logits must be floating point, got {logits.dtype}: use logits.float()")
    half = logits.dtype in (torch.bfloat16, torch.float16)
    return logits.float() if half and torch.is_autocast_enabled(logits.device.type) else logits


def _reduce_losses(losses: Tensor, reduction: str) -> Tensor:
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
