r"""Two classes by brightness: a threshold, how to find it, and all of them at once as a curve."""

import math

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["Threshold", "area_under_roc", "best_threshold", "equal_variance_threshold", "roc_curve"]


@system("thresholding", title="Thresholding", kind="module", example="Threshold(0.5)(torch.rand(3, 4, 5))")
class Threshold(nn.Module):
    r"""$B(x, y) = 1$ if $I(x, y) \ge T$, else $0$.

    `fit` takes the threshold that agrees best with the ground truth.

    Shapes:
        image: (..., height, width)    returns: the same, bool

    Claims: vision.thresholding
    Differs: the mask has no gradient.

    >>> Threshold(0.5)(torch.tensor([[0.4, 0.5, 0.6]]))
    tensor([[False,  True,  True]])
    """

    level: Tensor

    def __init__(self, level: int | float = 0.5) -> None:
        super().__init__()
        self.register_buffer("level", torch.tensor(float(validate.finite_number("level", level)), dtype=torch.float64))

    def fit(self, image: Float[Tensor, "*pixels"], truth: Bool[Tensor, "*pixels"]) -> "Threshold":
        """The threshold with the most pixels right."""
        self.level.fill_(best_threshold(image, truth))
        return self

    def forward(self, image: Float[Tensor, "*pixels"]) -> Bool[Tensor, "*pixels"]:
        """Which pixels are at least as bright."""
        if validate.visible(validate.tensor("image", image)) or not image.is_floating_point():
            validate.floating("image", image)
        return image >= self.level


@system("best_threshold", title="Best threshold by ground truth", kind="function")
def best_threshold(image: Float[Tensor, "*pixels"], truth: Bool[Tensor, "*pixels"]) -> float:
    r"""The $T$ of all thresholds for which most pixels are classified as the ground truth says.

    Between two neighbouring values the middle is taken, beyond the last of them infinity; of several the lowest.

    Shapes:
        image, truth: one shape; truth bool    returns: a number

    Claims: vision.thresholding

    >>> best_threshold(torch.tensor([0.1, 0.2, 0.6, 0.9]), torch.tensor([False, False, True, True]))
    0.4...
    """
    values, right, wrong = _score_counts(image, truth)  # ascending values, positives and negatives that have each
    # With the threshold below value k, all positives from k on and all negatives before k are right.
    none = right.new_zeros(1)
    kept = torch.cat([right.flip(0).cumsum(0).flip(0), none]) + torch.cat([none, wrong.cumsum(0)])
    k = int(kept.argmax())
    if k in (0, len(values)):
        return -math.inf if k == 0 else math.inf
    return float((values[k - 1] + values[k]) / 2)


@system("equal_variance_threshold", title="Threshold of two Gaussians", kind="function")
def equal_variance_threshold(
    dark: int | float, bright: int | float, sigma: int | float, fraction: int | float = 0.5
) -> float:
    r"""Where two Gaussians of one variance, the bright one with this fraction of the pixels, are equally likely.

    $$ T = \frac{\mu_0 + \mu_1}2 + \frac{\sigma^2}{\mu_1 - \mu_0}\log\frac{\pi_0}{\pi_1} $$

    Claims: vision.thresholding

    >>> equal_variance_threshold(0.3, 0.7, sigma=0.1, fraction=0.5)
    0.5
    """
    validate.number("bright", bright, above=validate.finite_number("dark", dark))
    validate.positive("sigma", sigma)
    validate.number("fraction", fraction, above=0, below=1)
    return (dark + bright) / 2 + sigma**2 / (bright - dark) * math.log((1 - fraction) / fraction)


@system("roc_curve", title="ROC curve", kind="function")
def roc_curve(
    scores: Float[Tensor, "*pixels"], truth: Bool[Tensor, "*pixels"]
) -> tuple[Float[Tensor, "points"], Float[Tensor, "points"], Float[Tensor, "points"]]:
    r"""The fractions of negatives and of positives that are taken for positive, at every threshold from above all down.

    Shapes:
        scores, truth: one shape; truth bool    returns: false and true positive rates, thresholds: (points,)

    Claims: vision.roc
    Differs: every distinct score has its point; scikit-learn drops those on a straight line unless told otherwise.

    >>> false, true, _ = roc_curve(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    values, right, wrong = _both_rates(*_score_counts(scores, truth))
    none = values.new_zeros(1, dtype=torch.float64)
    rates = [torch.cat([none, part.flip(0).cumsum(0) / part.sum()]) for part in (wrong.double(), right.double())]
    return rates[0], rates[1], torch.cat([values.new_full((1,), math.inf), values.flip(0)])


@system("area_under_roc", title="Area under the ROC curve", kind="function")
def area_under_roc(scores: Float[Tensor, "*pixels"], truth: Bool[Tensor, "*pixels"]) -> float:
    r"""The chance that a positive has a higher score than a negative, ties counted half (Mann and Whitney).

    $$ \frac{1}{n_+ n_-}\sum_{i \in +}\sum_{j \in -} [s_i > s_j] + \tfrac12[s_i = s_j] $$

    Counted in integers: exact but for one division.

    Shapes:
        scores, truth: one shape; truth bool    returns: a number

    Claims: vision.roc

    >>> area_under_roc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True]))
    0.75
    """
    _, right, wrong = _both_rates(*_score_counts(scores, truth))
    below = wrong.cumsum(0) - wrong  # negatives with a lower score
    twice = int((right * (2 * below + wrong)).sum())
    return twice / (2 * int(right.sum()) * int(wrong.sum()))


def _score_counts(scores: Tensor, truth: Shaped[Tensor, "..."]) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct scores in ascending order, and how many positives and negatives have each."""
    validate.floating("scores", scores)
    if validate.tensor("truth", truth).dtype is not torch.bool or truth.shape != scores.shape:
        told = f"{truth.dtype} of shape {tuple(truth.shape)} for scores of shape {tuple(scores.shape)}"
        raise ValueError(f"truth must be bool and have the shape of the scores, got {told}")
    values, places = scores.detach().flatten().unique(return_inverse=True)
    right = torch.bincount(places[truth.flatten()], minlength=len(values))
    return values, right, torch.bincount(places, minlength=len(values)) - right


def _both_rates(values: Tensor, right: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if not int(right.sum()) or not int(wrong.sum()):
        raise ValueError("truth must have positives and negatives, got only one of them: rates would divide by zero")
    return values, right, wrong
