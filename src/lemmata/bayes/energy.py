r"""The energy of a posterior: minus its logarithm, from a network's mean loss, the number of examples and the prior."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system

__all__ = ["PosteriorEnergy", "posterior_energy"]

Loss = Callable[[Any, Tensor], Tensor]  # of outputs and targets: one number for each example
PROBED = 32  # examples on which a model is tried


@system("posterior_energy", title="Posterior energy", kind="function")
def posterior_energy(
    model: nn.Module,
    data: Any,
    prior_variance: float | Mapping[str, float],
    noise: float | None = None,
    loss: Loss | None = None,
) -> "PosteriorEnergy":
    r"""Minus the log posterior of a network's parameters, up to a constant: what samplers explore and MAP minimises.

    $$ \tilde E(\theta) = s\,\underbrace{\frac1s\sum_i -\log p(y_i|x_i,\theta)}_{\text{mean loss}} +
       \frac1{2\sigma^2}\|\theta\|^2 $$

    `data` is (x, y); their number is $s$. Where y holds numbers, they are the outputs with normal noise of standard
    deviation `noise` $\gamma$, and the loss is $\frac1{2\gamma^2}\|y-f[\theta](x)\|^2$. Where it holds classes, outputs
    are logits, of each class or of the second of two. Any other `loss(outputs, y)` gives one negative log-likelihood
    for each example: means and sizes are taken here. `prior_variance` is $\sigma^2$, for all parameters or by name;
    frozen parameters are constants. The minimum is that of the mean loss with weight decay $1/(s\sigma^2)$, and of
    half the summed squared errors with $\gamma^2/\sigma^2$.

    The model must give the same answer twice and treat each example by itself: dropout and batch normalisation are
    refused in training mode. Many parameters are tried at once by `vmap`: equal to one at a time up to rounding.

    Shapes:
        theta: (..., dimension), parameters one after another as `model.parameters()` has them    returns: (...)

    Claims: bayes.gaussian_prior, bayes.map_energy, bayes.ensembling
    Source: D. MacKay, A practical Bayesian framework for backpropagation networks (1992).

    >>> line, x = nn.Linear(1, 1), torch.tensor([[0.0], [1.0]])
    >>> energy = posterior_energy(line, (x, torch.tensor([1.0, 3.0])), prior_variance=4.0, noise=0.5)
    >>> energy(torch.tensor([[2.0, 1.0], [0.0, 0.0]]))  # 5 / 8, and (1 + 9) / (2 / 4)
    tensor([ 0.6250, 20.0000])
    >>> energy().backward()  # of the model's own parameters
    >>> line.weight.grad.shape
    torch.Size([1, 1])
    """
    return PosteriorEnergy(model, data, prior_variance, noise, loss)


class PosteriorEnergy:
    """The energy of `posterior_energy` as a function of flat parameters, and the ways between these and the model."""

    def __init__(
        self,
        model: nn.Module,
        data: Any,
        prior_variance: float | Mapping[str, float],
        noise: float | None = None,
        loss: Loss | None = None,
    ) -> None:
        validate.module("model", model)
        self.model = model
        self.named = {name: value for name, value in model.named_parameters() if value.requires_grad}
        if not self.named:
            raise ValueError("model has no parameter that requires a gradient: there is nothing to infer")
        self.x, self.y = _checked_examples(data, next(iter(self.named.values())))
        self.data_size = len(self.y)
        self.noise = None if noise is None else validate.positive("noise", noise)
        self.loss = loss or self._usual_loss()
        if loss is not None and noise is not None:
            raise ValueError("noise belongs to the usual loss of numbers: leave it out where loss is given")
        self.precision = {name: 1 / value for name, value in _prior_variances(prior_variance, self.named).items()}
        self._tried: set[bool] = set()
        self._try_modes()

    @property
    def dimension(self) -> int:
        """How many parameters there are."""
        return sum(value.numel() for value in self.named.values())

    @property
    def start(self) -> Float[Tensor, " dimension"]:
        """The model's own parameters, one after another."""
        return torch.cat([value.detach().flatten() for value in self.named.values()])

    def __call__(self, theta: Float[Tensor, "*draws dimension"] | None = None) -> Float[Tensor, "*draws"]:
        """The energy at flat parameters, or at the model's own, with gradients to either."""
        return self._energy_of_draw(theta, self.x, self.y)

    def log_density(self, theta: Float[Tensor, "*draws dimension"]) -> Float[Tensor, "*draws"]:
        """Minus the energy: what samplers take."""
        return -self(theta)

    def on(self, batch: Any, theta: Float[Tensor, "*draws dimension"] | None = None) -> Float[Tensor, "*draws"]:
        """The energy as a batch estimates it, without bias: the mean loss of the batch, the size of all data."""
        x, y = _checked_examples(batch, next(iter(self.named.values())))
        return self._energy_of_draw(theta, x, y)

    def unflattened(self, theta: Float[Tensor, "*draws dimension"]) -> dict[str, Tensor]:
        """Flat parameters by name, in the model's shapes with the same leading axes: for `functional_call`."""
        parts = self._checked_theta(theta).split([value.numel() for value in self.named.values()], dim=-1)
        shapes = [(*theta.shape[:-1], *value.shape) for value in self.named.values()]
        return {name: part.reshape(shape) for name, part, shape in zip(self.named, parts, shapes, strict=True)}

    @torch.no_grad()
    def copy_to_model(self, theta: Float[Tensor, " dimension"]) -> nn.Module:
        """Let the model have these parameters."""
        for name, value in self.unflattened(theta).items():
            self.named[name].copy_(value)
        return self.model

    # --- The energy ---

    def _try_modes(self) -> None:
        """Once in each mode the model is found in, training or evaluation, see that it answers as it must."""
        if self.model.training not in self._tried:
            outputs = _outputs_alike(self.model, self.x[:PROBED])
            self._mean_loss(outputs, self.y[:PROBED])
            self._tried.add(self.model.training)

    def _energy_of_draw(self, theta: Tensor | None, x: Tensor, y: Tensor) -> Tensor:
        self._try_modes()
        if theta is None:
            return self._total_energy(self.named, x, y)
        flat = self._checked_theta(theta).reshape(-1, self.dimension)  # (draws, dimension)
        found = vmap(self._total_energy, in_dims=(0, None, None))(self.unflattened(flat), x, y)  # (draws,)
        return found.reshape(theta.shape[:-1])

    def _total_energy(self, named: Mapping[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        outputs = functional_call(self.model, dict(named), (x,))
        squares = [self.precision[name] / 2 * value.square().sum() for name, value in named.items()]
        return self.data_size * self._mean_loss(outputs, y) + torch.stack(squares).sum()

    def _mean_loss(self, outputs: Any, y: Tensor) -> Tensor:
        each = self.loss(outputs, y)
        if not isinstance(each, Tensor) or each.shape != y.shape[:1]:
            got = f"shape {tuple(each.shape)}" if isinstance(each, Tensor) else type(each).__name__
            wanted = f"one number for each of {len(y)} examples"
            raise ValueError(f"loss must return {wanted}, got {got}: use reduction='none' and sum over other axes")
        return each.mean()

    def _usual_loss(self) -> Loss:
        if self.y.is_floating_point():
            if self.noise is None:
                raise ValueError("noise must be given where y holds numbers: the standard deviation of y around f(x)")
            return self._squared_error
        if self.noise is not None:
            raise ValueError("noise must be None where y holds classes: use y.float() if they are numbers")
        return _cross_entropy

    def _squared_error(self, outputs: Tensor, y: Tensor) -> Tensor:
        assert self.noise is not None
        squares = (_fit_outputs(outputs, y) - y).square() / (2 * self.noise**2)
        return squares.reshape(len(y), -1).sum(1)

    def _checked_theta(self, theta: Tensor) -> Tensor:
        return validate.last_axis("theta", theta, self.dimension, "parameter")


def _checked_examples(data: Any, like: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets, as many of each, finite, in the numbers of the model."""
    if isinstance(data, Examples):
        data = data.x, data.y
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(f"data must be a pair (x, y) of tensors, got {type(data).__name__}")
    x, y = (validate.tensor(name, value) for name, value in zip("xy", data, strict=True))
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y) or len(y) == 0:
        raise ValueError(f"x and y must hold as many examples, at least one, got {tuple(x.shape)} and {tuple(y.shape)}")
    for name, values in (("x", x), ("y", y)):
        if values.is_floating_point():
            validate.floating(name, values)
            if values.dtype != like.dtype:
                raise TypeError(f"{name} must have the model's dtype {like.dtype}, got {values.dtype}: convert one")
    return x, y


def _prior_variances(prior_variance: Any, named: Mapping[str, Tensor]) -> dict[str, float]:
    if not isinstance(prior_variance, Mapping):
        return dict.fromkeys(named, validate.positive("prior_variance", prior_variance))
    if prior_variance.keys() != named.keys():
        wrong = sorted(prior_variance.keys() ^ named.keys())
        raise ValueError(f"prior_variance must name each parameter of the model once, check {', '.join(wrong[:3])}")
    return {name: validate.positive(f"prior_variance[{name!r}]", prior_variance[name]) for name in named}


def _cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Of logits: one for each class, or one for the second of two."""
    if outputs.shape in (y.shape, (*y.shape, 1)):
        return functional.binary_cross_entropy_with_logits(outputs.reshape(y.shape), y.to(outputs), reduction="none")
    return functional.cross_entropy(outputs, y, reduction="none")


def _fit_outputs(outputs: Tensor, y: Tensor) -> Tensor:
    """Outputs in the shape of the targets; of (n, 1) and (n,) the difference would be n x n."""
    if outputs.shape not in (y.shape, (*y.shape, 1)):
        raise ValueError(f"y must have the shape of the outputs {tuple(outputs.shape)}, got {tuple(y.shape)}")
    return outputs.reshape(y.shape)


@torch.no_grad()
def _outputs_alike(model: nn.Module, x: Tensor) -> Any:
    """Outputs of a few examples; ValueError if they are other ones the second time, or in other company."""
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    kept = {name: value.clone() for name, value in buffers.items()}
    with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
        found = functional_call(model, buffers, (x,))
        again = functional_call(model, buffers, (x,))
    cure = "in training mode: use model.eval()" if any(part.training for part in model.modules()) else "at random"
    moved = any(not torch.equal(value, kept[name]) for name, value in buffers.items())
    if isinstance(found, Tensor):
        if moved or not torch.equal(found.nan_to_num(), again.nan_to_num()):
            raise ValueError(f"model must give the same answer twice, but it answers {cure}")
        if len(x) > 1:
            half = functional_call(model, buffers, (x[: len(x) // 2],))
            gap = (half - found[: len(half)]).abs().max()
            if gap > 1e3 * torch.finfo(found.dtype).eps * found.abs().max().clamp(min=1.0):
                raise ValueError("model must treat each example by itself, but others of the batch move its answer")
    elif moved:
        raise ValueError(f"model must give the same answer twice, but it answers {cure}")
    return found
