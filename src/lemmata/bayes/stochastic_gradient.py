r"""Samplers that look like optimisers: gradient steps on batches, with as much noise as the posterior asks for."""

# pyright: reportPrivateImportUsage=false
# Torch has its operations on lists of tensors under private names only.

import math
from abc import ABC
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.first_order import FirstOrder, Tensors, add, add_all

__all__ = ["SGHMC", "SGLD"]


class StochasticGradientSampler(FirstOrder, ABC):
    r"""What samplers by gradients of batches share: the energy of all data from the mean loss of some, and the noise.

    $$ \nabla\hat E(\theta) = s\,\nabla\hat\ell(\theta) + \theta/\sigma^2 $$

    `data_size` is $s$, the number of all examples, where `backward` was called on the mean loss $\hat\ell$ of a batch;
    the prior is not multiplied by it. Noise comes from `generator`, or from torch's own where there is none.
    """

    def __init__(self, params: Any, defaults: dict[str, Any], generator: torch.Generator | None) -> None:
        if generator is not None and not isinstance(generator, torch.Generator):
            raise TypeError(f"generator must be a torch.Generator, got {type(generator).__name__}")
        self.generator = generator
        super().__init__(params, defaults)

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        validate.positive("data_size", group["data_size"])
        validate.number("temperature", group["temperature"], least=0)
        if group["prior_variance"] is not None:
            validate.positive("prior_variance", group["prior_variance"])
        if group["weight_decay"]:
            decay = f"got {group['weight_decay']}: use prior_variance = 1 / (data_size * weight_decay)"
            raise ValueError(f"weight_decay must be 0 for {type(self).__name__}, {decay}")

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: torch's part leaves out attributes of our own."""
        return super().__getstate__() | {"generator": self.generator}

    def state_dict(self) -> dict[str, Any]:
        """As torch's, and the state of the generator, if there is one: the chain goes on with the same noise."""
        own = {} if self.generator is None else {"generator": self.generator.get_state()}
        return super().state_dict() | own

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        saved, kind = state_dict.get("generator"), type(self).__name__
        if (saved is None) != (self.generator is None):
            has, cure = ("no", "without one") if saved is None else ("a", "with one")
            raise ValueError(f"state_dict has {has} generator's state: build {kind} {cure} to load it into")
        super().load_state_dict(state_dict)
        if saved is not None and self.generator is not None:
            self.generator.set_state(saved.cpu())

    def noise(self, like: Tensor) -> Tensor:
        """Independent standard normal numbers for every entry."""
        return torch.randn(like.shape, generator=self.generator, dtype=like.dtype, device=like.device)


def _energy_gradient(group: dict[str, Any], theta: Tensor, g: Tensor) -> Tensor:
    """The gradient of the energy of all data and of the prior."""
    whole = g * group["data_size"]
    return whole if group["prior_variance"] is None else whole.add_(theta, alpha=1 / group["prior_variance"])


def _energy_gradients(group: dict[str, Any], theta: Tensors, g: Tensors) -> Any:
    """The same for lists."""
    whole = torch._foreach_mul(g, group["data_size"])
    if group["prior_variance"] is not None:
        torch._foreach_add_(whole, theta, alpha=1 / group["prior_variance"])
    return whole


def _square_root(value: float | Tensor) -> Any:
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)


