"""A learned optimiser: the step that is taken is a function of the gradients, learnt on a family of tasks."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["LearnedOptimizer", "LearnedRates", "unroll"]

Objective = Callable[[Tensor], Tensor]  # (batch, parameters) -> (batch,)


@system(
    "learned_rates",
    title="Learned step sizes",
    kind="module",
    example="LearnedRates(4)(torch.randn(5, 4), None)",
)
class LearnedRates(nn.Module):
    r"""Gradient descent with a step size for each coordinate, and these learnt.

    $$ \theta \leftarrow \theta - e^{a} \odot \nabla L(\theta) $$

    A call gives the change of the parameters and the state of the next step, which is None here.

    Shapes:
        gradient: (batch, parameters)    returns: change (batch, parameters), None

    Claims: meta.learned_optimiser
    Source: Li et al., Meta-SGD (2017).

    >>> change, _ = LearnedRates(3, lr=0.5)(torch.ones(1, 3), None)
    >>> change.detach()
    tensor([[-0.5000, -0.5000, -0.5000]])
    """

    def __init__(
        self, parameters: int, lr: float = 0.1, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        size = (validate.count("parameters", parameters),)
        start = torch.full(size, math.log(validate.positive("lr", lr)), device=device, dtype=dtype)
        self.log_rates = nn.Parameter(start)

    def forward(
        self, gradient: Float[Tensor, "batch parameters"], state: None = None
    ) -> tuple[Float[Tensor, "batch parameters"], None]:
        return -self.log_rates.exp() * validate.examples("gradient", gradient, len(self.log_rates)), None


@system(
    "learned_optimizer",
    title="Learned optimiser",
    kind="module",
    example="LearnedOptimizer(hidden=4)(torch.randn(5, 4), torch.rand(2, 5, 4))",
)
class LearnedOptimizer(nn.Module):
    r"""A small network that is given gradient and running means of it, and answers with the step of each coordinate.

    $$ \Delta\theta_i = s \cdot f_w\big(g_i,\; m_i,\; v_i^{1/2}\big), \qquad
       m \leftarrow 0.9\,m + 0.1\,g,\quad v \leftarrow 0.9\,v + 0.1\,g^2 $$

    The same network serves all coordinates, so that it can be used on problems of any size; `scale` is $s$.

    Shapes:
        gradient: (batch, parameters), state: (2, batch, parameters) or None
        returns: change (batch, parameters), state (2, batch, parameters)

    Source: Andrychowicz et al., Learning to learn by gradient descent by gradient descent (2016); Metz et al.,
        Understanding and correcting pathologies in the training of learned optimizers (2019).

    >>> change, state = LearnedOptimizer()(torch.ones(2, 3), None)
    >>> change.shape, state.shape
    (torch.Size([2, 3]), torch.Size([2, 2, 3]))
    """

    def __init__(
        self,
        hidden: int = 16,
        scale: float = 0.1,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.count("hidden", hidden)
        self.scale = validate.positive("scale", scale)
        self.network = nn.Sequential(
            nn.Linear(3, hidden, device=device, dtype=dtype),
            nn.Tanh(),
            nn.Linear(hidden, 1, device=device, dtype=dtype),
        )

    def forward(
        self,
        gradient: Float[Tensor, "batch parameters"],
        state: Float[Tensor, "2 batch parameters"] | None = None,
    ) -> tuple[Float[Tensor, "batch parameters"], Float[Tensor, "2 batch parameters"]]:
        if state is not None and validate.tensor("state", state).shape != (
            2,
            *validate.tensor("gradient", gradient).shape,
        ):
            shapes = f"{tuple(state.shape)} for {tuple(gradient.shape)}"
            raise ValueError(f"state must be two of the size of gradient, got {shapes}")
        fresh = torch.stack([gradient, gradient.square()])
        state = fresh if state is None else 0.9 * state + 0.1 * fresh
        features = torch.stack([gradient, state[0], (state[1] + 1e-12).sqrt()], -1)  # (batch, parameters, 3)
        return self.scale * self.network(features)[..., 0], state


@system("unroll", title="Unrolled optimisation", kind="function")
def unroll(
    optimizer: Callable[..., tuple[Tensor, Tensor | None]],
    objective: Objective,
    start: Float[Tensor, "batch parameters"],
    steps: int,
) -> tuple[Float[Tensor, "batch parameters"], Float[Tensor, "moments batch"]]:
    r"""So many steps of an optimiser on several problems at once, in one graph: the losses can teach the optimiser.

    $$ \theta_{j+1} = \theta_j + \Delta\big(\nabla L(\theta_j)\big), \qquad \text{meta-loss } \sum_j L(\theta_j) $$

    Gradients are taken of each problem alone, and the optimiser learns through them.

    Shapes:
        start: (batch, parameters)    returns: the parameters in the end, and losses (steps + 1, batch)

    Claims: meta.learned_optimiser
    Source: Andrychowicz et al., Learning to learn by gradient descent by gradient descent (2016).

    >>> _, losses = unroll(LearnedRates(2, lr=0.5), lambda theta: theta.square().sum(1), torch.ones(1, 2), steps=3)
    >>> losses[:, 0].tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    validate.count("steps", steps, least=0)
    theta, state, losses = start if start.requires_grad else start.detach().requires_grad_(), None, []
    with torch.enable_grad():
        for _ in range(steps):
            loss = objective(theta)  # (batch,)
            losses.append(loss)
            (gradient,) = torch.autograd.grad(loss.sum(), theta, create_graph=True)
            change, state = optimizer(gradient, state)
            theta = theta + change
        losses.append(objective(theta))
    return theta, torch.stack(losses)
