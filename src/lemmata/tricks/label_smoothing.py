r"""Label smoothing: targets that leave room for a wrong label, by the confusion matrix that says which."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["smooth_labels", "uniform_confusion"]


@system("smooth_labels", title="Label smoothing", kind="function")
def smooth_labels(y: Shaped[Tensor, "*batch"], confusion: Float[Tensor, "k k"]) -> Float[Tensor, "*batch k"]:
    r"""In the place of each label the distribution of the true class, given that label: a column of $\Pi$.

    $$ y \mapsto \Pi e_y \in \Delta^{k-1} $$

    Use it as the target of a cross-entropy: `cross_entropy(logits, smooth_labels(y, confusion))`, ours or torch's.
    Where all mistakes are equally likely, $\Pi$ is `uniform_confusion`, and the loss is torch's with
    `label_smoothing`; the logits of the best fit are then finite.

    Shapes:
        y: (...) of class numbers; confusion: (classes, classes), each column a distribution
        returns: (..., classes)

    Claims: reg.label_smoothing
    Source: C. Szegedy et al., Rethinking the Inception architecture (2016); for a matrix, G. Patrini et al., Making
        deep neural networks robust to label noise (2017).

    >>> smooth_labels(torch.tensor([0, 2]), uniform_confusion(3, 0.3))
    tensor([[0.8000, 0.1000, 0.1000],
            [0.1000, 0.1000, 0.8000]])
    """
    validate.square("confusion", confusion)
    _check_columns(confusion)
    if validate.tensor("y", y).is_floating_point():
        raise TypeError(f"y must hold class numbers, got {y.dtype}: use y.long()")
    looked = y.device.type == "cpu" and y.numel()  # looking at labels elsewhere would make every step wait
    if looked and not 0 <= int(y.min()) <= int(y.max()) < len(confusion):
        raise ValueError(f"y must hold classes from 0 to {len(confusion) - 1}, got {int(y.min())} to {int(y.max())}")
    return confusion.mT[y.long()]  # (..., classes): row y of the transpose is column y


def uniform_confusion(
    classes: int, smoothing: int | float, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> Float[Tensor, "k k"]:
    r"""$\Pi = (1-\epsilon) I + \frac\epsilon k \mathbf 1\mathbf 1^\top$: with probability $\epsilon$ a class is drawn.

    >>> uniform_confusion(2, 0.2)
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    validate.count("classes", classes)
    validate.fraction("smoothing", smoothing, most=1.0)
    right = (1 - smoothing) * torch.eye(classes, device=device, dtype=dtype)
    return right + smoothing / classes


def _check_columns(confusion: Tensor) -> None:
    if bool((confusion < 0).any()):
        raise ValueError(f"confusion must not be negative, got {confusion.min().item():.4g}")
    sums = confusion.double().sum(0)
    gap = (sums - 1).abs()
    # Entries are rounded in their dtype, and there are as many in a sum as classes.
    if float(gap.max()) > 4 * len(sums) * torch.finfo(confusion.dtype).eps:
        worst = int(gap.argmax())
        cure = ": use confusion.mT" if bool(((confusion.double().sum(1) - 1).abs() < 1e-6).all()) else ""
        raise ValueError(f"confusion must have columns that sum to 1, column {worst} sums to {sums[worst]:.4g}{cure}")
