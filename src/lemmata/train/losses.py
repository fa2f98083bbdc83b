r"""Losses and metrics as people write them, all as `loss(model, batch)`; and what a first batch that fails means."""

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.columns import inputs_and_target, taken_by_name
from lemmata.data.examples import Examples

__all__ = []  # for learners

Found = Mapping[str, "Tensor | float"]
RESERVED = ("loss", "lr", "grad_norm", "finished", "step", "epoch", "event")
SHOWN = 200  # characters of torch's own message


def default_loss(output: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy for integer targets, the mean squared error for others."""
    if target.is_floating_point():
        return functional.mse_loss(output, target)
    return functional.cross_entropy(output, target.long())  # torch takes classes as int64 or uint8 only


def as_loss(loss: Any, metrics: Any, device: torch.device) -> Callable[[Any, Examples], Any]:
    """The loss of a (model, batch), whatever it was given as.

    A module, such as nn.MSELoss(), and a function whose second parameter is called target, such as F.cross_entropy,
    are given the model's output and the target; any other function is given the model and the batch. Where neither a
    loss nor a target is given, a model that has a loss(x) of its own, as generative ones do, is asked for it.
    """
    if loss is not None and not _takes_output(loss):
        if not callable(loss):
            raise TypeError(f"loss must be a function, such as nn.MSELoss() or F.cross_entropy, got {loss!r}")
        return loss
    if isinstance(loss, nn.Module):
        loss.to(device)
    return OutputLoss(loss or default_loss, metrics if isinstance(metrics, Mapping) else {})


def as_metrics(metrics: Any, loss: Any) -> Callable[[Any, Examples], Any] | None:
    """What is measured beside the loss, as one function of (model, batch)."""
    if metrics is None or callable(metrics):
        return metrics
    if not isinstance(metrics, Mapping) or not all(map(callable, metrics.values())):
        raise TypeError(f"metrics must be a dict of functions of (output, target), got {metrics!r}"[:SHOWN])
    if taken := [name for name in metrics if name in RESERVED]:
        raise ValueError(f"a metric cannot be called {taken[0]}: choose another name")
    if isinstance(loss, OutputLoss):  # which measures them on the output that it has anyhow
        return None

    def measure(model: Any, batch: Examples) -> Found:
        inputs, target = _inputs_and_target(batch)
        return _measure_metrics(metrics, _model_output(model, inputs, taken_by_name(model, list(inputs))), target)

    return measure


class OutputLoss:
    """A loss of the model's output and the target; measures metrics on the same output, while it learns too."""

    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor], metrics: Mapping[str, Callable[..., Any]]):
        self.loss, self.metrics = loss, metrics
        self.by_name: bool | None = None  # until the first batch, which is looked at more closely

    def __call__(self, model: Any, batch: Examples) -> "Tensor | Found":
        inputs, target = inputs_and_target(batch, "the batch")
        if target is None:
            return self._own_loss(model, inputs)
        if self.by_name is None:
            output, loss = self._try_loss(model, inputs, target)
        else:
            output = _model_output(model, inputs, self.by_name)
            loss = self.loss(output, target)
        return {"loss": loss, **_measure_metrics(self.metrics, output, target)} if self.metrics else loss

    def _own_loss(self, model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        """What a model says of examples without a target, such as the negative log-likelihood of a generative one."""
        own = callable(getattr(model, "loss", None))
        if self.loss is not default_loss or self.metrics or len(inputs) != 1 or not own:
            raise _missing_target(inputs)
        return model.loss(*inputs.values())

    def _try_loss(self, model: Any, inputs: Mapping[str, Tensor], target: Tensor) -> tuple[Any, Tensor]:
        by_name = taken_by_name(model, list(inputs))
        try:
            output = _model_output(model, inputs, by_name)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            integers = [name for name, values in inputs.items() if not values.is_floating_point()]
            cure = f"; use {integers[0]}.float()" if integers and "dtype" in str(error) else ""
            shapes = " and ".join(f"{name} of shape {told(values)}" for name, values in inputs.items())
            raise ValueError(f"the model cannot take {shapes}: {_short_error(error)}{cure}") from error
        if isinstance(output, Tensor):
            _check_comparable(output, target, self.loss)
        try:
            loss = self.loss(output, target)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            seen = told(output) if isinstance(output, Tensor) else f"a {type(output).__name__}"
            sizes = f"the output, {seen}, with y, {told(target)}"
            raise ValueError(f"the loss cannot compare {sizes}: {_short_error(error)}") from error
        self.by_name = by_name
        return output, loss


def _inputs_and_target(batch: Examples) -> tuple[dict[str, Tensor], Tensor]:
    inputs, target = inputs_and_target(batch, "the batch")
    if target is None:
        raise _missing_target(inputs)
    return inputs, target


def _missing_target(inputs: Mapping[str, Tensor]) -> ValueError:
    cure = "call the target y, label or target, or give loss=lambda model, batch: ..."
    return ValueError(f"this loss needs an input and a target, the batch has {', '.join(inputs)}: {cure}")


def _model_output(model: Any, inputs: Mapping[str, Tensor], by_name: bool) -> Any:
    return model(**inputs) if by_name else model(*inputs.values())


def _check_comparable(output: Tensor, target: Tensor, loss: Any) -> None:
    """Refuse what torch would compute without a word, or with an obscure one."""
    if not (
        loss is default_loss or type(loss).__module__.startswith("torch.") or _loss_module(loss).startswith("torch.")
    ):
        return  # what shapes a loss of one's own takes is not known
    if not target.is_floating_point():
        if loss is default_loss or _is_loss_named(loss, OF_CLASSES):
            _check_classes(output, target, loss)
        elif _is_loss_named(loss, OF_VALUES):
            raise ValueError(f"this loss compares values, but y holds integers ({told(target)}): use y.float()")
    elif _is_loss_named(loss, OF_CLASSES) and target.ndim == output.ndim - 1:
        raise ValueError(f"this loss compares classes, but y holds real numbers ({told(target)}): use y.long()")
    elif output.shape != target.shape and output.numel() and target.numel():
        with contextlib.suppress(RuntimeError):  # torch will say itself what cannot be broadcast
            torch.broadcast_shapes(output.shape, target.shape)
            cure = "y[:, None]" if output.ndim == target.ndim + 1 else "y[:, 0]"
            seen = f"{tuple(output.shape)} and y {tuple(target.shape)}"
            raise ValueError(f"the output has shape {seen}: torch would compare each with every other; use {cure}")


def _check_classes(output: Tensor, target: Tensor, loss: Any) -> None:
    if target.ndim == output.ndim > 1:
        cure = "y[:, 0]" if target.shape[1] == 1 else "y.argmax(1)"
        raise ValueError(f"y must hold one class an example, got {told(target)}: use {cure}")
    if loss is not default_loss and target.dtype not in (torch.int64, torch.uint8):
        raise ValueError(f"this loss takes classes as int64, y is {told(target)}: use y.long()")
    target = target[target != getattr(loss, "ignore_index", -100)]  # what torch leaves out, such as padding
    if not len(target):
        return
    known = output.shape[1] if output.ndim > 1 else len(output)
    low, high = int(target.min()), int(target.max())
    if not 0 <= low <= high < known:
        from_zero = low < 0 or (low > 0 and high == known)
        cure = "count classes from 0" if from_zero else "give it more outputs"
        raise ValueError(f"the model has outputs for the classes 0 to {known - 1}, but y holds {low} to {high}: {cure}")


OF_CLASSES = ("CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss")
OF_VALUES = ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "mse_loss", "l1_loss")
OF_VALUES += ("smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")


