r"""More than two classes by perceptrons alone: for each class one that tells it from all others."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.connectionism.perceptron import Perceptron
from lemmata.marks import system

__all__ = ["OneVersusRest"]


@system("one_versus_rest", title="Perceptrons, each class against the rest", kind="estimator")
class OneVersusRest:
    r"""One perceptron for each class learns to tell it from all others; the largest activation wins.

    $$ \hat y(x) = \arg\max_k\, (w_k^\top x + b_k), \qquad
       s_k(w_k^\top x_i + b_k) \le 0 \;\Rightarrow\; w_k \leftarrow w_k + s_k x_i,\; b_k \leftarrow b_k + s_k, \qquad
       s_k = \begin{cases} +1 & y_i = k \\ -1 & \text{else} \end{cases} $$

    Two classes need one perceptron only, for class 1; class 0 has its activation with the other sign.

    Shapes:
        x: (points, features), y: (points,) of 0 ... classes - 1    weight: (units, features), bias: (units,)

    Source: Rosenblatt 1958.
    Differs: like `Perceptron` it learns on the CPU, in float32 unless the data are float64.

    >>> x = torch.tensor([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    >>> learnt = OneVersusRest(features=2, classes=3).fit(x, torch.tensor([0, 1, 2]))
    >>> learnt.predict(x), learnt.mistakes(x, torch.tensor([0, 1, 2]))
    (tensor([0, 1, 2]), 0)
    """

    def __init__(self, features: int, classes: int, bias: bool = True) -> None:
        self.features = validate.count("features", features)
        self.classes = validate.count("classes", classes, least=2)
        self.biased = validate.flag("bias", bias)
        units = 1 if classes == 2 else classes
        self.weight, self.bias = torch.zeros(units, features), torch.zeros(units)

    def __repr__(self) -> str:
        return f"OneVersusRest(features={self.features}, classes={self.classes}, bias={self.biased})"

    def fit(self, x: Float[Tensor, "points features"], y: Int[Tensor, " points"], max_epochs: int = 100):
        """Epoch after epoch, until one makes no mistake or `max_epochs` are over; returns the system."""
        validate.count("max_epochs", max_epochs)
        for _ in range(max_epochs):
            if self.sweep(x, y) == 0:
                break
        return self

    def sweep(self, x: Float[Tensor, "points features"], y: Int[Tensor, " points"]) -> int:
        """Show every point once, in order, to every perceptron; the number of updates made."""
        x, signs = self._checked_points(x), self._class_signs(x, y)  # (points, features), (units, points)
        once, updates = Perceptron(bias=self.biased, max_epochs=1, certify=False), 0
        weight = self.weight.to("cpu", torch.promote_types(self.weight.dtype, x.dtype)).clone()  # (units, features)
        bias = self.bias.to(weight).clone()  # (units,)
        for k, sign in enumerate(signs):
            once.fit(x.to(weight), sign, weight[k], float(bias[k]))
            weight[k], bias[k] = once.weight_, once.bias_
            updates += once.mistakes_
        self.weight, self.bias = weight, bias
        return updates

    def mistakes(self, x: Float[Tensor, "points features"], y: Int[Tensor, " points"]) -> int:
        """On how many points some perceptron is wrong; 0 means that each class is separated from the rest."""
        x = self._checked_points(x)
        wrong = self._class_signs(x, y) * self._class_activations(x).T <= 0  # (units, points)
        return int(wrong.any(0).sum())

    def decision_function(self, x: Float[Tensor, "points features"]) -> Float[Tensor, "points classes"]:
        r"""The activations $w_k^\top x + b_k$, a column for each class."""
        activation = self._class_activations(self._checked_points(x))  # (points, units)
        return torch.cat([-activation, activation], 1) if self.classes == 2 else activation

    def predict(self, x: Float[Tensor, "points features"]) -> Int[Tensor, " points"]:
        """The class with the largest activation."""
        return self.decision_function(x).argmax(1)

    def state_dict(self) -> dict[str, Tensor]:
        """What was learnt."""
        return {"weight": self.weight, "bias": self.bias}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        for name in ("weight", "bias"):
            if state[name].shape != getattr(self, name).shape:
                wanted, got = tuple(getattr(self, name).shape), tuple(state[name].shape)
                raise RuntimeError(f"{name} must have shape {wanted}, got {got}")
        self.weight, self.bias = state["weight"].clone(), state["bias"].clone()

    def _class_activations(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(self.weight.dtype, x.dtype)
        return x.to(wide) @ self.weight.to(x.device, wide).T + self.bias.to(x.device, wide)  # (points, units)

    def _checked_points(self, x: Tensor) -> Tensor:
        return validate.last_axis("x", validate.matrix("x", x), self.features).detach()

    def _class_signs(self, x: Tensor, y: Tensor) -> Tensor:
        """A row of -1 and +1 for each perceptron."""
        if y.shape != (len(x),) or y.is_floating_point() or not ((y >= 0) & (y < self.classes)).all():
            raise ValueError(f"y must be an integer from 0 to {self.classes - 1} for each of the {len(x)} points")
        mine = torch.arange(1 if self.classes == 2 else 0, self.classes, device=y.device)
        return torch.where(y == mine[:, None], 1.0, -1.0).to(x)  # (units, points)
