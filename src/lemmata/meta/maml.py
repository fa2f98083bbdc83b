"""MAML: an initialisation from which a few gradient steps solve a new task."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.func import vmap

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.meta.inner_loop import (
    Loss,
    Parameters,
    adapt,
    check_model,
    check_names,
    check_tasks,
    loss_for,
    outputs_after,
)
from lemmata.signatures import config_of

__all__ = ["ANIL", "MAML", "FirstOrderMAML", "MAMLConfig"]


@dataclass(frozen=True)
class MAMLConfig:
    """What can be chosen of the inner loop."""

    steps: int = 1
    """Gradient steps on the support of each task while the initialisation is learnt."""
    inner_lr: float = 0.01
    """Their size."""
    learn_rates: bool = False
    """Learn a step size for each parameter tensor as well."""

    def __post_init__(self) -> None:
        validate.count("steps", self.steps, least=0)
        validate.positive("inner_lr", self.inner_lr)


@system(
    "maml",
    title="Model-agnostic meta-learning",
    kind="module",
    example="MAML(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))"
    "(torch.randn(5, 4, 2), torch.randn(5, 4, 1), torch.randn(5, 3, 2))",
)
class MAML(nn.Module):
    r"""Learn the initialisation $\phi$ of a model by the loss that it has on new data of a task after k steps on a few.

    $$ \min_\phi \mathbb E_t\big[L_{t,B}(U^k_{t,A}(\phi))\big], \qquad
       \nabla_\phi = DU^k_{t,A}(\phi)^\top \nabla L_{t,B}(\tilde\phi), \qquad
       DU^{k\top} = (I - \epsilon H_0) \cdots (I - \epsilon H_{k-1}) $$

    All tasks of a batch are one computation (`torch.func.vmap`). A batch has the columns x and y (the support, one row
    a task), query_x and query_y: those of the data set sinusoids, and of `Episodes`. `fit(maml, data, loss=
    MAML.batch_loss)` trains it with any optimiser; `maml.adapt(x, y)` then gives the parameters for a new task, and a
    call the outputs for its query.

    Shapes:
        x: (tasks, shots, ...), y: (tasks, shots, ...), query_x: (tasks, queries, ...)
        returns: (tasks, queries, outputs)

    Claims: meta.maml_objective, meta.maml_gradient, meta.maml_one_step, meta.maml, meta.objective
    Source: Finn, Abbeel and Levine, Model-agnostic meta-learning for fast adaptation of deep networks (2017); Li et
        al., Meta-SGD (2017), for learnt step sizes.
    Differs: without tasks nobody knows the outputs' shape, torch exports no `torch.func.grad`, and what x holds is the
        model's affair: does not pass `batch_of_none`, `export` and `wrong_dtype`.

    >>> from lemmata.feedforward import MLP
    >>> from lemmata.data import load
    >>> tasks, maml = load("sinusoids").test, MAML(MLP(1, 1, widths=(40, 40), activation="tanh"))
    >>> maml(tasks.x, tasks.y, tasks.query_x).shape, maml.loss(tasks).shape
    (torch.Size([200, 10, 1]), torch.Size([]))
    """

    first_order = False

    def __init__(
        self,
        model: nn.Module,
        steps: int = MAMLConfig.steps,
        inner_lr: float = MAMLConfig.inner_lr,
        learn_rates: bool = MAMLConfig.learn_rates,
        *,
        loss: Loss | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(MAMLConfig, locals())
        self.model, self.criterion = check_model(model), loss
        self.names = check_names(dict(model.named_parameters()), names)
        self.rates = nn.ParameterDict(
            {name.replace(".", "/"): nn.Parameter(part.new_tensor(inner_lr)) for name, part in model.named_parameters()}
            if learn_rates
            else {}
        )

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
        """The model's parameters for one task, after so many steps on its support."""
        words: dict[str, Any] = {"loss": self.criterion, "names": self.names, "first_order": self.first_order}
        return adapt(self.model, x, y, self.config.steps if steps is None else steps, self._inner_rates(), **words)

    def loss(self, batch: Examples, steps: int | None = None) -> Float[Tensor, ""]:
        """The mean loss of the query after adaptation, over all tasks of a batch."""
        return self.losses(batch, steps).mean()

    def losses(self, batch: Examples, steps: int | None = None) -> Float[Tensor, " tasks"]:
        """That of each task."""
        output = self(batch.x, batch.y, batch.query_x, steps)  # (tasks, queries, outputs)
        return vmap(self.criterion or loss_for(batch.query_y))(output, batch.query_y)

    def batch_loss(self, batch: Examples) -> Tensor:
        """`loss` as `fit` wants it: `fit(maml, tasks, loss=MAML.batch_loss)`."""
        return self.loss(batch)

    def _inner_rates(self) -> Any:
        if not self.config.learn_rates:
            return self.config.inner_lr
        return {name.replace("/", "."): rate for name, rate in self.rates.items()}

    def extra_repr(self) -> str:
        return f"steps={self.config.steps}, inner_lr={self.config.inner_lr:g}"


