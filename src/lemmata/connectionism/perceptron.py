r"""Rosenblatt's perceptron: the algorithm as it is printed, and an estimator that says when and why it stopped."""

import math
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.rounding import gamma
from lemmata.connectionism.linear_threshold import LinearThresholdUnit, augment, dataset_margin
from lemmata.connectionism.separability import Separation, separate
from lemmata.fast.perceptron_sweep import fingerprint, quick_sweep
from lemmata.marks import system

__all__ = ["Perceptron", "textbook_perceptron"]


def textbook_perceptron(
    x: Float[Tensor, "points features"], y: Tensor, epochs: int, bias: bool = True
) -> tuple[Float[Tensor, "features"], Tensor, list[int]]:
    r"""The algorithm as it is printed, point by point: the reference that `Perceptron` reproduces update for update.

    $$ \text{if } y_i(w^\top x_i + b) \le 0: \qquad w \leftarrow w + y_i x_i, \quad b \leftarrow b + y_i $$

    Shapes:
        x: (points, features), y: (points,) of -1 and +1
        returns: weight (features,), bias (scalar), and the index of the point of every update in order

    Claims: perceptron.algorithm

    >>> textbook_perceptron(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([1, -1]), epochs=2, bias=False)
    (tensor([ 1., -2.]), tensor(0.), [0, 1])
    """
    x = validate.matrix("x", x)
    y = validate.labels("y", y, like=x)
    validate.count("epochs", epochs)
    validate.flag("bias", bias)
    w = x.new_zeros(x.shape[1])  # (features,)
    b = x.new_zeros(())
    updates = []
    for _ in range(epochs):
        for i in range(len(x)):
            if y[i] * (w @ x[i] + b) <= 0:  # misclassified, or on the boundary
                w = w + y[i] * x[i]  # (features,)
                b = b + y[i] if bias else b
                updates.append(i)
    return w, b, updates


