r"""A network replaced by its tangent: linear in the parameters, so it is fitted and trained in closed form."""

import copy
import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from lemmata import validate
from lemmata.kernel.tangent_kernel import check_single_input, ntk
from lemmata.marks import system

__all__ = ["LinearizedNetwork", "linearize"]

SOLVERS = ("dual", "primal")


class _Modes(NamedTuple):
    """The directions in which the outputs at the data can move, how fast they do, and how far each is from its aim."""

    rates: Float[Tensor, "modes"]
    """Eigenvalues of the kernel."""
    missing: Float[Tensor, "modes"]
    """Targets minus the network's outputs, by mode."""
    back: Float[Tensor, "_ modes"]
    """From modes to the multipliers of the data (dual) or to the parameters (primal)."""
    ridge: float
    dual: bool
    cut: float


@system("linearized_network", title="Linearised network", kind="estimator")
class LinearizedNetwork:
    r"""The first-order expansion of a network in its parameters: linear in the change β, as bent in x as the network.

    $$ h_\beta(x) = f_{\theta_0}(x) + \nabla_\theta f_{\theta_0}(x)^\top\beta, \qquad
       \beta^* = \Phi^\top K^{+}(y - f), \qquad
       \beta_t = \Phi^\top K^{+}(I - e^{-Kt})(y - f) $$

    `fit` finds the smallest β of least squares, which is where gradient flow from zero ends, and `at(t)` is the flow at
    time t, of the loss $\frac12\|h(X)-y\|^2$ (with `ridge`, plus $\frac12$ ridge $\|\beta\|^2$). By `solver="dual"`
    with the tangent kernel, one row for each output of each example; by `"primal"` with the gradients themselves, where
    there are fewer parameters than that. Both keep $f_{\theta_0}(x)$, without which the data are missed by it.

    Shapes:
        x: (n, ...), y: as the network's outputs, (n, ...)

    Learnt: `change_` (β by the parameters' names), `multipliers_` ($\alpha$ with $\beta=\Phi^\top\alpha$, dual only).

    Claims: ntk.linearised, ntk.dual, ntk.linear_solution, ntk.exp_solution
    Source: A. Jacot, F. Gabriel and C. Hongler 2018; J. Lee et al. 2019.

    >>> model, x, y = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)), torch.eye(2), torch.ones(2, 1)
    >>> fitted = linearize(model).fit(x, y)
    >>> fitted(x).allclose(y, atol=1e-4), fitted.at(0.0)(x).allclose(model(x))
    (True, True)
    """

    change_: dict[str, Tensor]
    multipliers_: Tensor

    def __init__(self, model: nn.Module) -> None:
        check_single_input(model)
        self.model = copy.deepcopy(model)  # which may be trained on
        trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        if not trained:
            raise ValueError("model must have parameters that require gradients, got none: use model.requires_grad_()")
        self.start_ = {name: p.detach() for name, p in trained.items()}
        self.change_ = {name: torch.zeros_like(p) for name, p in self.start_.items()}

    def __call__(self, x: Shaped[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """The network's outputs, and how they change along β to first order."""
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):  # which has a derivative forwards
            value, change = jvp(lambda at: functional_call(self.model, at, (x,)), (self.start_,), (self.change_,))[:2]
        return value + change

    def along(self, change: dict[str, Tensor]) -> "LinearizedNetwork":
        """The same with another β, by the names of the parameters; those that are not named do not change."""
        unknown = sorted(set(change) - set(self.start_))
        if unknown:
            raise ValueError(f"change must hold parameters of the network, got {unknown[0]!r}")
        found = copy.copy(self)
        found.change_ = {
            name: validate.fits(name, change[name], tuple(p.shape), p, "the network's") if name in change else p * 0
            for name, p in self.start_.items()
        }
        return found

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters moved by β, and buffers as they are: what the network's own load_state_dict takes."""
        moved = {name: self.start_[name] + self.change_[name] for name in self.start_}
        return {**self.model.state_dict(), **moved}

    def fit(
        self,
        x: Shaped[Tensor, "n ..."],
        y: Float[Tensor, "n ..."],
        ridge: float = 0.0,
        solver: str = "dual",
        max_memory: int | None = None,
    ) -> "LinearizedNetwork":
        """The least squares solution with the smallest β, or with `ridge` the one that weighs both."""
        validate.one_of("solver", solver, SOLVERS)
        validate.number("ridge", ridge, least=0)
        with torch.no_grad():
            start = self.model(x)
        missing = (validate.fits("y", y, tuple(start.shape), start, "the network's outputs") - start).double().flatten()
        if solver == "dual":
            kernel = ntk(self.model, x, max_memory=max_memory).transpose(1, 2).flatten(2).flatten(0, 1)
            rates, vectors = torch.linalg.eigh(kernel.double())
            cut = len(rates) * torch.finfo(start.dtype).eps * float(rates[-1])
            self._modes = _Modes(rates.clamp(min=0.0), vectors.mT @ missing, vectors, ridge, True, cut)
        else:
            gradients = self._output_gradients(x).double()  # (n * outputs, parameters)
            left, sizes, right = torch.linalg.svd(gradients, full_matrices=False)
            cut = max(gradients.shape) * torch.finfo(start.dtype).eps * float(sizes[0]) ** 2
            self._modes = _Modes(sizes.square(), left.mT @ missing, right.mT * sizes, ridge, False, cut)
        self._x = x
        found = self.at(math.inf)
        self.change_ = found.change_
        if solver == "dual":
            self.multipliers_ = found.multipliers_
        return self

    def at(self, time: float) -> "LinearizedNetwork":
        """The network at a time of the gradient flow that begins at β = 0; at infinity it is what `fit` found."""
        if not hasattr(self, "_modes"):
            raise RuntimeError("this LinearizedNetwork is not fitted: call fit(x, y) first")
        if time != math.inf:
            validate.number("time", time, least=0)
        rates, missing, back, ridge, dual, cut = self._modes
        speed = rates + ridge
        moves = speed > cut
        safe = speed.where(moves, 1.0)
        # (1 - e^{-λt}) / λ, which is t where λ is zero; a mode within rounding of zero never moves
        reached = (torch.ones_like(safe) if time == math.inf else -torch.expm1(-safe * time)) / safe
        weights = back @ (reached.where(moves, 0.0) * missing)  # multipliers, or β in one row
        found = copy.copy(self)
        if dual:
            found.multipliers_ = weights.to(self.change_[next(iter(self.change_))].dtype)
            found.change_ = self._pull_multipliers(found.multipliers_)
        else:
            parts = weights.split([p.numel() for p in self.start_.values()])
            shapes = zip(self.start_.items(), parts, strict=True)
            found.change_ = {name: part.view(p.shape).to(p.dtype) for (name, p), part in shapes}
        return found

    def _pull_multipliers(self, multipliers: Tensor) -> dict[str, Tensor]:
        """Φᵀα by one pass backwards."""
        parameters = dict(self.model.named_parameters())
        chosen = [parameters[name] for name in self.start_]
        with torch.enable_grad():
            value = (self.model(self._x).flatten() * multipliers).sum()
        found = torch.autograd.grad(value, chosen, materialize_grads=True)
        return dict(zip(self.start_, found, strict=True))

    def _output_gradients(self, x: Tensor) -> Tensor:
        parameters = dict(self.model.named_parameters())
        chosen = [parameters[name] for name in self.start_]
        with torch.enable_grad():
            values = self.model(x).flatten()
        rows = (torch.autograd.grad(v, chosen, retain_graph=True, materialize_grads=True) for v in values)
        return torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])


def linearize(model: nn.Module) -> LinearizedNetwork:
    r"""The tangent of a network at its present parameters; the network itself may be trained on.

    >>> model = nn.Linear(3, 2)
    >>> linearize(model)(torch.ones(1, 3)).allclose(model(torch.ones(1, 3)))
    True
    """
    return LinearizedNetwork(model)
