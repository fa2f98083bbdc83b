r"""How gradients fare through time: norms against lag, bounds, and rates of growth."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from lemmata import validate
from lemmata.foundations.activations import activation as activation_named
from lemmata.marks import system
from lemmata.measure.spectral import certified_spectral_norm
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.jacobians_through_time import in_double, log_norms, state_jacobians
from lemmata.recurrent.layer import RecurrentLayer, State

__all__ = [
    "GradientFlow",
    "growth_rates",
    "measure_gradient_flow",
    "spectral_radius",
    "step_bound",
    "with_spectral_norm",
    "with_spectral_radius",
]


@dataclass(frozen=True, eq=False)
class GradientFlow:
    r"""The answer of `measure_gradient_flow`: how strongly the last state depends on the one k steps before it.

    `log_norms` holds $\ln\|\partial z_T/\partial z_{T-k}\|_2$ for the lags k = 0 to T; `step_norms` holds
    $\|\partial z_t/\partial z_{t-1}\|_2$. Logarithms neither overflow nor vanish, however long the sequence; they and
    the norms are float64, whatever the layer's dtype, and carry the rounding of the Jacobians in that dtype.

    `bound` is a proved bound on every step, $\alpha\,\sigma_1(U)$ rounded up, for the weights as they are stored. It is
    None for other layers than Elman's, for subclasses, for layers with hooks or a `step` of their own, and where a
    measured step exceeds it by more than rounding.

    Shapes:
        jacobians: (batch, time, state, state), log_norms: (batch, time + 1), step_norms: (batch, time)

    Claims: rnn.gradient.vanishing, rnn.gradient.stability
    """

    jacobians: Inexact[Tensor, "batch time state state"]
    log_norms: Float[Tensor, "batch lags"]
    step_norms: Float[Tensor, "batch time"]
    bound: float | None

    @property
    def lags(self) -> Tensor:
        """The numbers of steps 0 to T that the entries of `log_norms` reach back."""
        return torch.arange(self.log_norms.shape[1], dtype=self.log_norms.dtype, device=self.log_norms.device)

    @property
    def norms(self) -> Float[Tensor, "batch lags"]:
        """The norms themselves; very long products are 0 or infinite in floating point."""
        return self.log_norms.exp()

    @property
    def log_bounds(self) -> Float[Tensor, " lags"] | None:
        r"""The logarithms $k \ln(\alpha\,\sigma_1(U))$ of the bound, rounded up; None where no bound is known."""
        if self.bound is None:
            return None
        logarithms = torch.xlogy(self.lags, self.log_norms.new_tensor(self.bound))
        rounding = 4 * torch.finfo(logarithms.dtype).eps  # of a logarithm and a product, with some to spare
        return torch.where(logarithms < 0, logarithms * (1 - rounding), logarithms * (1 + rounding))

    @property
    def vanishes(self) -> bool | None:
        r"""Whether $\alpha\,\sigma_1(U) < 1$ is proved: then gradients vanish. False says nothing about them."""
        return None if self.bound is None else self.bound < 1


@system("gradient_flow", title="Gradients through time: norms against lag", kind="function")
def measure_gradient_flow(
    layer: RecurrentLayer, x: Float[Tensor, "batch time inputs"], state: State | None = None
) -> GradientFlow:
    r"""The norms of $\partial z_T/\partial z_{T-k}$ along a run of any recurrent layer, against the lag k.

    $$ \frac{\partial z_i}{\partial z_t} = J_i J_{i-1} \cdots J_{t+1},
       \qquad J_j = \frac{\partial z_j}{\partial z_{j-1}}, \qquad
       \Big\|\frac{\partial z_i}{\partial z_t}\Big\|_2 \le \prod_{j=t+1}^i \|J_j\|_2 \le (\alpha\,\sigma_1(U))^{i-t} $$

    Shapes:
        x: (batch, time, inputs)

    Claims: rnn.gradient.vanishing, rnn.gradient.stability

    >>> layer = Elman(1, 8, activation="sigmoid")
    >>> flow = measure_gradient_flow(layer, torch.randn(2, 50, 1))
    >>> flow.log_norms.shape, flow.vanishes, bool((flow.log_norms <= flow.log_bounds + 1e-3).all())
    (torch.Size([2, 51]), True, True)
    """
    jacobians = state_jacobians(layer, x, state)
    steps = torch.linalg.matrix_norm(in_double(jacobians), 2)
    bound = known_step_bound(layer)
    # Slopes and their products with the weights are wrong by a few units in the last place of the largest.
    rounding = 16 * torch.finfo(jacobians.dtype).eps * jacobians.shape[-1] ** 0.5
    if bound is not None and not bool((steps <= bound * (1 + rounding)).all()):
        bound = None
    return GradientFlow(jacobians, log_norms(jacobians), steps, bound)


def step_bound(recurrent_weight: Float[Tensor, "hidden hidden"], activation: str) -> Float[Tensor, ""]:
    r"""A proved bound on how far a step of Elman's network stretches a change of its state: $\alpha\,\sigma_1(U)$.

    $\alpha = \sup |\phi'|$ is 1 for tanh and 1/4 for the sigmoid. Below 1 gradients vanish; above 1 they may grow. The
    singular value is that of `certified_spectral_norm`, from above, and the product is rounded up: float64.

    Claims: rnn.gradient.vanishing, rnn.gradient.exploding

    >>> step_bound(2 * torch.eye(3), "sigmoid")
    tensor(0.5000, dtype=torch.float64)
    """
    largest = certified_spectral_norm(recurrent_weight.detach(), tolerance=1e-12).upper
    # The constant is stored to the nearest number, and two products are rounded.
    product = activation_named(activation).lipschitz * largest * (1 + 2 * torch.finfo(largest.dtype).eps)
    return torch.where(largest > 0, product.nextafter(product.new_tensor(torch.inf)), product)


def known_step_bound(layer: RecurrentLayer) -> float | None:
    """The bound of a layer that is Elman's and nothing else: a subclass, a hook or a patched `step` may do anything."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks)
    if type(layer) is not Elman or any(hooks) or {"step", "sequence", "forward"} & set(vars(layer)):
        return None
    return float(step_bound(layer.recurrent_weight, layer.activation))


