"""Task masks: each task has units of its own, and what is not its own is shut."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.continual.strategy import Strategy
from lemmata.marks import system

__all__ = ["MaskedMLP", "TaskMask", "TaskMasks"]


@system("task_mask", title="Task mask", kind="module", example="TaskMask(8, tasks=2)(torch.randn(5, 8))")
class TaskMask(nn.Module):
    r"""Shut all units of a layer but those of the task at hand, which is `layer.task`.

    $$ y = m_t \odot x, \qquad m_t \in \{0, 1\}^n $$

    Task k owns the k-th of as many equal parts. `overlap` lets each part begin that much earlier: at 0.5 half of a
    task's units were the one's before.

    Shapes:
        x: (batch, units)    returns: (batch, units)

    Claims: continual.nonoverlap
    Source: Masse, Grant and Freedman, Alleviating catastrophic forgetting using context-dependent gating (2018).

    >>> mask = TaskMask(6, tasks=3)
    >>> mask.task = 1
    >>> mask(torch.ones(1, 6))
    tensor([[0., 0., 1., 1., 0., 0.]])
    """

    masks: Tensor

    def __init__(
        self,
        units: int,
        tasks: int,
        overlap: float = 0.0,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.units = validate.count("units", units, least=validate.count("tasks", tasks))
        self.overlap = validate.fraction("overlap", overlap, most=1)
        self.task = 0
        masks = torch.zeros(tasks, units, device=device, dtype=dtype)
        for k in range(tasks):
            first, end = k * units // tasks, (k + 1) * units // tasks
            masks[k, max(0, first - round(overlap * (end - first))) : end] = 1
        self.register_buffer("masks", masks)

    def forward(self, x: Float[Tensor, "batch units"]) -> Float[Tensor, "batch units"]:
        return validate.examples("x", x, self.units) * self.masks[self.task].to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.units}, tasks={len(self.masks)}, overlap={self.overlap:g}"


@system(
    "masked_mlp",
    title="Multilayer perceptron with units for each task",
    kind="module",
    example="MaskedMLP(4, 3, widths=(8,), tasks=2)(torch.randn(5, 4))",
)
class MaskedMLP(nn.Module):
    r"""A multilayer perceptron with a mask after each hidden layer: in effect a small network for each task.

    $$ h_l = m_t \odot \mathrm{ReLU}(W_l h_{l-1} + b_l), \qquad y = W_L h_{L-1} $$

    The last layer has no bias: it would belong to all tasks. Units of different tasks meet in no product, since what
    enters from the others is zero, and so is the gradient of their weights.

    Shapes:
        x: (batch, inputs)    returns: (batch, outputs)

    Claims: continual.nonoverlap

    >>> MaskedMLP(4, 3, widths=(8, 8), tasks=2)(torch.randn(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        widths: tuple[int, ...] = (200, 200),
        tasks: int = 3,
        overlap: float = 0.0,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not widths:
            raise ValueError("widths must name one hidden layer or more: without, there is no unit to own")
        self.inputs = validate.count("inputs", inputs)
        sizes = [inputs, *widths]
        layers: list[nn.Module] = []
        for before, width in zip(sizes, widths, strict=False):
            layers += [
                nn.Linear(before, width, device=device, dtype=dtype),
                nn.ReLU(),
                TaskMask(width, tasks, overlap, device=device, dtype=dtype),
            ]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], outputs, bias=False, device=device, dtype=dtype))

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        return self.layers(validate.examples("x", x, self.inputs))  # (batch, outputs)


@system("task_masks", title="Subnetworks that do not overlap", kind="strategy")
class TaskMasks(Strategy):
    r"""Plain training of a network with `TaskMask` layers, each task on its own units; the task must be told.

    $$ \theta_t = \operatorname{train}(\theta_{t-1}, L_t), \qquad f(x; t) = f(x; m_t \odot \theta) $$

    Claims: continual.nonoverlap
    Source: Masse, Grant and Freedman, Alleviating catastrophic forgetting using context-dependent gating (2018).

    >>> TaskMasks(MaskedMLP(64, 10)).task
    0
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.masks = [part for part in model.modules() if isinstance(part, TaskMask)]
        if not self.masks:
            raise ValueError("model must have TaskMask layers, got none: use MaskedMLP, or put them after activations")

    def before_task(self, task: int) -> None:
        super().before_task(task)
        for mask in self.masks:
            if not task < len(mask.masks):
                raise ValueError(f"tasks of the masks must be more than {task}, got {len(mask.masks)}")
            mask.task = task
