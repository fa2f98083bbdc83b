r"""Rosenblatt's perceptron: the textbook loop, the same updates found by blocks, and an honest answer when it fails."""

import hashlib
import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.connectionism.linear_threshold import LinearThresholdUnit, augment, dataset_margin
from lemmata.connectionism.separability import Separation, separate
from lemmata.fast.perceptron_sweep import compiled_sweep
from lemmata.marks import system

__all__ = ["Perceptron", "textbook_perceptron"]

# Rows multiplied at once when the search for the next mistake begins; every block without one doubles the next.
FIRST_BLOCK = 64
MANY = 500  # mistakes after which it pays to have a compiler asked for a sweep in C


def textbook_perceptron(
    x: Float[Tensor, "points features"], y: Tensor, sweeps: int, bias: bool = True
) -> tuple[Float[Tensor, "features"], Tensor, list[int]]:
    r"""The algorithm as it is printed, point by point: the reference that `Perceptron` reproduces update for update.

    $$ \text{if } y_i(w^\top x_i + b) \le 0: \qquad w \leftarrow w + y_i x_i, \quad b \leftarrow b + y_i $$

    Shapes:
        x: (points, features), y: (points,) of -1 and +1
        returns: weight (features,), bias (scalar), and the index of the point of every update in order

    Claims: perceptron.algorithm

    >>> textbook_perceptron(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([1, -1]), sweeps=2, bias=False)
    (tensor([ 1., -2.]), tensor(0.), [0, 1])
    """
    x = validate.matrix("x", x)
    y = validate.labels("y", y, like=x)
    validate.count("sweeps", sweeps)
    validate.flag("bias", bias)
    w, b, updates = x.new_zeros(x.shape[1]), x.new_zeros(()), []
    for _ in range(sweeps):
        for i in range(len(x)):
            if y[i] * (w @ x[i] + b) <= 0:
                w = w + y[i] * x[i]
                b = b + y[i] if bias else b
                updates.append(i)
    return w, b, updates


