"""Noise on targets and on inputs: what it is in expectation for cross-entropy, Brier's score and squared errors."""

import itertools

import torch

from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.feedforward.softmax import cross_entropy
from lemmata.judge import all_of, claim, close, lie
from lemmata.tricks.label_smoothing import smooth_labels


def mean_of_losses(probabilities, targets):
    """The mean over redrawn labels of the loss of each."""
    return (targets * -probabilities.log()).sum(-1)


def loss_of_the_mean(probabilities, targets):
    """The loss of the mean probability of the redrawn label."""
    return -(targets * probabilities).sum(-1).log()


@claim("reg.label_smoothing.expected_noise")
@lie("the loss of the mean probability is meant", redrawn=loss_of_the_mean)
@lie("Brier's score is the same, too, without a constant", constant=0.0)
def smoothing_is_the_mean_over_redrawn_labels(draw, redrawn=mean_of_losses, constant=1.0, smooth=smooth_labels):
    """All labels that may be redrawn, weighted by a drawn confusion matrix, for two to six classes."""
    found, wanted, squares, brier = [], [], [], []
    for k in (2, 3, 6):
        confusion = torch.eye(k, dtype=torch.float64) + draw.uniform(k, k)
        confusion = confusion / confusion.sum(0)
        y, logits = draw.integers(0, k, 40), 2 * draw.normal(40, k)
        targets, probabilities = smooth(y, confusion), logits.softmax(-1)
        found.append(cross_entropy(logits, targets, reduction="none"))
        wanted.append(redrawn(probabilities, confusion.mT[y]))
        # Each redrawn label as a corner of the simplex, (1, labels, k), against the prediction (40, 1, k).
        distance = (torch.eye(k, dtype=torch.float64) - probabilities[:, None]).square().sum(-1)
        squares.append((confusion.mT[y] * distance).sum(-1))
        smoothed = (targets - probabilities).square().sum(-1)
        brier.append(smoothed + constant * (1 - targets.square().sum(-1)))
    return all_of(
        close(torch.cat(found), torch.cat(wanted), ulps=256, scale=torch.cat(wanted) + 1),
        close(torch.cat(squares), torch.cat(brier)),
    )


def on_inputs(x, y, size):
    """The data with every sign of a noise of this size on each input."""
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=x.shape[1])), dtype=torch.float64)
    return (x[:, None] + size * signs).flatten(0, 1), y.repeat_interleave(len(signs))


def on_targets(x, y, size):
    """The data with either sign of a noise of this size on the target."""
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    return x.repeat_interleave(2, 0), (y[:, None] + size * signs).flatten()


@claim("reg.label_noise.regression")
@lie("noise on the targets regularises, for any type of label", printed="003/1", regularising=on_targets)
@lie("noise on the inputs leaves the minimiser as it is", harmless=on_inputs)
@lie("noise of variance σ² is a penalty σ²/2", strength=0.5)
def noise_on_targets_is_lost_and_noise_on_inputs_is_ridge(
    draw, regularising=on_inputs, harmless=on_targets, strength=1.0, regression=LinearRegression
):
    """Noise of two values, enumerated: what minimises the mean loss over it, against least squares and ridge."""
    found, plain, noisy, penalised, losses, shifted = ([] for _ in range(6))
    for size in (0.1, 0.5, 2.0):
        x, y = draw.normal(12, 3), 2 * draw.normal(12)
        w = draw.normal(3)
        found.append(regression(bias=False).fit(*harmless(x, y, size)).weight_)
        plain.append(regression(bias=False).fit(x, y).weight_)
        noisy.append(regression(bias=False).fit(*regularising(x, y, size)).weight_)
        penalised.append(regression(bias=False, ridge=strength * size**2).fit(x, y).weight_)
        inputs, targets = on_targets(x, y, size)
        losses.append((inputs @ w - targets).square().mean() / 2)
        shifted.append((x @ w - y).square().mean() / 2 + size**2 / 2)
    return all_of(
        close(torch.stack(found), torch.stack(plain), condition=1e3),
        close(torch.stack(noisy), torch.stack(penalised), condition=1e3),
        close(torch.stack(losses), torch.stack(shifted)),
    )
