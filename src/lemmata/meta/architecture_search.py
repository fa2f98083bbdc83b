"""Differentiable architecture search: a mixture of operations whose weights are learnt on validation data."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.meta.inner_loop import loss_for

__all__ = ["Elementwise", "MixedOperation", "search_architecture"]

ELEMENTWISE = {
    "identity": lambda x: x,
    "relu": functional.relu,
    "sin": torch.sin,
    "square": torch.square,
    "tanh": torch.tanh,
}


@system("elementwise", title="Elementwise operation", kind="module", example='Elementwise("sin")(torch.randn(5, 3))')
class Elementwise(nn.Module):
    r"""An operation by its name: identity, relu, sin, square or tanh.

    $$ y_i = o(x_i) $$

    Shapes:
        x: (...)    returns: (...)

    >>> Elementwise("square")(torch.tensor([2.0]))
    tensor([4.])
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = validate.one_of("name", name, tuple(ELEMENTWISE))

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return ELEMENTWISE[self.name](validate.tensor("x", x))

    def extra_repr(self) -> str:
        return self.name


@system(
    "mixed_operation",
    title="Mixture of candidate operations",
    kind="module",
    example='MixedOperation(nn.ModuleDict([("sin", Elementwise("sin")), ("relu", nn.ReLU())]))(torch.randn(5, 3))',
)
class MixedOperation(nn.Module):
    r"""All candidates at once, each by its share: a choice that can be learnt by gradients.

    $$ \bar o(x) = \sum_o \mathrm{softmax}(\alpha)_o\, o(x) $$

    `choose()` names the candidate with the largest share, `operations[name]` is that alone.

    Shapes:
        x: what the operations take    returns: what they give, of one shape

    Claims: meta.nas
    Source: Liu, Simonyan and Yang, DARTS: differentiable architecture search (2019).

    >>> mixed = MixedOperation({"a": nn.Identity(), "b": nn.ReLU()})
    >>> mixed(torch.tensor([-2.0])).detach(), mixed.choose()
    (tensor([-1.]), 'a')
    """

    def __init__(
        self,
        operations: Mapping[str, nn.Module] | nn.ModuleDict,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if len(operations) < 2:
            raise ValueError(f"operations must be two or more to choose from, got {len(operations)}")
        self.operations = nn.ModuleDict(dict(operations))
        self.alpha = nn.Parameter(torch.zeros(len(operations), device=device, dtype=dtype))

    @property
    def shares(self) -> dict[str, float]:
        """How much of each candidate there is."""
        return dict(zip(self.operations, self.alpha.detach().softmax(0).tolist(), strict=True))

    def choose(self) -> str:
        """The candidate with the largest share."""
        return list(self.operations)[int(self.alpha.argmax())]

    def forward(self, x: Tensor) -> Tensor:
        validate.tensor("x", x)
        parts = torch.stack([operation(x) for operation in self.operations.values()])  # (operations, ...)
        return torch.tensordot(self.alpha.softmax(0).to(parts), parts, 1)


@system("architecture_search", title="Differentiable architecture search", kind="function")
def search_architecture(
    model: nn.Module,
    train: Examples,
    validation: Examples,
    steps: int = 300,
    lr: float = 0.02,
    architecture_lr: float = 0.05,
) -> dict[str, str]:
    r"""Steps of the weights on the training loss and of the shares on the *validation* loss in turn; what is chosen.

    $$ w \leftarrow w - \eta \nabla_w L_{train}(w, \alpha), \qquad
       \alpha \leftarrow \alpha - \eta_\alpha \nabla_\alpha L_{val}(w, \alpha) $$

    To first order, both by Adam and on all examples. With the training loss in place of the validation loss a candidate
    that memorises would win. The answer names the candidate of each `MixedOperation` of the model, whose weights are
    best trained again without the others.

    Shapes:
        x: what the model takes, y: (n, ...)    returns: by name of the layer

    Claims: meta.nas
    Source: Liu, Simonyan and Yang, DARTS: differentiable architecture search (2019).

    >>> x = torch.linspace(-3, 3, 64)[:, None]
    >>> mixed = MixedOperation({"sin": Elementwise("sin"), "square": Elementwise("square")})
    >>> data = Examples(x=x, y=x.sin())
    >>> search_architecture(nn.Sequential(mixed), data, data, steps=50)
    {'0': 'sin'}
    """
    validate.count("steps", steps)
    validate.positive("lr", lr)
    mixed = {name: part for name, part in model.named_modules() if isinstance(part, MixedOperation)}
    if not mixed:
        raise ValueError("model must have a MixedOperation, got none: there is nothing to choose")
    shares = [part.alpha for part in mixed.values()]
    weights = [part for part in model.parameters() if all(part is not share for share in shares)]
    of_shares = torch.optim.Adam(shares, lr=validate.positive("architecture_lr", architecture_lr))
    of_weights = torch.optim.Adam(weights, lr=lr) if weights else None
    criterion = loss_for(train.y)
    for step in range(steps):
        for optimizer, data in ((of_weights, train), (of_shares, validation)):
            if optimizer is None:
                continue
            model.zero_grad()
            loss = criterion(model(data.x), data.y)
            if not bool(loss.isfinite()):
                raise ValueError(f"the loss became {loss.item():g} at step {step + 1}: lower lr (now {lr:g})")
            loss.backward()
            optimizer.step()
    model.zero_grad()
    return {name: part.choose() for name, part in mixed.items()}
