r"""Learning by gradients: the usual learner, for any module and any differentiable loss."""

import contextlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from lemmata.data.examples import Examples
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.losses import OutputLoss, as_loss, as_metrics
from lemmata.train.optimizers import Rates
from lemmata.train.options import Options
from lemmata.train.processes import World

__all__ = ["GradientLearner"]

Loss = Callable[[Any, Examples], "Tensor | Mapping[str, Tensor]"]
ROWS = 1024  # evaluated at once: large enough for the matrix products, small enough for any memory


class GradientLearner:
    r"""Lower a loss by gradient steps: accumulate, clip, step, average; the same on one process or many.

    With several processes each computes its share of the batch; weights make the mean of their gradients exactly the
    gradient of the whole batch, whatever the sizes of the shares.

    >>> line, x = nn.Linear(1, 1), torch.linspace(-1, 1, 64)[:, None]
    >>> learner = GradientLearner(line, options=Options(lr=0.1, optimizer="sgd"), steps=200)
    >>> for step in range(200): numbers = learner.step(Examples(x=x, y=2 * x + 1), step / 200)
    >>> round(line.weight.item(), 3), round(line.bias.item(), 3)
    (2.0, 1.0)
    """

    def __init__(
        self,
        system: nn.Module,
        loss: Any = None,
        metrics: Any = None,
        options: Options | None = None,
        steps: int = 1,
        world: World | None = None,
        device: torch.device | None = None,
        optimizer: Any = None,
        scheduler: Any = None,
        scheduler_every: str = "epoch",
    ):
        self.options, self.world = options or Options(), world or World()
        self.system, self.device = system, device or torch.device("cpu")
        self.loss = as_loss(loss, metrics, self.device)
        self.metrics = as_metrics(metrics, self.loss)
        self.steps = steps
        self.rates = Rates(system, self.options, optimizer, scheduler, scheduler_every)
        self.optimizer = self.rates.optimizer
        self.averaged = None
        if self.options.ema_decay is not None:
            averaging = get_ema_multi_avg_fn(self.options.ema_decay)
            self.averaged = AveragedModel(system, multi_avg_fn=averaging, use_buffers=True)
        self._whole = _Whole(system, self.loss)
        if self.world.size > 1:
            self._whole = nn.parallel.DistributedDataParallel(self._whole)

    def step(self, batch: Examples, progress: float, weight: float = 1.0) -> dict[str, Tensor | float]:
        """One update; `weight` is this process's part of the batch."""
        self.rates.set(progress * self.steps, self.steps)
        lr = self.rates.lr
        numbers: dict[str, Tensor | float] = {}

        def compute() -> Any:
            numbers.clear()
            self.optimizer.zero_grad()
            for share, part, last in _batch_parts(batch, self.options.accumulate):
                with contextlib.nullcontext() if last or self.world.size == 1 else self._whole.no_sync():  # type: ignore[operator]
                    self._add_gradient(part, share, weight, numbers)
            if self.options.clip is not None:
                numbers["grad_norm"] = nn.utils.clip_grad_norm_(self.system.parameters(), self.options.clip)
            return numbers["loss"]

        if self.rates.needs_closure:
            self.optimizer.step(compute)
        else:
            compute()
            self.optimizer.step()
        self.rates.step_ended()
        if self.averaged is not None:
            self.averaged.update_parameters(self.system)
        return {**numbers, "lr": lr}

    def _add_gradient(self, part: Examples, share: float, weight: float, numbers: dict[str, Any]) -> None:
        """Add the gradient of one part of the batch, and its numbers."""
        with self._autocast_context():
            found = self._whole(part)
        loss = found["loss"]
        (loss if share * weight == 1 else loss * (share * weight)).backward()
        for name, value in found.items():
            value = value.detach() if isinstance(value, Tensor) else value
            numbers[name] = value if share == 1 else numbers.get(name, 0.0) + share * value

    def evaluate(self, examples: Examples) -> dict[str, float]:
        """Mean loss and metrics, in evaluation mode, of the averaged weights if there are any."""
        system = self.system if self.averaged is None else self.averaged.module
        totals: dict[str, float] = {}
        for first in range(0, len(examples), ROWS):
            rows = examples[first : first + ROWS].to(self.device)
            with evaluating(system), self._autocast_context():
                found = {
                    **_loss_by_name(self.loss(system, rows)),
                    **(self.metrics(system, rows) if self.metrics else {}),
                }
            for name, value in found.items():
                totals[name] = totals.get(name, 0.0) + float(value) * len(rows)
        return {name: total / len(examples) for name, total in totals.items()}

    def finish(self) -> None:
        """Leave the averaged weights in the system: they are what was evaluated."""
        if self.averaged is not None:
            self.system.load_state_dict(self.averaged.module.state_dict())

    def state(self) -> dict[str, Any]:
        """The state of optimiser and scheduler, and the averaged weights."""
        average = self.averaged.state_dict() if self.averaged is not None else None
        return {**self.rates.state(), "average": average}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.rates.restore(state)
        if self.averaged is not None:
            self.averaged.load_state_dict(state["average"])

    def _autocast_context(self) -> contextlib.AbstractContextManager[Any]:
        if self.options.precision != "bfloat16":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)


class _Whole(nn.Module):
    """System and loss as one module, so that DistributedDataParallel sees every use of the parameters."""

    def __init__(self, system: nn.Module, loss: Loss):
        super().__init__()
        self.system, self.loss = system, loss

    def forward(self, batch: Examples) -> Mapping[str, Tensor]:
        try:
            return _loss_by_name(self.loss(self.system, batch))
        except (TypeError, AttributeError) as error:
            if not isinstance(self.loss, OutputLoss):
                error.add_note("loss was given (model, batch); for (output, target), call its second parameter target")
            raise


def _loss_by_name(loss: "Tensor | Mapping[str, Tensor]") -> Mapping[str, Tensor]:
    found = {"loss": loss} if isinstance(loss, Tensor) else loss
    value = found.get("loss") if isinstance(found, Mapping) else found
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = f"shape {tuple(value.shape)}: take its mean" if isinstance(value, Tensor) else repr(value)[:80]
        raise ValueError(f"loss must be a tensor with one number, or a dict with one under 'loss', got {got}")
    return found


def _batch_parts(batch: Examples, count: int) -> list[tuple[float, Examples, bool]]:
    """The batch in `count` parts of nearly equal size, each with its share of the mean and whether it is the last."""
    if count == 1:
        return [(1.0, batch, True)]
    count = min(count, len(batch))
    edges = [part * len(batch) // count for part in range(count + 1)]
    return [((b - a) / len(batch), batch[a:b], b == len(batch)) for a, b in itertools.pairwise(edges)]
