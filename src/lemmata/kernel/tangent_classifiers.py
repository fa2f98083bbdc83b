r"""Classifiers that no gradient trains: a network of infinite width, and the tangent of one of finite width."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.kernel.infinite_width import infinite_ntk
from lemmata.kernel.kernel_regression import KernelRegression
from lemmata.kernel.linearized_network import LinearizedNetwork
from lemmata.marks import system

__all__ = ["InfiniteWidthClassifier", "LinearizedClassifier"]


@system("infinite_width_classifier", title="Classifier of infinite width", kind="estimator")
class InfiniteWidthClassifier:
    r"""What an infinitely wide network of relu answers when it is trained to the end, from outputs that start at zero.

    $$ f(x) = k_\infty(x)^\top (K_\infty + \lambda I)^{-1} Y $$

    for inputs less their mean, with one column of $Y$ for each class: 1 for the examples of the class and 0 for others,
    less its mean. The ridge is counted in mean diagonal entries of the kernel.

    Shapes:
        x: (batch, features), y: (batch,) classes from 0 on

    Source: S. Arora et al. 2019.

    >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> InfiniteWidthClassifier(classes=2).fit(x, torch.tensor([0, 0, 1])).predict(torch.tensor([[0.1, 0.8]]))
    tensor([1])
    """

    def __init__(self, classes: int, depth: int = 3, bias_variance: float = 0.1, ridge: float = 1e-3) -> None:
        self.classes, self.depth = validate.count("classes", classes, least=2), validate.count("depth", depth)
        self.bias_variance = validate.number("bias_variance", bias_variance, least=0)
        self.ridge = validate.number("ridge", ridge, least=0)
        self.points_ = self.weight_ = self.centre_ = torch.zeros(0)

    def _kernel_between(self, left: Tensor, right: Tensor) -> Tensor:
        return infinite_ntk(left, None if left is right else right, self.depth, bias_variance=self.bias_variance)

    def fit(self, x: Float[Tensor, "batch d"], y: Int[Tensor, "batch"]) -> "InfiniteWidthClassifier":
        """One system of linear equations."""
        aim = _centred_targets(y, self.classes, x)
        self.centre_ = x.mean(0)
        x = x - self.centre_
        gram = self._kernel_between(x, x)
        ridge = self.ridge * float(gram.diagonal().mean())
        self.points_, self.weight_ = x, KernelRegression("precomputed", ridge).fit(gram, aim).weight_.to(x)
        return self

    def decision_function(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, "batch classes"]:
        """One number for each class; the largest wins."""
        if not len(self.points_):
            raise RuntimeError("this InfiniteWidthClassifier is not fitted: call fit(x, y) first")
        return self._kernel_between(x.to(self.points_) - self.centre_, self.points_) @ self.weight_

    def predict(self, x: Float[Tensor, "batch d"]) -> Int[Tensor, "batch"]:
        """The class of each."""
        return self.decision_function(x).argmax(1)

    def state_dict(self) -> dict[str, Tensor]:
        """The examples, their mean and their weights."""
        return {"points": self.points_, "centre": self.centre_, "weight": self.weight_}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        self.points_, self.centre_, self.weight_ = state["points"], state["centre"], state["weight"]


@system("linearized_classifier", title="Linearised classifier", kind="estimator")
class LinearizedClassifier:
    r"""A multilayer perceptron as it was drawn, and the tangent there, fitted in closed form.

    Shapes:
        x: (batch, inputs), y: (batch,) classes from 0 on

    Source: J. Lee et al. 2019.

    >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> LinearizedClassifier(2, classes=2, widths=(16,)).fit(x, torch.tensor([0, 0, 1])).predict(x)
    tensor([0, 0, 1])
    """

    def __init__(
        self, inputs: int, classes: int, widths: Sequence[int] = (256,), activation: str = "relu", ridge: float = 1.0
    ) -> None:
        self.classes, self.ridge = classes, validate.number("ridge", ridge, least=0)
        self.linear = LinearizedNetwork(MLP(inputs, classes, widths, activation))

    def fit(self, x: Float[Tensor, "batch d"], y: Int[Tensor, "batch"]) -> "LinearizedClassifier":
        """One system of linear equations, a row for each output of each example."""
        self.linear.model.to(x)
        self.linear.start_ = {name: p.detach() for name, p in self.linear.model.named_parameters()}
        self.linear.fit(x, _centred_targets(y, self.classes, x), self.ridge)
        return self

    def decision_function(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, "batch classes"]:
        """One number for each class; the largest wins."""
        return self.linear(x.to(next(iter(self.linear.start_.values()))))

    def predict(self, x: Float[Tensor, "batch d"]) -> Int[Tensor, "batch"]:
        """The class of each."""
        return self.decision_function(x).argmax(1)

    def state_dict(self) -> dict[str, Tensor]:
        """Where the network was drawn, and how far it was moved."""
        start = {f"start.{name}": value for name, value in self.linear.start_.items()}
        return start | {f"change.{name}": value for name, value in self.linear.change_.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        names = list(self.linear.start_)
        self.linear.model.load_state_dict({name: state[f"start.{name}"] for name in names})
        self.linear.model.to(state[f"start.{names[0]}"])
        self.linear.start_ = {name: p.detach() for name, p in self.linear.model.named_parameters()}
        self.linear.change_ = {name: state[f"change.{name}"] for name in names}


def _centred_targets(y: Tensor, classes: int, like: Tensor) -> Tensor:
    return functional.one_hot(y.long(), classes).to(like) - 1 / classes
