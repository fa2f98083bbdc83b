r"""Least squares on more and more random features: one family of classifiers, from too small to far too large."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.feedforward.random_features import RandomFeatures
from lemmata.marks import system

__all__ = ["FittedWidths", "WidthSweepClassifier"]

RIDGES = torch.logspace(-8, 1, 37, dtype=torch.float64)  # in mean eigenvalues of the Gram matrix
SILENT = 1e-13  # eigenvalues below this part of the largest are rounding


class FittedWidths(NamedTuple):
    """What was fitted: the weights of every width, without a ridge and with the best one."""

    weight: Float[Tensor, "widths features classes"]  # zero beyond its width
    ridged: Float[Tensor, "widths features classes"]
    ridge: Float[Tensor, " widths"]  # the one that leaves single examples out best, in mean eigenvalues


@system("double_descent", title="Classifiers of growing width", kind="estimator")
class WidthSweepClassifier:
    r"""The minimum-norm classifier on the first N of the same random features, for all widths N at once.

    $$ \hat W_N = \Phi_N^\top(\Phi_N\Phi_N^\top)^+Y, \qquad
       \hat W_{N,\lambda} = \Phi_N^\top(\Phi_N\Phi_N^\top + \lambda I)^{-1}Y $$

    with $\Phi_N = \phi(XW_N)$ for n examples less their mean, and one column of $Y$ for each class. All Gram matrices
    are decomposed as one batch; the ridge of each width is the one whose leave-one-out error is least (Allen's PRESS),
    which the same decomposition gives. Test error is largest where $N = n$; the ridge leaves no peak.

    Shapes:
        x: (batch, inputs), y: (batch,) classes from 0 on    returns: scores (batch, classes), of the widest

    Source: M. Belkin, D. Hsu, S. Ma, S. Mandal, Reconciling modern machine-learning practice (2019);
        P. Nakkiran et al., Optimal regularization can mitigate double descent (2021).

    >>> x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2
    >>> model = WidthSweepClassifier(3, widths=(10, 40, 400)).fit(x, y)
    >>> (model.predict_all(x) == y).double().mean(1)[1:]
    tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(self, inputs: int, widths: Sequence[int] = (30, 100, 300, 1000, 3000), seed: int = 0) -> None:
        self.widths = tuple(validate.count("widths", width) for width in widths)
        if not self.widths or list(self.widths) != sorted(set(self.widths)):
            raise ValueError(f"widths must grow, got {list(widths)}: give each once, the smallest first")
        drawn = torch.Generator().manual_seed(seed)
        # Units that turn at the origin, which the inputs lie around: none is silent for all of them.
        self.hidden = RandomFeatures(inputs, self.widths[-1], radius=1e-3, generator=drawn, dtype=torch.float64)
        self.centre_ = self.offset_ = torch.zeros(0)
        self.fitted_: FittedWidths | None = None

    @torch.no_grad()
    def fit(
        self, x: Float[Tensor, "n inputs"], y: Int[Tensor, "labels"], classes: int | None = None
    ) -> "WidthSweepClassifier":
        """One batch of eigendecompositions, (widths, n, n); as many classes as the labels have, if nothing is said."""
        x = validate.matrix("x", x).double()
        classes = int(y.max()) + 1 if classes is None else validate.count("classes", classes, least=2)
        if len(y) != len(x) or int(y.min()) < 0 or int(y.max()) >= classes:
            raise ValueError(f"y must be {len(x)} classes from 0 to {classes - 1}, got {_label_words(y)}")
        self.centre_ = x.mean(0)
        features = self._feature_values(x)  # (n, features)
        aim = functional.one_hot(y, classes).double()  # (n, classes)
        self.offset_ = aim.mean(0)
        aim = aim - self.offset_
        grams = torch.stack([features[:, :width] @ features[:, :width].mT for width in self.widths])
        values, vectors = torch.linalg.eigh(grams)  # (widths, n), (widths, n, n)
        turned = vectors.mT @ aim  # (widths, n, classes)
        kept = values > SILENT * values[:, -1:]
        plain = torch.where(kept, 1 / values, 0.0)
        ridge = self._best_ridge(values, vectors, turned)
        damped = 1 / (values.clamp_min(0) + (ridge * values.mean(1))[:, None])
        own = (torch.arange(self.widths[-1]) < torch.tensor(self.widths)[:, None])[..., None]  # (widths, features, 1)
        weight, ridged = (features.mT @ (vectors @ (part[..., None] * turned)) * own for part in (plain, damped))
        self.fitted_ = FittedWidths(weight, ridged, ridge)
        return self

    def _best_ridge(self, values: Tensor, vectors: Tensor, turned: Tensor) -> Tensor:
        """Of each width, by the error on an example that is left out: residual over one minus leverage."""
        found = []
        for ridge in RIDGES:
            damped = 1 / (values.clamp_min(0) + (ridge * values.mean(1))[:, None])  # (widths, n)
            dual = vectors @ (damped[..., None] * turned)  # (widths, n, classes)
            inverse_diagonal = (vectors.square() * damped[:, None]).sum(2)  # (widths, n)
            found.append((dual / inverse_diagonal[..., None]).square().mean((1, 2)))
        return RIDGES[torch.stack(found).argmin(0)]

    def _feature_values(self, x: Tensor) -> Tensor:
        return self.hidden.features(x.double() - self.centre_)

    @torch.no_grad()
    def scores(self, x: Float[Tensor, "batch inputs"], ridged: bool = False) -> Float[Tensor, "widths batch classes"]:
        """Of every width; with the best ridge of each, or without."""
        if self.fitted_ is None:
            raise RuntimeError("this WidthSweepClassifier is not fitted: call fit(x, y) first")
        return self._feature_values(x) @ (self.fitted_.ridged if ridged else self.fitted_.weight) + self.offset_

    def predict_all(self, x: Float[Tensor, "batch inputs"], ridged: bool = False) -> Int[Tensor, "widths batch"]:
        """The class of each example, by every width."""
        return self.scores(x, ridged).argmax(2)

    def decision_function(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch classes"]:
        """Scores of the widest, without a ridge."""
        return self.scores(x)[-1]

    def predict(self, x: Float[Tensor, "batch inputs"]) -> Int[Tensor, "batch"]:
        """The classes of the widest, without a ridge."""
        return self.decision_function(x).argmax(1)

    def norms(self) -> Float[Tensor, " widths"]:
        """The length of the weights of every width, without a ridge."""
        if self.fitted_ is None:
            raise RuntimeError("this WidthSweepClassifier is not fitted: call fit(x, y) first")
        return self.fitted_.weight.flatten(1).norm(dim=1)

    def state_dict(self) -> dict[str, Tensor]:
        """The random features, and what was fitted to them."""
        state = {"hidden_weight": self.hidden.hidden.weight, "hidden_bias": self.hidden.hidden.bias}
        state |= {"centre": self.centre_, "offset": self.offset_}
        return {**state, **({} if self.fitted_ is None else self.fitted_._asdict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` returned."""
        with torch.no_grad():
            self.hidden.hidden.weight.copy_(state["hidden_weight"])
            self.hidden.hidden.bias.copy_(state["hidden_bias"])
        self.centre_, self.offset_ = state["centre"], state["offset"]
        if "ridge" in state:
            self.fitted_ = FittedWidths(state["weight"], state["ridged"], state["ridge"])


def _label_words(y: Tensor) -> str:
    return f"{len(y)}, from {int(y.min())} to {int(y.max())}" if len(y) else "none"