@system("sgld", title="Stochastic gradient Langevin dynamics (SGLD)", kind="sampler")
class SGLD(StochasticGradientSampler):
    r"""Gradient descent on the energy of a batch, with noise: it settles in no minimum and draws from $e^{-E/T}$.

    $$ \theta_{t+1} = \theta_t - \eta\big(s\,\nabla\hat\ell(\theta_t) + \theta_t/\sigma^2\big) + \sqrt{2\eta T}\,\xi_t,
       \qquad \xi_t \sim \mathcal N(0, I) $$

    A torch optimiser: call `backward` on the mean loss $\hat\ell$ of a batch, then `step`. `data_size` is $s$, the
    number of all examples; `prior_variance` is $\sigma^2$, None where the loss holds the prior already; `temperature`
    is $T$, 1 for the posterior and 0 for gradient descent. `lr` is $\eta$, the step on the energy of all data: about
    `data_size` times smaller than for the mean loss. With constant `lr` the distribution of $\theta$ is wider than the
    posterior by a fraction that falls with `lr`: that of the step and that of the batches.

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    Claims: mcmc.langevin.minibatch
    Source: M. Welling and Y. W. Teh, Bayesian learning via stochastic gradient Langevin dynamics (2011).
    Differs: their step is $2\eta$ and falls with time, here by any scheduler of torch.

    >>> w = torch.zeros(10_000, dtype=torch.float64, requires_grad=True)  # as many chains in one dimension
    >>> generator = torch.Generator().manual_seed(0)
    >>> sampler = SGLD([w], lr=0.1, data_size=4, prior_variance=1.0, generator=generator)
    >>> for _ in range(100):
    ...     w.grad = w.detach() - 1  # of the mean loss of four examples, (w - 1)^2 / 2
    ...     sampler.step()
    >>> f"{w.mean():.2f} {w.var():.2f}"  # mean 4/5, variance 1/5 for small lr, here 1 / (5 - 0.1 * 5^2 / 2)
    '0.80 0.27'
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor,
        data_size: int | float,
        prior_variance: float | None = None,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "data_size": data_size, "prior_variance": prior_variance, "temperature": temperature}
        super().__init__(params, chosen | {"maximize": maximize, "foreach": foreach}, generator)

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ()

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        add(theta, _energy_gradient(group, theta, g), -group["lr"])
        if group["temperature"]:
            add(theta, self.noise(theta), _square_root(2 * group["lr"] * group["temperature"]))

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        add_all(theta, _energy_gradients(group, theta, g), -group["lr"])
        if group["temperature"]:
            add_all(theta, [self.noise(each) for each in theta], _square_root(2 * group["lr"] * group["temperature"]))


@system("sghmc", title="Stochastic gradient Hamiltonian Monte Carlo (SGHMC)", kind="sampler")
class SGHMC(StochasticGradientSampler):
    r"""Momentum gradient descent on the energy of a batch, whose friction and noise balance at the posterior.

    $$ v_{t+1} = (1 - \eta\gamma)\,v_t - \eta\big(s\,\nabla\hat\ell(\theta_t) + \theta_t/\sigma^2\big)
       + \sqrt{2\gamma\eta T}\,\xi_t, \qquad \theta_{t+1} = \theta_t + \eta\,v_{t+1} $$

    A torch optimiser, with the words of `SGLD`; `friction` is $\gamma$, and `lr` is $\eta$, the step of time. At
    temperature 0 it is torch's SGD with momentum $1 - \eta\gamma$ and learning rate $\eta^2 s$. The state `velocity`
    is $v$, 0 at first; parameters have mass 1.

    Shapes:
        params: tensors of any shape; steps are taken entry by entry

    Claims: mcmc.langevin.minibatch
    Source: T. Chen, E. Fox and C. Guestrin, Stochastic gradient Hamiltonian Monte Carlo (2014).
    Differs: no estimate of the noise of the batches is taken off the noise that is added.

    >>> w = torch.zeros(10_000, dtype=torch.float64, requires_grad=True)
    >>> generator = torch.Generator().manual_seed(0)
    >>> sampler = SGHMC([w], lr=0.1, data_size=4, friction=2.0, prior_variance=1.0, generator=generator)
    >>> for _ in range(100):
    ...     w.grad = w.detach() - 1
    ...     sampler.step()
    >>> f"{w.mean():.2f} {w.var():.2f}"  # mean 4/5, variance 1/5
    '0.80 0.20'
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor,
        data_size: int | float,
        friction: float,
        prior_variance: float | None = None,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        chosen = {"lr": lr, "data_size": data_size, "friction": friction, "prior_variance": prior_variance}
        chosen |= {"temperature": temperature, "maximize": maximize, "foreach": foreach}
        super().__init__(params, chosen, generator)

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        validate.number("friction", group["friction"], least=0)
        if float(group["lr"]) * group["friction"] > 1:
            product = float(group["lr"]) * group["friction"]
            raise ValueError(f"lr * friction must be at most 1, got {product:g}: use a smaller lr or friction")

    def slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("velocity",)

    def update(self, group: dict[str, Any], theta: Tensor, g: Tensor, t: Any, *state: Tensor) -> None:
        (velocity,), lr, friction = state, group["lr"], group["friction"]
        add(velocity.mul_(1 - lr * friction), _energy_gradient(group, theta, g), -lr)
        if group["temperature"] and friction:
            add(velocity, self.noise(theta), _square_root(2 * friction * lr * group["temperature"]))
        add(theta, velocity, lr)

    def update_all(self, group: dict[str, Any], theta: Tensors, g: Tensors, t: list[Any], *state: Tensors) -> None:
        (velocity,), lr, friction = state, group["lr"], group["friction"]
        torch._foreach_mul_(velocity, 1 - lr * friction)
        add_all(velocity, _energy_gradients(group, theta, g), -lr)
        if group["temperature"] and friction:
            noise = [self.noise(each) for each in theta]
            add_all(velocity, noise, _square_root(2 * friction * lr * group["temperature"]))
        add_all(theta, velocity, lr)
