r"""Schedules: learning rates that fall as Robbins and Monro ask, or rise and then fall to zero over a run."""

from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from lemmata import validate
from lemmata.train.optimizers import lr_factor

__all__ = ["PowerDecay", "WarmupDecay"]


class PowerDecay(LRScheduler):
    r"""The learning rate falls with a power of the number of steps.

    $$ \eta_t = \frac{\eta}{(1 + t/d)^p}, \qquad t = 0, 1, 2, \dots $$

    With the delay $d = 1$ these are $\eta/1^p, \eta/2^p, \dots$ Robbins and Monro's conditions hold for
    $\tfrac12 < p \le 1$.

    Claims: optim.robbins_monro, optim.sgd
    Source: Robbins and Monro 1951.

    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=6.0)
    >>> scheduler, lrs = PowerDecay(optimizer), []
    >>> for _ in range(3):
    ...     lrs.append(optimizer.param_groups[0]["lr"])
    ...     optimizer.step()
    ...     scheduler.step()
    >>> lrs
    [6.0, 3.0, 2.0]
    """

    def __init__(self, optimizer: Optimizer, power: float = 1.0, delay: float = 1.0, last_epoch: int = -1) -> None:
        self.power = validate.number("power", power, least=0)
        self.delay = validate.positive("delay", delay)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return [lr / (1 + self.last_epoch / self.delay) ** self.power for lr in self.base_lrs]


class WarmupDecay(LRScheduler):
    r"""The learning rate rises through `warmup` steps, then falls until the last of `steps`: to `least` of its height.

    $$ \eta_t = \eta\,\bigl(f + (1 - f)\tfrac12(1 + \cos\pi s)\bigr) \text{ or } \eta\,\bigl(f + (1 - f)(1 - s)\bigr),
       \qquad s = \frac{t - w}{T - w} \in [0, 1] $$

    `shape` is "cosine", "linear" or "constant" (after the warm-up it stays), $f$ is `least`. As `fit` has them.

    Source: Goyal et al. 2017 (warm-up); Loshchilov and Hutter 2017 (cosine).

    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> scheduler, lrs = WarmupDecay(optimizer, steps=6, warmup=2, shape="linear", least=0.5), []
    >>> for _ in range(7):
    ...     lrs.append(optimizer.param_groups[0]["lr"])
    ...     optimizer.step()
    ...     scheduler.step()
    >>> lrs
    [0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        steps: int,
        warmup: int = 0,
        shape: str = "cosine",
        least: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.steps, self.warmup = validate.count("steps", steps), validate.count("warmup", warmup, least=0)
        self.shape = validate.one_of("shape", shape, ("cosine", "linear", "constant"))
        self.least = validate.fraction("least", least, most=1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        step = min(self.last_epoch, max(self.steps, self.warmup))  # whoever goes on stays at the end
        factor = lr_factor(step, self.steps, self.shape, self.warmup)
        if step >= self.warmup:
            factor = self.least + (1 - self.least) * factor
        return [lr * factor for lr in self.base_lrs]
