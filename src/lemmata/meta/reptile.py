"""Reptile: move the initialisation towards where a few steps on each task lead."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.meta.inner_loop import Loss, Parameters, adapt, check_model, check_tasks, loss_for, outputs_after
from lemmata.signatures import config_of

__all__ = ["Reptile", "ReptileConfig"]


@dataclass(frozen=True)
class ReptileConfig:
    """What can be chosen of the inner loop."""

    steps: int = 8
    """Gradient steps on each task while the initialisation is learnt."""
    inner_lr: float = 0.01
    """Their size."""

    def __post_init__(self) -> None:
        validate.count("steps", self.steps)
        validate.positive("inner_lr", self.inner_lr)


@system(
    "reptile",
    title="Reptile",
    kind="module",
    example="Reptile(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))"
    "(torch.randn(5, 4, 2), torch.randn(5, 4, 1), torch.randn(5, 3, 2))",
)
class Reptile(nn.Module):
    r"""Learn an initialisation by first-order means alone: a step towards the mean of the tasks' adapted parameters.

    $$ \phi \leftarrow \phi + \epsilon\, \mathbb E_t\big[U^k_t(\phi) - \phi\big] $$

    `loss(batch)` is the loss of the adapted parameters on the tasks' examples, and its *gradient* is
    $\phi - \mathbb E_t[U^k_t(\phi)]$: plain gradient descent with learning rate $\epsilon$ takes exactly the step
    above, and any other optimiser may take its own. A task's support and query are learnt from together, since no loss
    is held out.

    Shapes:
        x: (tasks, shots, ...), y: (tasks, shots, ...), query_x: (tasks, queries, ...)
        returns: (tasks, queries, outputs)

    Claims: meta.reptile, meta.reptile_k1
    Source: Nichol, Achiam and Schulman, On first-order meta-learning algorithms (2018).
    Differs: without tasks nobody knows the outputs' shape, torch exports no `torch.func.grad`, and what x holds is the
        model's affair: does not pass `batch_of_none`, `export` and `wrong_dtype`. It
        leaves second derivatives out, so it does not pass `gradcheck`.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> reptile = Reptile(model, steps=2, inner_lr=0.1)
    >>> x = torch.ones(1, 2, 1)
    >>> reptile.loss(Examples(x=x, y=2 * x, query_x=x, query_y=2 * x)).backward()
    >>> torch.allclose(model.weight.grad, model.weight - reptile.adapt(x[0], 2 * x[0])["weight"])
    True
    """

    def __init__(
        self,
        model: nn.Module,
        steps: int = ReptileConfig.steps,
        inner_lr: float = ReptileConfig.inner_lr,
        *,
        loss: Loss | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(ReptileConfig, locals())
        self.model, self.criterion = check_model(model), loss

    def forward(
        self,
        x: Float[Tensor, "batch shots ..."],
        y: Tensor,
        query_x: Float[Tensor, "batch queries ..."],
        steps: int | None = None,
    ) -> Float[Tensor, "batch queries ..."]:
        """The outputs for each task's query, after so many steps on its support."""
        check_tasks(x, y, query_x)

        def of_one_task(x: Tensor, y: Tensor, query_x: Tensor) -> Tensor:
            return outputs_after(self.model, self.adapt(x, y, steps), x, query_x)

        return vmap(of_one_task, randomness="different")(x, y, query_x)

    def adapt(self, x: Float[Tensor, "shots ..."], y: Tensor, steps: int | None = None) -> Parameters:
        """The model's parameters for one task, after so many steps on its examples."""
        steps = self.config.steps if steps is None else steps
        return adapt(self.model, x, y, steps, self.config.inner_lr, loss=self.criterion, first_order=True)

    def loss(self, batch: Examples) -> Float[Tensor, ""]:
        """The mean loss of the adapted parameters; its gradient leads away from them."""
        x, y = torch.cat([batch.x, batch.query_x], 1), torch.cat([batch.y, batch.query_y], 1)  # (tasks, examples, ...)
        criterion = self.criterion or loss_for(y)

        def of_one_task(x: Tensor, y: Tensor) -> tuple[Tensor, Parameters]:
            found = {name: part.detach() for name, part in self.adapt(x, y).items()}
            return criterion(functional_call(self.model, found, (x,)), y), found

        losses, adapted = vmap(of_one_task, randomness="different")(x, y)  # (tasks,), (tasks, *parameter)
        away = [(part * (part - adapted[name].mean(0)).detach()).sum() for name, part in self.model.named_parameters()]
        surrogate = torch.stack(away).sum()  # whose gradient is the parameters minus the adapted ones
        return losses.mean().detach() + surrogate - surrogate.detach()

    def batch_loss(self, batch: Examples) -> Tensor:
        """`loss` as `fit` wants it: `fit(reptile, tasks, loss=Reptile.batch_loss)`."""
        return self.loss(batch)

    def extra_repr(self) -> str:
        return f"steps={self.config.steps}, inner_lr={self.config.inner_lr:g}"
