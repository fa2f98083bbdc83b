"""Augmentation: data extended by a group make a linear model invariant, which helps where labels are."""

import torch

from lemmata.feedforward.linear_regression import LinearRegression
from lemmata.judge import all_of, always, claim, close, lie, mean_is, reaches
from lemmata.tricks.augmentation import Augment, Flip, extended


def _quarter_turn(quarters):
    return lambda x: torch.rot90(x, quarters, (-2, -1))


def _mirror_images(x):
    return x.flip(-1)


def _rotation_group():
    """The four rotations of a square, the first of which is the identity."""
    return [_quarter_turn(quarters) for quarters in range(4)]


def _two_turns():
    return _rotation_group()[:2]


def _turns_alone():
    return _rotation_group()[1:]


def _symmetric_part(w):
    return (w + _mirror_images(w)) / 2


def _chiral_part(w):
    return (w - _mirror_images(w)) / 2


def _fitted_weights(x, y):
    return LinearRegression(bias=False, ridge=1e-3).fit(x.flatten(1), y).weight_.view(x.shape[1:])


def _classifier_accuracies(draw, part, tasks=20):
    """Of classifiers of 40 pictures and of these with their mirror images, on mirrored pictures: means over tasks."""
    right = []
    for _ in range(tasks):
        rule, x, new = part(draw.normal(6, 6)), draw.normal(40, 6, 6), _mirror_images(draw.normal(500, 6, 6))
        y, wanted = ((pictures * rule).sum((1, 2)).sign() for pictures in (x, new))
        both = extended(x, y, [torch.positive, _mirror_images])
        answers = [(new * _fitted_weights(*data)).sum((1, 2)).sign() for data in ((x, y), both)]
        right.append(torch.stack([(answer == wanted).double().mean() for answer in answers]))
    return torch.stack(right).mean(0)


@claim("aug.transformations")
@lie("any transformations make the model invariant", group=_two_turns)
@lie("the originals are kept whatever the transformations", kept=_turns_alone)
@lie("augmentation helps where a reflection changes the label", part=_chiral_part)
def augmented_data_teach_invariance(
    draw, group=_rotation_group, kept=_rotation_group, part=_symmetric_part, extend=extended
):
    """Pictures turned by quarters: the fitted weights, and the originals; mirrored at random: the mean loss; and the
    accuracy on mirrored pictures, with augmentation and without."""
    x, y = draw.normal(30, 5, 5), draw.normal(30)
    w = _fitted_weights(*extend(x, y, group()))
    some, labels = extend(x, y, kept())
    originals = [bool(((some == each).all((1, 2)) & (labels == label)).any()) for each, label in zip(x, y, strict=True)]
    flip, v = Augment(Flip()), draw.normal(5, 5)

    def loss(pictures):
        return ((pictures * v).sum((1, 2)) - y[0]).square()

    both, _ = extend(x[:1], y[:1], [torch.positive, _mirror_images])
    plain, augmented = _classifier_accuracies(draw, part)
    spread = float(loss(both).std())
    return all_of(
        close(torch.stack([turn(w) for turn in _rotation_group()]), w.expand(4, 5, 5), ulps=1e4),
        always(originals),
        mean_is(loss, lambda n: flip(x[:1].expand(n, 5, 5)), loss(both).mean(), effect=0.02 * spread),
        reaches(augmented, plain + 0.1, detail=f"accuracy on mirrored pictures; {plain:.3f} without augmentation"),
    )
