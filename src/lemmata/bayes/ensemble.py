r"""Ensembles: networks of one kind, trained and asked together in one batch, and the weights of their answers."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from lemmata import validate
from lemmata.feedforward.deep_linear import DeepLinear  # noqa: F401 - in the example
from lemmata.feedforward.mlp import MLP, MLPConfig
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["Ensemble", "MLPEnsemble", "posterior_weights", "summed_over_members"]


@system("posterior_weights", title="Posterior weights of given models", kind="function")
def posterior_weights(energy: Float[Tensor, " members"], temperature: float = 1.0) -> Float[Tensor, " members"]:
    r"""How much each of some given models counts: its posterior probability among them.

    $$ w_i = \frac{e^{-\tilde E(\theta_i)/T}}{\sum_j e^{-\tilde E(\theta_j)/T}} $$

    For models that were chosen without a look at the posterior: a grid, or draws from a flat distribution. Draws from
    the posterior itself count alike, $w_i = 1/n$: they already come as often as they are probable, and with these
    weights the posterior would count twice. Energies may be shifted by any constant.

    Shapes:
        energy: (members,)    returns: (members,), which sum to 1

    Claims: bayes.ensembling, bayes.posterior

    >>> posterior_weights(1000 + torch.tensor([1.0, 1.0, 2.0]).double().log())
    tensor([0.4000, 0.4000, 0.2000], dtype=torch.float64)
    """
    validate.vector("energy", energy)
    return (-energy / validate.positive("temperature", temperature)).softmax(0)  # (members,)


@system(
    "ensemble",
    title="Ensemble of networks",
    kind="module",
    example="Ensemble([DeepLinear(3, 2, widths=(4,)), DeepLinear(3, 2, widths=(4,))])(torch.randn(6, 3))",
)
class Ensemble(nn.Module):
    r"""Networks of one kind as one module: their parameters stacked, their answers computed in one batch.

    $$ f(\Theta)(x) = \sum_i w_i\, f[\theta_i](x) $$

    `forward` gives the answers of all members, `mean` their weighted mean, with `weights` (equal, unless given). The
    parameters are those of the members' kind with an axis for the members before their own, so any optimiser that
    works entry by entry (SGD, Adam, `SGLD`) trains all members at once as each alone: make its loss by
    `summed_over_members`. Members start from their own values and see the same batches. Dropout is drawn for each.

    Shapes:
        x: (batch, ...)    returns: (members, batch, ...)

    Claims: bayes.ensembling, bayes.predictive
    Source: B. Lakshminarayanan, A. Pritzel and C. Blundell, Simple and scalable predictive uncertainty estimation
        using deep ensembles (2017).
    Differs: the answers are those of the members alone up to rounding, since their products are computed in one
        batch. What looks at whole parameters (clipping by norm, Muon, LBFGS) couples the members. It does not pass
        `meta`: the members are given, and stay where they are.

    >>> ensemble = Ensemble([nn.Linear(3, 2) for _ in range(4)])
    >>> ensemble(torch.randn(5, 3)).shape, ensemble.mean(torch.randn(5, 3)).shape
    (torch.Size([4, 5, 2]), torch.Size([5, 2]))
    """

    weights: Tensor

    def __init__(
        self, members: Iterable[nn.Module], weights: Float[Tensor, " members"] | Sequence[float] | None = None
    ) -> None:
        super().__init__()
        found = list(members)
        if not found or not all(isinstance(member, nn.Module) for member in found):
            raise TypeError("members must hold at least one nn.Module, and nothing else")
        signs = [_tensor_kinds(member) for member in found]
        for number, (member, sign) in enumerate(zip(found, signs, strict=True)):
            if type(member) is not type(found[0]) or sign != signs[0]:
                raise ValueError(f"members must be of one kind and size, but member {number} differs from member 0")
            if member.training is not found[0].training:
                raise ValueError("members must all be in training mode or all in evaluation mode: use eval()")
        parameters, buffers = stack_module_state(found)
        if not parameters:
            raise ValueError("members must have parameters: without them all are the same")
        self.members, one = len(found), found[0]
        named = dict([*one.named_parameters(), *one.named_buffers()])
        kept = {name: nn.Parameter(v.detach(), named[name].requires_grad) for name, v in parameters.items()}
        # The first member's modules, with the stacked values wherever they hold one of its own.
        self.stacked = _copy_with(one, [(named[name], value) for name, value in [*kept.items(), *buffers.items()]])
        first = next(iter(kept.values()))
        self.register_buffer("weights", _checked_weights(weights, self.members, first))

    @classmethod
    def of_draws(
        cls,
        model: nn.Module,
        draws: Float[Tensor, "members dimension"],
        weights: Float[Tensor, " members"] | Sequence[float] | None = None,
    ) -> "Ensemble":
        """Copies of a model with flat parameters from a sampler, such as rows of `Draws.values`; equal weights."""
        validate.matrix("draws", draws, "members, dimension")
        ensemble = cls([model] * len(draws), weights)
        ensemble.put(draws)
        return ensemble

    @torch.no_grad()
    def put(self, draws: Float[Tensor, "some dimension"], first: int = 0) -> None:
        """Give flat parameters to members from number `first` on, one row each; frozen ones stay."""
        learnt = [value for value in self.stacked.parameters() if value.requires_grad]
        sizes = [value[0].numel() for value in learnt]
        validate.last_axis("draws", draws, sum(sizes), "parameter")
        if not 0 <= first <= self.members - len(draws):
            raise ValueError(f"draws must be at most {self.members - first} from {first} on, got {len(draws)}")
        for value, part in zip(learnt, draws.split(sizes, dim=1), strict=True):
            value[first : first + len(draws)] = part.reshape(-1, *value.shape[1:])

    @property
    def flat(self) -> Float[Tensor, "members dimension"]:
        """The parameters of each member as one row, without frozen ones."""
        learnt = [value.detach() for value in self.stacked.parameters() if value.requires_grad]
        return torch.cat([value.flatten(1) for value in learnt], dim=1)

    def forward(self, x: Any) -> Any:
        one = vmap(self._member_outputs, in_dims=(0, 0, None), randomness="different")
        return one(dict(self.stacked.named_parameters()), dict(self.stacked.named_buffers()), x)

    def mean(self, x: Any) -> Tensor:
        """The weighted mean of the members' answers."""
        return torch.einsum("m,m...->...", self.weights, self(x))

    def member(self, number: int) -> nn.Module:
        """A copy of one member as a module of its own."""
        if not -self.members <= number < self.members:
            raise IndexError(f"number must be below {self.members}, got {number}")
        own = [(v, nn.Parameter(v[number].detach().clone(), v.requires_grad)) for v in self.stacked.parameters()]
        return _copy_with(self.stacked, [*own, *((v, v[number].clone()) for v in self.stacked.buffers())])

    def _member_outputs(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Any) -> Any:
        return functional_call(self.stacked, (dict(parameters), dict(buffers)), (x,))

    def extra_repr(self) -> str:
        return f"members={self.members}"


