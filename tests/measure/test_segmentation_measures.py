"""Agreement of masks and Otsu's threshold, against their definitions and other packages."""

import re

import numpy as np
import pytest
import torch

from lemmata.measure.segmentation_measures import dice, intersection_over_union, otsu_threshold


@pytest.mark.usefixtures("unchecked")
def test_intersection_over_union_counts_pixels():
    found, truth = torch.zeros(4, 3, 3, dtype=torch.bool), torch.zeros(4, 3, 3, dtype=torch.bool)
    found[0, 0], truth[0, :, 0] = True, True  # a row and a column: one pixel of five
    found[1], truth[2] = True, True
    assert intersection_over_union(found, truth).tolist() == [0.2, 0, 0, 1]
    assert torch.equal(intersection_over_union(found, found), torch.ones(4, dtype=torch.float64))
    with pytest.raises(ValueError, match=re.escape("truth must be (..., height, width) bool, got torch.int64")):
        intersection_over_union(found, truth.long())
    with pytest.raises(ValueError, match=re.escape("found and truth must have one shape, got (4, 3, 3) and (2, 3, 3)")):
        intersection_over_union(found, truth[:2])


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_image_has_no_threshold():
    with pytest.raises(ValueError, match=r"images must be \(..., height, width\), got shape \(4,\)"):
        otsu_threshold(torch.zeros(4))
    with pytest.raises(TypeError, match=r"images must be floating point, got torch\.uint8"):
        otsu_threshold(torch.zeros(4, 4, dtype=torch.uint8))


def test_otsus_threshold_maximises_the_variance_between_the_groups():
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(5, 7, 9, generator=generator, dtype=torch.float64)

    def between(image, level):
        low, high = image[image < level], image[image >= level]
        if not len(low) or not len(high):
            return 0.0
        return (len(low) * len(high) / image.numel() ** 2 * (low.mean() - high.mean()) ** 2).item()

    for image, level in zip(images, otsu_threshold(images).tolist(), strict=True):
        best = max(between(image, k / 64) for k in range(1, 64))
        assert between(image, level) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_overlaps_are_those_of_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    generator = torch.Generator().manual_seed(seed)
    found, truth = torch.rand(2, 3, 9, 8, generator=generator) < 0.4
    for k in range(3):
        masks = truth[k].flatten().numpy(), found[k].flatten().numpy()
        assert intersection_over_union(found, truth)[k] == pytest.approx(metrics.jaccard_score(*masks), abs=1e-12)
        assert dice(found, truth)[k] == pytest.approx(metrics.f1_score(*masks), abs=1e-12)
    empty = torch.zeros(2, 2, dtype=torch.bool)
    assert dice(empty, empty) == 1


def test_otsus_threshold_splits_as_scikit_image_does():
    filters = pytest.importorskip("skimage.filters", reason="scikit-image is not installed")
    generator = np.random.default_rng(0)
    image = np.concatenate([generator.normal(0.3, 0.05, 2000), generator.normal(0.7, 0.05, 2000)]).clip(0, 1)
    image[:2] = 0.0, 1.0  # its histogram begins at the least value
    ours = otsu_threshold(torch.from_numpy(image.reshape(50, 80)), levels=256)
    assert abs(float(ours) - filters.threshold_otsu(image.reshape(50, 80))) <= 2 / 256
    batch = torch.from_numpy(image.reshape(2, 2, 20, 50))
    assert otsu_threshold(batch).shape == (2, 2)
