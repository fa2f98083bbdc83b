"""Thresholds and regions, against scikit-learn, scipy and their definitions."""

import math

import pytest
import torch
from scipy import ndimage

from lemmata.vision import (
    Threshold,
    area_under_roc,
    best_threshold,
    connected_parts,
    equal_variance_threshold,
    is_partition,
    labels_of,
    regions_of,
    roc_curve,
)


def scored(seed, n=60):
    generator = torch.Generator().manual_seed(seed)
    truth = torch.rand(n, generator=generator) < 0.4
    return (torch.randint(0, 9, (n,), generator=generator) + 2.0 * truth).double(), truth


@pytest.mark.parametrize("seed", range(3))
def test_curves_and_areas_are_those_of_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    scores, truth = scored(seed)
    false, true, thresholds = roc_curve(scores, truth)
    theirs = metrics.roc_curve(truth.numpy(), scores.numpy(), drop_intermediate=False)
    for ours, other in zip((false, true, thresholds), theirs, strict=True):
        assert ours.numpy() == pytest.approx(other, abs=1e-12)
    assert area_under_roc(scores, truth) == pytest.approx(
        metrics.roc_auc_score(truth.numpy(), scores.numpy()), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_better_than_the_best(seed):
    scores, truth = scored(seed)
    best = best_threshold(scores, truth)
    right = lambda level: int(((scores >= level) == truth).sum())  # noqa: E731
    assert right(best) == max(right(level) for level in [-math.inf, *scores.tolist(), math.inf])
    assert float(Threshold(0.0).fit(scores, truth).level) == best


def test_thresholds_at_the_ends():
    scores = torch.tensor([0.2, 0.4])
    assert best_threshold(scores, torch.tensor([True, True])) == -math.inf
    assert best_threshold(scores, torch.tensor([False, False])) == math.inf
    restored = Threshold()
    restored.load_state_dict(Threshold(0.3).state_dict())
    assert float(restored.level) == 0.3


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6, 1.0])
def test_connected_parts_are_those_of_scipy(neighbours, fraction):
    mask = torch.rand(23, 31, generator=torch.Generator().manual_seed(4)) < fraction
    theirs, _ = ndimage.label(mask.numpy(), ndimage.generate_binary_structure(2, 1 if neighbours == 4 else 2))
    assert torch.equal(connected_parts(mask, neighbours), torch.from_numpy(theirs).long())


def test_a_winding_part_is_one():
    mask = torch.ones(21, 21, dtype=torch.bool)
    mask[1::4, :-1] = False
    mask[3::4, 1:] = False
    assert int(connected_parts(mask).max()) == 1


def test_label_maps_and_regions_are_inverse():
    labels = torch.randint(0, 5, (3, 6, 7), generator=torch.Generator().manual_seed(5))
    regions = regions_of(labels, 5)
    assert torch.equal(labels_of(regions), labels)
    assert is_partition(regions).tolist() == [True] * 3


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: roc_curve(torch.ones(3), torch.ones(3).bool()), "truth must have positives and negatives"),
        (lambda: area_under_roc(torch.ones(3), torch.ones(2).bool()), "truth must be bool and have the shape"),
        (lambda: best_threshold(torch.ones(2) / 0, torch.ones(2).bool()), "scores must be finite"),
        (lambda: Threshold(math.nan), "level must be finite, got nan"),
        (lambda: equal_variance_threshold(0.5, 0.4, 0.1), "bright must be > 0.5, got 0.4"),
        (lambda: equal_variance_threshold(0.3, 0.4, 0.1, 1.0), "fraction must be > 0 and < 1, got 1.0"),
        (lambda: is_partition(torch.ones(2, 3)), r"regions must be \(..., regions, height, width\) bool"),
        (lambda: labels_of(torch.zeros(2, 2, 2).bool()), "0 pixels are in several regions and 4 in none"),
        (lambda: regions_of(torch.tensor([[7]]), 3), "labels must hold tokens from 0 to 2, got 7 to 7"),
        (lambda: connected_parts(torch.ones(2, 2)), r"mask must be \(height, width\) bool"),
        (lambda: connected_parts(torch.ones(2, 2).bool(), 6), "neighbours must be 4 or 8, got 6"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