@system("perceptron", title="Perceptron", kind="estimator")
class Perceptron:
    r"""Rosenblatt's perceptron: add every misclassified point to the weights until a sweep makes no mistake.

    $$ y_i(w^\top x_i + b) \le 0 \quad\Rightarrow\quad w \leftarrow w + y_i x_i, \qquad b \leftarrow b + y_i $$

    On separable data it stops after at most $\tilde R^2/\tilde\gamma^2$ updates (Novikoff). On others it never would:
    `fit` stops when the weights repeat or after `max_sweeps` and says so in `status_`, with a proof in `certificate_`.

    Shapes:
        x: (points, features), y: (points,) of -1 and +1

    Learnt: `weight_`, `bias_`; `updates_` (the point of every update, in order), `mistakes_` (how many),
    `mistake_counts_` (how many at each point: the dual form), `sweeps_`; `status_` ("separated", "not separable" or
    "sweep limit"); `certificate_` (a `Separation`, unless a clean sweep already proves the status); with `record=True`
    also `trajectory_`, the iterates $(w_t, b_t)$ as rows.

    Claims: perceptron.algorithm, perceptron.homogeneous, perceptron.span, perceptron.alignment_lemma,
        perceptron.norm_lemma, perceptron.novikoff, perceptron.novikoff_bias, perceptron.xor, perceptron.nonseparable
    Source: Rosenblatt 1958; Novikoff 1962.
    Differs: the updates come one after another, so they are computed on the CPU whatever the device of the data, and
        half precision is computed in float32. Between two mistakes whole blocks of points are multiplied at once; where
        mistakes are many and a C compiler is there, the sweep is compiled, once, and kept.
        The linear program behind `certificate_` takes seconds from ten thousand points on: `certify=False` skips it.

    >>> x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> both = Perceptron().fit(x, torch.tensor([-1, -1, -1, 1]))
    >>> both.status_, both.mistakes_, both.predict(x)
    ('separated', 18, tensor([-1., -1., -1.,  1.]))
    >>> exclusive_or = Perceptron().fit(x, torch.tensor([-1, 1, 1, -1]))
    >>> exclusive_or.status_, exclusive_or.certificate_.multipliers.tolist()
    ('not separable', [0.25, 0.25, 0.25, 0.25])
    """

    weight_: Tensor
    bias_: Tensor
    trajectory_: Tensor
    certificate_: Separation | None

    def __init__(self, bias: bool = True, max_sweeps: int = 1000, certify: bool = True, record: bool = False) -> None:
        self.bias = validate.flag("bias", bias)
        self.max_sweeps = validate.count("max_sweeps", max_sweeps)
        self.certify = validate.flag("certify", certify)
        self.record = validate.flag("record", record)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={getattr(self, name)}" for name in ("bias", "max_sweeps", "certify", "record"))
        return f"Perceptron({options})"

    def fit(
        self,
        x: Float[Tensor, "points features"],
        y: Tensor,
        weight: Float[Tensor, "features"] | None = None,
        bias: int | float = 0.0,
    ) -> "Perceptron":
        """Sweep over the data, from the given weight and bias (default 0), until a sweep makes no mistake."""
        x = validate.matrix("x", x).detach()
        x = x if x.dtype is torch.float64 else x.float()
        y = validate.labels("y", y, like=x)
        w = x.new_zeros(x.shape[1]) if weight is None else validate.vector("weight", weight, length=x.shape[1]).to(x)
        if validate.finite_number("bias", bias) != 0 and not self.bias:
            raise ValueError(f"bias must be 0 for a perceptron without bias, got {bias}")
        start = torch.cat([w, w.new_tensor([bias])])
        clean, loop = self._run(x, y, start.cpu().numpy().copy())
        self.mistakes_ = len(self.updates_)
        self.mistake_counts_ = torch.bincount(self.updates_, minlength=len(x))
        self.certificate_ = None if clean else self._certificate(x, y, loop)
        proved = self.certificate_ is not None and not self.certificate_.separable
        self.status_ = "separated" if clean else "not separable" if proved else "sweep limit"
        if self.record:
            step = (y[:, None] * (augment(x) if self.bias else torch.nn.functional.pad(x, (0, 1))))[self.updates_]
            self.trajectory_ = torch.cumsum(torch.cat([start[None], step]), dim=0)
        return self

    def _run(self, x: Tensor, y: Tensor, state: np.ndarray) -> tuple[bool, list[int]]:
        """Learn; return whether a sweep was clean, and the updates between two equal states if they repeat."""
        points, targets = np.ascontiguousarray(x.cpu().numpy()), y.cpu().numpy()
        updates: list[int] = []
        seen: dict[bytes, int] = {}
        for sweep in range(1, self.max_sweeps + 1):
            mistakes = self._sweep(points, targets, state, MANY - len(updates))
            updates += mistakes
            self.sweeps_ = sweep
            # What a sweep does depends on the weights alone: once they come back, the rest repeats for ever.
            key = hashlib.sha256(state.tobytes()).digest()
            loop = updates[seen.setdefault(key, len(updates)) :]
            if loop or not mistakes:
                break
        self.updates_ = torch.tensor(updates, dtype=torch.int64, device=x.device)
        learnt = torch.from_numpy(state).to(x.device)
        self.weight_, self.bias_ = learnt[:-1], learnt[-1]
        return not mistakes, loop

    def _sweep(self, x: np.ndarray, y: np.ndarray, state: np.ndarray, patience: int | float) -> list[int]:
        """One sweep of the textbook loop, in place, but the next mistake is found by a galloping search over blocks.

        Where mistakes are many, the time goes into calls rather than arithmetic: after `patience` of them, compiled
        code does the rest of the sweep, where there is any.
        """
        weight, bias = state[:-1], state[-1]
        mistakes, first, block = [], 0, FIRST_BLOCK
        while first < len(x):
            if len(mistakes) >= patience:
                state[-1] = bias
                rest = compiled_sweep(x[first:], y[first:], state, self.bias)
                if rest is not None:
                    return mistakes + [first + index for index in rest]
                patience = math.inf
            margin = x[first : first + block].dot(weight)
            margin += bias
            margin *= y[first : first + block]
            ahead = (margin <= 0).tobytes().find(True)
            if ahead >= 0:
                first += ahead
                if y[first] > 0:
                    weight += x[first]
                else:
                    weight -= x[first]
                if self.bias:
                    bias = bias + y[first]
                mistakes.append(first)
                first, block = first + 1, FIRST_BLOCK
            else:
                first += block
                block = 2 * block
        state[-1] = bias
        return mistakes

    def _certificate(self, x: Tensor, y: Tensor, loop: list[int]) -> Separation | None:
        """Why no sweep was clean: weights that repeat are themselves a proof, else a linear program decides."""
        if loop:
            # The corrections of a loop add up to 0, and that is what multipliers of a Separation must do.
            counts = torch.bincount(torch.tensor(loop, device=x.device), minlength=len(x))
            proof = Separation(False, multipliers=counts.double() / len(loop), biased=self.bias)
            if proof.verify(x, y):
                return proof
        try:
            return separate(x, y, self.bias) if self.certify else None
        except ArithmeticError:
            return None

    @property
    def unit_(self) -> LinearThresholdUnit:
        """The learnt classifier as a module."""
        if not hasattr(self, "weight_"):
            raise RuntimeError("this Perceptron is not fitted: call fit(x, y) first")
        return LinearThresholdUnit(self.weight_, self.bias_)

    def decision_function(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        r"""The activation $w^\top x + b$."""
        unit = self.unit_
        return unit.activation(validate.floating("x", x).to(unit.weight))

    def predict(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        """The sign of the activation: -1 or +1, or 0 on the boundary itself."""
        return torch.sign(self.decision_function(x))

    def margin(self, x: Float[Tensor, "points features"], y: Tensor) -> Float[Tensor, ""]:
        """The geometric margin of the learnt classifier on a data set, positive iff it is separated."""
        unit = self.unit_
        return dataset_margin(unit.weight, unit.bias, validate.matrix("x", x).to(unit.weight), y)
