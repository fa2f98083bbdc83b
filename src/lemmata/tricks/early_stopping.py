r"""Early stopping: when to stop, and the best weights back; and the weight decay it is like."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["EarlyStopping", "descent_shrinkage", "matching_steps"]


@system("early_stopping", title="Early stopping", kind="function")
class EarlyStopping:
    r"""Stop when a held-out score has not improved for the past `patience` checks, and return to the best weights.

    $$ \text{stop at check } t \text{ if } \min_{s \le t-p} e_s \le \min_{t-p < s \le t} e_s,
       \qquad \theta = \theta_{\arg\min_s e_s} $$

    In a loop of one's own, `if stopping.update(error, model): break` after each check, and `stopping.restore(model)`
    after the loop. For `lemmata.fit` it is itself a callback, `fit(..., validation=..., on_epoch=stopping)`, that looks
    at the score `metric` of each evaluation and puts the best weights back after the last epoch; each training begins
    anew, unless `load_state_dict` came before it. (The option `patience` of `fit` does the same, is saved in its
    checkpoints, and knows averaged weights.)

    An improvement is a score that is better by more than `least_change`; NaN is none. `largest=True` is for scores such
    as an accuracy. Weights are copied to where they are; `state_dict` has all of it, for checkpoints.

    Claims: reg.early_stopping
    Source: L. Prechelt, Early stopping - but when? (1998).

    >>> stopping = EarlyStopping(patience=2)
    >>> [stopping.update(error) for error in (1.0, 0.5, 0.7, 0.4, 0.6, 0.4)]
    [False, False, False, False, False, True]
    >>> stopping.best, stopping.best_check
    (0.4, 3)
    """

    def __init__(
        self, patience: int = 5, least_change: int | float = 0.0, largest: bool = False, metric: str = "loss"
    ) -> None:
        self.patience = validate.count("patience", patience)
        self.least_change = validate.number("least_change", least_change, least=0)
        self.largest, self.metric = validate.flag("largest", largest), metric
        self._loaded = False
        self.reset()

    def reset(self) -> None:
        """Forget all scores and weights."""
        self.best: float | None = None
        self.best_check, self.checks = -1, 0
        self.weights: dict[str, Any] | None = None
        self._heard: Any = None

    def update(self, score: int | float | Tensor, model: Any = None) -> bool:
        """Hear the score of the next check, keep the model's weights if it is the best, and say whether to stop."""
        score = float(score)
        if self.improves(score):
            self.best, self.best_check = score, self.checks
            self.weights = None if model is None else _copy_state(model.state_dict())
        self.checks += 1
        return self.checks - 1 - self.best_check >= self.patience

    def improves(self, score: float) -> bool:
        """Whether a score is better than the best so far."""
        if self.best is None:
            return score == score  # NaN is not
        gain = score - self.best if self.largest else self.best - score
        return gain > self.least_change

    def restore(self, model: Any) -> None:
        """Put the best weights into the model."""
        if self.weights is None:
            nan = self.checks and self.best is None
            cure = f"all {self.checks} scores were NaN" if nan else "give the model to update(score, model)"
            raise RuntimeError(f"there are no weights to restore: {cure}")
        model.load_state_dict(self.weights)

    def __call__(self, state: Any) -> bool:
        """As `on_epoch` of `lemmata.fit`: whether to stop; at the end of the training, the best weights are back."""
        if state.averaged:
            raise ValueError("EarlyStopping cannot keep averaged weights: use fit(..., patience=...) with ema_decay")
        if state.epoch == 1 and not self._loaded:  # what is left of an earlier training is not of this model
            self.reset()
        self._loaded = False
        if not state.scores and state.epoch < state.epochs:
            return False  # the first evaluation is still to come
        if self.metric not in state.scores:
            known = ", ".join(state.scores) or "none: give fit validation examples"
            raise ValueError(f"metric must be one of the scores, got {self.metric!r}; there are {known}")
        stop = False
        if state.scores is not self._heard:  # not every epoch ends with an evaluation
            stop, self._heard = self.update(state.scores[self.metric], state.model), state.scores
        if (stop or state.epoch >= state.epochs) and self.weights is not None:
            self.restore(state.model)
        return stop

    def state_dict(self) -> dict[str, Any]:
        """Where it is: scores, counts, and the best weights."""
        return {"best": self.best, "best_check": self.best_check, "checks": self.checks, "weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.best, self.best_check, self.checks = state["best"], state["best_check"], state["checks"]
        self.weights = None if state["weights"] is None else _copy_state(state["weights"])
        self._loaded = True

    def __repr__(self) -> str:
        return f"EarlyStopping(patience={self.patience}, best={self.best}, best_check={self.best_check})"


def _copy_state(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.detach().clone() if isinstance(value, Tensor) else value for name, value in state.items()}


# --- The weight decay it is like ---


@system("descent_shrinkage", title="Spectral shrinkage of early stopping", kind="function")
def descent_shrinkage(
    eigenvalues: Float[Tensor, "*modes"], lr: int | float, steps: int | float
) -> Float[Tensor, "*modes"]:
    r"""How much of a minimum gradient descent from 0 has reached in each eigendirection of a quadratic loss.

    $$ 1 - (1 - \eta\lambda_i)^t $$

    Shapes:
        eigenvalues: (...) of the Hessian, from 0 to below 1 / lr; steps: how many, not necessarily whole
        returns: (...), from 0 to 1

    Claims: reg.early_stopping.equivalence

    >>> descent_shrinkage(torch.tensor([1.0, 0.1]), lr=0.5, steps=2)
    tensor([0.7500, 0.0975])
    """
    _check_rate(eigenvalues, lr)
    validate.number("steps", steps, least=0)
    return -torch.expm1(steps * torch.log1p(-lr * eigenvalues))


@system("matching_steps", title="Early stopping as weight decay", kind="function")
def matching_steps(
    eigenvalues: Float[Tensor, "*modes"], lr: int | float, weight_decay: int | float
) -> Float[Tensor, "*modes"]:
    r"""After how many steps gradient descent from 0 has what weight decay leaves, in each eigendirection.

    $$ (1-\eta\lambda_i)^t = \frac\mu{\lambda_i+\mu} \quad\Leftrightarrow\quad
       t = \frac{\log(1 + \lambda_i/\mu)}{-\log(1 - \eta\lambda_i)}
       \;\to\; \frac1{\eta\mu} \text{ for } \lambda_i \to 0 $$

    No one number of steps fits all directions; in flat ones, where regularisation matters, it is near $1/(\eta\mu)$.

    Shapes:
        eigenvalues: (...) of the Hessian, from 0 to below 1 / lr    returns: (...)

    Claims: reg.early_stopping.equivalence
    Source: C. Bishop, Regularization and complexity control in feed-forward networks (1995).

    >>> matching_steps(torch.tensor([0.0, 1e-3], dtype=torch.double), lr=0.05, weight_decay=0.1)
    tensor([200.0000, 199.0016], dtype=torch.float64)
    """
    _check_rate(eigenvalues, lr)
    validate.positive("weight_decay", weight_decay)
    values = eigenvalues.double()  # a small rate or decay is 0 in coarser numbers
    steps = _log1p_ratio(values / weight_decay) / weight_decay / lr / _log1p_ratio(-lr * values)
    told = steps.to(eigenvalues.dtype)
    if not bool(told.isfinite().all()):
        cure = "use a larger lr or weight_decay" + ("" if told.dtype is torch.double else ", or eigenvalues.double()")
        raise ValueError(f"the number of steps is too large for {told.dtype}: {cure}")
    return told


def _log1p_ratio(x: Tensor) -> Tensor:
    """log(1 + x) / x, which is 1 at 0."""
    safe = torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, 1.0, torch.log1p(safe) / safe)


def _check_rate(eigenvalues: Tensor, lr: float) -> None:
    validate.positive("lr", lr)
    low, high = (float(v) for v in validate.floating("eigenvalues", eigenvalues).aminmax())
    if low < 0 or lr * high >= 1:
        told = f"got {low:.4g} to {high:.4g}: use a smaller lr" if low >= 0 else f"got {low:.4g}: this is no minimum"
        raise ValueError(f"eigenvalues must be from 0 to below 1 / lr = {1 / lr:.4g}, {told}")
