"""Label smoothing: targets from a confusion matrix, and the logits that fit them best."""

import torch
from torch.nn import functional

from lemmata.feedforward.softmax import cross_entropy
from lemmata.judge import all_of, claim, close, lie
from lemmata.tricks.label_smoothing import smooth_labels, uniform_confusion


def _confusion_columns(confusion):
    return confusion


def _confusion_rows(confusion):
    return confusion.mT


def _best_logits(targets):
    """The logits of each example that minimise its cross-entropy, by a quasi-Newton method from 0."""
    logits = torch.zeros_like(targets, requires_grad=True)
    settings = {"max_iter": 500, "tolerance_grad": 1e-12, "tolerance_change": 1e-16}
    optimizer = torch.optim.LBFGS([logits], line_search_fn="strong_wolfe", **settings)

    def loss():
        optimizer.zero_grad()
        value = cross_entropy(logits, targets, reduction="sum")
        value.backward()
        return value

    optimizer.step(loss)
    return logits.detach()


@claim("reg.label_smoothing")
@lie("each row of the matrix is a distribution", oriented=_confusion_rows, raises=ValueError)
@lie("ε is shared by the other classes alone", less=-1.0)
@lie("the right class keeps 1 - ε", right=1.0)
def the_best_fit_to_smooth_labels_is_finite(
    draw, oriented=_confusion_columns, less=0.0, right=0.0, smooth=smooth_labels
):
    """A drawn matrix and the uniform one: the fitted probabilities, the gap between logits, and torch's loss."""
    k, y = 5, torch.arange(5)
    drawn = (torch.eye(k) + draw.uniform(k, k)).double()
    drawn = oriented(drawn / drawn.sum(0))
    fitted, wanted, gaps, formula, losses, smoothed = ([] for _ in range(6))
    for confusion in (drawn, uniform_confusion(k, 0.1, dtype=torch.float64)):
        targets = smooth(y, confusion)
        fitted.append(_best_logits(targets).softmax(-1))
        wanted.append(confusion.mT)
    for eps in (0.5, 0.1, 0.01):
        confusion = uniform_confusion(k, eps, dtype=torch.float64)
        best, other = _best_logits(smooth(y, confusion)), eps / (k + less)
        gaps.append(best.diagonal() - best.roll(1, 0).diagonal())
        formula.append(torch.full((k,), (1 - eps + (1 - right) * other) / other).double().log())
        logits = 3 * draw.normal(k, k)
        losses.append(cross_entropy(logits, smooth(y, confusion)))
        smoothed.append(functional.cross_entropy(logits, y, label_smoothing=eps))
    return all_of(
        close(torch.stack(wanted).sum(-1), 1.0),
        close(torch.stack(fitted), torch.stack(wanted), within=1e-6),
        close(torch.stack(gaps), torch.stack(formula), within=1e-4),
        close(losses, smoothed),
    )