def spectral_radius(matrix: Inexact[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    r"""The largest absolute value of an eigenvalue, $\rho(A)$: never above $\sigma_1(A)$, and maybe far below it.

    As computed: rounding moves the eigenvalues of a Jordan block of n rows by the n-th root of its own size.

    Claims: rnn.gradient.exploding

    >>> nilpotent = torch.tensor([[0.0, 10.0], [0.0, 0.0]])
    >>> spectral_radius(nilpotent), torch.linalg.matrix_norm(nilpotent, 2)
    (tensor(0.), tensor(10.))
    """
    return torch.linalg.eigvals(matrix.detach()).abs().amax(-1)


def growth_rates(matrix: Inexact[Tensor, "n n"], steps: int) -> Float[Tensor, " steps"]:
    r"""The mean growth per step $\|A^k\|_2^{1/k}$ for k = 1 to `steps`, which tends to the spectral radius (Gelfand).

    Claims: rnn.gradient.exploding

    >>> growth_rates(torch.tensor([[0.5, 10.0], [0.0, 0.5]]), 1000)[[0, 9, 99, 999]]
    tensor([10.0249,  0.8493,  0.5395,  0.5050], dtype=torch.float64)
    """
    powers = log_norms(matrix.detach().expand(validate.count("steps", steps), *matrix.shape))[1:]
    return (powers / torch.arange(1, steps + 1, device=matrix.device)).exp()


def with_spectral_radius(matrix: Float[Tensor, "n n"], radius: int | float) -> Float[Tensor, "n n"]:
    """The matrix times the factor that gives it this spectral radius."""
    return _scaled_matrix(matrix, spectral_radius(matrix), validate.positive("radius", radius), "spectral radius")


def with_spectral_norm(matrix: Float[Tensor, "n n"], norm: int | float) -> Float[Tensor, "n n"]:
    r"""The matrix times the factor that gives it this largest singular value $\sigma_1$.

    Claims: rnn.gradient.vanishing
    """
    return _scaled_matrix(matrix, torch.linalg.matrix_norm(matrix, 2), validate.positive("norm", norm), "spectral norm")


def _scaled_matrix(matrix: Tensor, present: Tensor, wanted: int | float, name: str) -> Tensor:
    if float(present) == 0:
        raise ValueError(f"matrix must have a positive {name}, got 0: no factor changes it")
    return matrix * (wanted / present)