def _is_loss_named(loss: Any, names: tuple[str, ...]) -> bool:
    return (type(loss).__name__ if isinstance(loss, nn.Module) else getattr(loss, "__name__", "")) in names


def told(values: Tensor) -> str:
    """(64, 8) float32"""
    return f"{tuple(values.shape)} {str(values.dtype).removeprefix('torch.')}"


def _measure_metrics(metrics: Mapping[str, Callable[..., Any]], output: Any, target: Tensor) -> Found:
    with torch.no_grad():
        output = output.detach() if isinstance(output, Tensor) else output
        found = {name: metric(output, target) for name, metric in metrics.items()}
    for name, value in found.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"metric {name} must give one number, got shape {tuple(value.shape)}: take its mean")
    return found


def _takes_output(loss: Any) -> bool:
    """Whether a loss compares output and target, rather than being given the model and the batch."""
    if isinstance(loss, nn.Module):
        return True
    try:
        parameters = list(inspect.signature(loss).parameters)
    except (TypeError, ValueError):
        return False
    return len(parameters) > 1 and parameters[1] == "target"


def _loss_module(loss: Any) -> str:
    return str(getattr(loss, "__module__", ""))


def _short_error(error: BaseException) -> str:
    return " ".join(str(error).split())[:SHOWN]
