r"""Entropy-SGD: follow the gradient of the local entropy, estimated by Langevin steps around the parameters."""

# pyright: reportPrivateImportUsage=false
# The operations on lists of tensors, torch._foreach_*, are what torch.optim itself is written with.
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.options import group_options, learning_rate, needs_closure

__all__ = ["EntropySGD"]


@system("entropy_sgd", title="Entropy-SGD", kind="optimizer")
class EntropySGD(Optimizer):
    r"""Move to the mean of a Langevin walk that is tied to the parameters: wide valleys pull more than narrow ones.

    $$ x \leftarrow x - \eta\big(\nabla\mathcal L(x) - \gamma(\theta - x)\big) + \sqrt\eta\,\varepsilon\,\xi, \qquad
       \mu \leftarrow (1-\alpha)\mu + \alpha x, \qquad \theta \leftarrow \theta - \eta_0(\theta - \mu) $$

    The walk starts at $\theta$ and takes `steps` steps of size `lr` $\eta$, with `noise` $\varepsilon$ and independent
    normal $\xi$; `scope` is $\gamma$, `mean_rate` $\alpha$ and `outer_lr` $\eta_0$. $\gamma(\theta - \mu)$ estimates
    the gradient of $-\log\int \exp(-\mathcal L(x) - \tfrac\gamma2\|\theta - x\|^2)\,dx$, the negative local entropy.

    `step` calls the closure once for each step of the walk: it sets gradients to zero, computes the loss, best on a
    batch of its own, and calls `backward`. The loss returned is that of the first call.

    Shapes:
        parameters: any

    Source: P. Chaudhari et al., Entropy-SGD: biasing gradient descent into wide valleys (2017).
    Differs: `lr` is the step of the walk, where gradients are; $\gamma$ is part of $\eta_0$ and constant; the walk has
        no momentum.

    >>> weight = torch.nn.Parameter(torch.tensor([4.0]))
    >>> optimizer = EntropySGD([weight], lr=0.1, noise=0.0)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = weight.square().sum() / 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(10): loss = optimizer.step(closure)
    >>> weight.item() < 0.1
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        steps: int = 20,
        scope: float = 1e-2,
        noise: float = 1e-4,
        mean_rate: float = 0.25,
        outer_lr: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        self.steps = validate.count("steps", steps)
        self.generator = generator
        defaults = {"lr": lr, "scope": scope, "noise": noise, "mean_rate": mean_rate, "outer_lr": outer_lr}
        super().__init__(params, defaults)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: torch's part leaves out attributes of our own."""
        return super().__getstate__() | {"steps": self.steps, "generator": self.generator}

    def state_dict(self) -> dict[str, Any]:
        """As torch's, and the state of the generator, if there is one: the walk goes on with the same noise."""
        own = {} if self.generator is None else {"generator": self.generator.get_state()}
        return super().state_dict() | own

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        saved = state_dict.get("generator")
        if saved is not None and self.generator is None:
            raise ValueError("state_dict has a generator's state: build EntropySGD with a generator to load it into")
        super().load_state_dict(state_dict)
        if saved is not None and self.generator is not None:
            self.generator.set_state(saved.cpu())

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; only the number of steps is common to all."""
        words = group_options(self.defaults, param_group)
        learning_rate("lr", words["lr"])
        for name in ("scope", "noise", "outer_lr"):
            validate.number(name, words[name], least=0)
        validate.number("mean_rate", words["mean_rate"], above=0, most=1)
        super().add_param_group(param_group)

    @needs_closure
    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One update; `closure` computes loss and gradients at the present place of the walk."""
        groups = [(group, [p for p in group["params"] if p.requires_grad]) for group in self.param_groups]
        places = {p: p.clone() for _, params in groups for p in params}
        means = {p: p.clone() for p in places}
        compute, loss = torch.enable_grad()(closure), None
        try:
            for step in range(self.steps):
                found = compute()
                loss = found if step == 0 else loss
                for group, params in groups:
                    for parameter in params:
                        self._walk_inner(group, parameter, places[parameter])
                        means[parameter].lerp_(parameter, group["mean_rate"])
        finally:
            torch._foreach_copy_(list(places), list(places.values()))
        for group, params in groups:
            for parameter in params:
                parameter.lerp_(means[parameter], group["outer_lr"])
        return loss

    def _walk_inner(self, group: dict[str, Any], parameter: Tensor, place: Tensor) -> None:
        grad = parameter.grad
        if grad is None:
            return
        if grad.is_sparse:
            raise ValueError("EntropySGD takes dense gradients, got a sparse one: set sparse=False in the embedding")
        lr = float(group["lr"])
        pull = group["scope"] * (place - parameter)
        parameter.sub_(lr * (grad - pull))
        if group["noise"] > 0:
            noise = torch.randn(
                parameter.shape, generator=self.generator, dtype=parameter.dtype, device=parameter.device
            )
            parameter.add_(noise, alpha=math.sqrt(lr) * group["noise"])