@system("perceptron", title="Perceptron", kind="estimator")
class Perceptron:
    r"""Rosenblatt's perceptron: add every misclassified point to the weights until an epoch makes no mistake.

    $$ y_i(w^\top x_i + b) \le 0 \quad\Rightarrow\quad w \leftarrow w + y_i x_i, \qquad b \leftarrow b + y_i $$

    On separable data it stops after at most $\tilde R^2/\tilde\gamma^2$ updates (Novikoff). On others it never would:
    `fit` stops when the weights repeat or after `max_epochs` and says so in `status_`, with a proof in `certificate_`.
    "separated" and "not separable" are proved for the numbers as they are stored; an epoch that is clean by rounding
    alone is called that.

    Shapes:
        x: (points, features), y: (points,) of -1 and +1

    Learnt: `weight_`, `bias_`; `updates_` (the point of every update, in order), `mistakes_` (how many),
    `mistake_counts_` (how many at each point: the dual form), `epochs_`; `status_` ("separated", "not separable",
    "clean up to rounding" or "epoch limit"); `certificate_` (a `Separation`, unless the learnt weights are the proof);
    with `record=True` also `trajectory_`, the iterates $(w_t, b_t)$ as rows.

    Claims: perceptron.algorithm, perceptron.homogeneous, perceptron.span, perceptron.alignment_lemma,
        perceptron.norm_lemma, perceptron.novikoff, perceptron.novikoff_bias, perceptron.xor, perceptron.nonseparable
    Source: Rosenblatt 1958; Novikoff 1962.
    Differs: the updates come one after another, so they are computed on the CPU whatever the device of the data, and
        half precision is computed in float32. The updates are those of `textbook_perceptron`, found by the quicker
        search of `lemmata.fast.perceptron_sweep`. The linear program behind `certificate_` takes seconds from ten
        thousand points on: `certify=False` skips it.

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

    def __init__(self, bias: bool = True, max_epochs: int = 1000, certify: bool = True, record: bool = False) -> None:
        self.bias = validate.flag("bias", bias)
        self.max_epochs = validate.count("max_epochs", max_epochs)
        self.certify = validate.flag("certify", certify)
        self.record = validate.flag("record", record)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={getattr(self, name)}" for name in ("bias", "max_epochs", "certify", "record"))
        return f"Perceptron({options})"

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
        """The geometric margin of the learnt classifier on a data set: positive iff separated, but for rounding."""
        unit = self.unit_
        return dataset_margin(unit.weight, unit.bias, validate.matrix("x", x).to(unit.weight), y)

    def fit(
        self,
        x: Float[Tensor, "points features"],
        y: Tensor,
        weight: Float[Tensor, "features"] | None = None,
        bias: int | float = 0.0,
    ) -> "Perceptron":
        """Go over the data, from the given weight and bias (default 0), until an epoch makes no mistake."""
        reach = _largest_size(x)
        x = x.detach() if x.dtype is torch.float64 else x.detach().float()
        y = validate.labels("y", y, like=x)
        w = x.new_zeros(x.shape[1]) if weight is None else validate.vector("weight", weight, length=x.shape[1]).to(x)
        if validate.finite_number("bias", bias) != 0 and not self.bias:
            raise ValueError(f"bias must be 0 for a perceptron without bias, got {bias}")
        start = torch.cat([w, w.new_tensor([bias])])  # (features + 1,)
        lowest, loop = self._run_epochs(x, y, start)
        separated = lowest is not None and (self._exceeds_rounding(lowest, reach) or self._separates_points(x, y))
        self.certificate_ = None if separated else self._find_certificate(x, y, loop)
        if separated:
            self.status_ = "separated"
        elif self.certificate_ is not None and not self.certificate_.separable:
            self.status_ = "not separable"
        else:
            self.status_ = "epoch limit" if lowest is None else "clean up to rounding"
        if self.record:
            inputs = augment(x) if self.bias else torch.nn.functional.pad(x, (0, 1))  # (points, features + 1)
            steps = (y[:, None] * inputs)[self.updates_]  # (updates, features + 1)
            self.trajectory_ = torch.cumsum(torch.cat([start[None], steps]), dim=0)
        return self

    def _run_epochs(self, x: Tensor, y: Tensor, start: Tensor) -> tuple[float | None, list[int]]:
        """Epoch after epoch; the lowest product of the last if it was clean, the updates of a loop if states repeat."""
        points, labels = x.cpu().contiguous().numpy(), y.cpu().numpy()
        state = start.cpu().numpy().copy()  # (features + 1,): weight and bias, which each mistake changes
        updates: list[int] = []
        seen: dict[bytes, int] = {}
        for epoch in range(1, self.max_epochs + 1):
            self.epochs_ = epoch
            with np.errstate(over="ignore", invalid="ignore"):  # what is not a number is proved to separate nothing
                mistakes, lowest = quick_sweep(points, labels, state, self.bias, earlier=len(updates))
            updates += mistakes
            # What an epoch does depends on the weights alone: once they come back, the rest repeats for ever.
            loop = updates[seen.setdefault(fingerprint(state), len(updates)) :]
            if loop or not mistakes:
                break
        learnt = torch.from_numpy(state).to(x.device)
        self.weight_, self.bias_ = learnt[:-1], learnt[-1]
        self.updates_ = torch.from_numpy(np.fromiter(updates, np.int64, len(updates))).to(x.device)
        self.mistakes_ = len(updates)
        self.mistake_counts_ = torch.bincount(self.updates_, minlength=len(x))
        return None if mistakes else lowest, loop

    def _exceeds_rounding(self, lowest: float, reach: float) -> bool:
        """Whether the lowest of the products y (w x + b) of a clean epoch is above what rounding them may cost."""
        terms, limits = len(self.weight_) + 2, torch.finfo(self.weight_.dtype)
        if terms * limits.eps > 0.5:
            return False
        size = reach * float(self.weight_.double().abs().sum()) + abs(float(self.bias_))
        if size >= limits.max:  # a sum may have overflowed on its way
            return False
        return lowest > 2 * gamma(terms, self.weight_.dtype) * size + terms * limits.tiny

    def _separates_points(self, x: Tensor, y: Tensor) -> bool:
        """Whether the learnt weights have every point on its side, exactly."""
        return Separation(True, self.weight_.double(), self.bias_.double(), biased=True).verify(x, y)

    def _find_certificate(self, x: Tensor, y: Tensor, loop: list[int]) -> Separation | None:
        """Why no epoch was clean: weights that repeat are themselves a proof, else a linear program decides."""
        if loop:
            # The corrections of a loop add up to 0, and that is what multipliers of a Separation must do.
            counts = torch.bincount(torch.tensor(loop, device=x.device), minlength=len(x))
            shares = tuple(Fraction(number, len(loop)) for number in counts.tolist())
            proof = Separation(False, multipliers=counts.double() / len(loop), biased=self.bias, exact=shares)
            if proof.verify(x, y):
                return proof
        try:
            return separate(x, y, self.bias) if self.certify else None
        except ArithmeticError:
            return None


def _largest_size(x: Tensor) -> float:
    """The size of the largest number among the points, which must be a finite matrix.

    One pass finds both, piece by piece so that the second look at a piece finds it in the cache.
    """
    if not isinstance(x, Tensor) or x.ndim != 2 or not x.is_floating_point() or not x.numel():
        validate.matrix("x", x)
    plain = x.detach().cpu()
    pieces = (plain if plain.dtype in (torch.float32, torch.float64) else plain.float()).numpy()
    ends = [(-piece.min(), piece.max()) for piece in np.split(pieces, range(512, len(pieces), 512))]
    largest = float(np.max(ends))  # NaN if one is
    if not math.isfinite(largest):
        validate.matrix("x", x)
    return largest