@system(
    "mlp_ensemble",
    title="Ensemble of multilayer perceptrons",
    kind="module",
    example="MLPEnsemble(inputs=6, outputs=3, members=4, widths=(8,))(torch.randn(5, 6))",
)
class MLPEnsemble(Ensemble):
    r"""Multilayer perceptrons with weights of their own, in one batch: an `Ensemble` that plain numbers describe.

    $$ f(\Theta)(x) = \frac1n \sum_i f[\theta_i](x) $$

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: (members, batch, outputs)

    Claims: bayes.ensembling
    Source: B. Lakshminarayanan, A. Pritzel and C. Blundell 2017.
    Differs: as `Ensemble`.

    >>> MLPEnsemble(inputs=10, outputs=2, members=5, widths=(16,))(torch.randn(7, 10)).shape
    torch.Size([5, 7, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        members: int = 8,
        widths: Sequence[int] = MLPConfig.widths,
        activation: str = MLPConfig.activation,
        dropout: float = MLPConfig.dropout,
        bias: bool = MLPConfig.bias,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(MLPConfig, locals())
        number = validate.count("members", members)
        choices = {**vars(config), "device": device, "dtype": dtype}
        super().__init__([MLP(inputs, outputs, **choices) for _ in range(number)])
        self.config, self.inputs, self.outputs = config, inputs, outputs

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "members batch outputs"]:
        """As `Ensemble` does by `vmap`, layer by layer in the layout that batched products are quickest in."""
        activate = ACTIVATION_TABLE[self.config.activation].value
        hidden = validate.examples("x", x, self.inputs).expand(self.members, -1, -1)  # (members, batch, inputs)
        *inner, last = self.stacked.layers  # type: ignore[misc]
        for layer in inner:
            hidden = activate(_batched_linear(hidden, layer))  # (members, batch, width)
            hidden = functional.dropout(hidden, self.config.dropout, self.training)
        return _batched_linear(hidden, last)  # (members, batch, outputs)


def summed_over_members(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    r"""A loss of an ensemble's outputs, from a member's: their sum, whose gradient is for each member its own.

    >>> whole = summed_over_members(nn.functional.mse_loss)
    >>> whole(torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.zeros(2))  # 2.5 and 0
    tensor(2.5000)
    """

    def whole(output: Tensor, target: Tensor) -> Tensor:
        return vmap(loss, in_dims=(0, None))(output, target).sum()

    return whole


def _batched_linear(x: Tensor, layer: Any) -> Tensor:
    """An affine map for each member: its weight is (members, outputs, inputs)."""
    weight = layer.weight.mT
    return torch.bmm(x, weight) if layer.bias is None else torch.baddbmm(layer.bias[:, None], x, weight)


def _copy_with(module: nn.Module, replaced: list[tuple[Tensor, Tensor]]) -> nn.Module:
    """A copy with other tensors in the places of some, also where one tensor stands at several places."""
    return copy.deepcopy(module, {id(old): new for old, new in replaced})


def _tensor_kinds(member: nn.Module) -> list[Any]:
    values = [*member.named_parameters(), *member.named_buffers()]
    return [(name, value.shape, value.dtype, value.device, value.requires_grad) for name, value in values]


def _checked_weights(weights: Any, members: int, like: Tensor) -> Tensor:
    """As many as there are members, in the numbers of their parameters and summing to 1."""
    if weights is None:
        return torch.full((members,), 1 / members, dtype=like.dtype, device=like.device)
    found = torch.as_tensor(weights).detach().double()
    validate.vector("weights", found, members)
    if bool((found < 0).any()) or abs(float(found.sum()) - 1) > 1e-5:
        raise ValueError(f"weights must be >= 0 and sum to 1, got a sum of {float(found.sum()):g}")
    return (found / found.sum()).to(like.device, like.dtype)