@system(
    "fomaml",
    title="First-order MAML",
    kind="module",
    example="FirstOrderMAML(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))"
    "(torch.randn(5, 4, 2), torch.randn(5, 4, 1), torch.randn(5, 3, 2))",
)
class FirstOrderMAML(MAML):
    r"""MAML without second derivatives: the mean of the query gradients at the *adapted* parameters.

    $$ g = \mathbb E_t\big[\nabla L_{t,B}(U_{t,A}(\phi))\big] $$

    It differs from MAML's by $\epsilon H \nabla L_B$, and from joint training by where the gradient is taken.

    Shapes:
        as MAML

    Claims: meta.fomaml
    Source: Finn, Abbeel and Levine 2017; Nichol, Achiam and Schulman, On first-order meta-learning algorithms (2018).
    Differs: without tasks nobody knows the outputs' shape, torch exports no `torch.func.grad`, and what x holds is the
        model's affair: does not pass `batch_of_none`, `export` and `wrong_dtype`. It
        leaves second derivatives out, so it does not pass `gradcheck`.

    >>> FirstOrderMAML(nn.Linear(1, 1)).first_order
    True
    """

    first_order = True


@system(
    "anil",
    title="Almost no inner loop",
    kind="module",
    example="ANIL(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))"
    "(torch.randn(5, 4, 2), torch.randn(5, 4, 1), torch.randn(5, 3, 2))",
)
class ANIL(MAML):
    r"""MAML whose inner loop moves the last layer alone: the features are learnt by the outer loop and reused.

    $$ U_{t,A}(\phi_{body}, \phi_{head}) = (\phi_{body},\; \phi_{head} - \epsilon \nabla_{head} L_{t,A}(\phi)) $$

    `names` are the parameters of the head, by default those of the module's last layer with parameters.

    Shapes:
        as MAML

    Claims: meta.anil
    Source: Raghu et al., Rapid learning or feature reuse? (2020).
    Differs: without tasks nobody knows the outputs' shape, torch exports no `torch.func.grad`, and what x holds is the
        model's affair: does not pass `batch_of_none`, `export` and `wrong_dtype`.

    >>> ANIL(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))).names
    ['2.weight', '2.bias']
    """

    def __init__(
        self,
        model: nn.Module,
        steps: int = MAMLConfig.steps,
        inner_lr: float = MAMLConfig.inner_lr,
        learn_rates: bool = MAMLConfig.learn_rates,
        *,
        loss: Loss | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        names = _last_layer(validate.module("model", model)) if names is None else names
        super().__init__(model, steps, inner_lr, learn_rates, loss=loss, names=names)


def _last_layer(model: nn.Module) -> list[str]:
    last = ""
    for name, part in model.named_modules():
        if any(True for _ in part.parameters(recurse=False)):
            last = name
    return [f"{last}.{name}" if last else name for name, _ in model.get_submodule(last).named_parameters(recurse=False)]
