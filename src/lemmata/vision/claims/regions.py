"""Regions, thresholds, and all thresholds at once."""

import itertools
import math

import torch

from lemmata.judge import all_of, always, claim, close, exactly, lie
from lemmata.measure.segmentation_measures import dice, intersection_over_union, otsu_threshold
from lemmata.vision.segmentation import connected_parts, is_partition, labels_of, regions_of
from lemmata.vision.thresholding import Threshold, area_under_roc, best_threshold, equal_variance_threshold, roc_curve


def largest_score(scores):
    return regions_of(scores.argmax(-3), scores.shape[-3])


def each_by_itself(scores):
    return scores > 0


@claim("vision.segmentation")
@lie("a threshold for each class makes a partition", classify=each_by_itself)
@lie("overlapping regions are a segmentation", overlap=1)
@lie("Dice is the intersection over union", factor=1.0)
def every_pixel_in_one_region(draw, classify=largest_score, overlap=0, factor=2.0):
    """Label maps, regions with a pixel too many or too few, the parts of a mask, and both measures of agreement."""
    scores = draw.normal(6, 4, 9, 11)
    regions = classify(scores)
    times = torch.stack([region.long().sum(0) for region in regions])
    row, column, k = (int(draw.integers(0, most, 1)) for most in (9, 11, 4))
    more, fewer = largest_score(scores[0]), largest_score(scores[0])
    more[:, row, column] = torch.arange(4) <= overlap
    fewer[:, row, column] = False
    found, truth = draw.uniform(2, 20, 7, 8) < 0.5
    shared, either = (found & truth).double().sum((1, 2)), (found | truth).double().sum((1, 2))
    overlaps = intersection_over_union(found, truth)
    parts = connected_parts(found[k])
    return all_of(
        always(is_partition(regions)),
        exactly(times, torch.ones_like(times)),
        exactly(labels_of(largest_score(scores)), scores.argmax(1)),
        exactly([bool(is_partition(more)), bool(is_partition(fewer))], [True, False]),
        always(is_partition(regions_of(parts, int(parts.max()) + 1))),
        close(overlaps, shared / either),
        close(dice(found, truth), factor * overlaps / (factor - 1 + overlaps)),
    )


class Above(Threshold):
    def forward(self, image):
        return image > self.level


def normal_cdf(z):
    return 0.5 * torch.erfc(-z / math.sqrt(2))


def normal_quantiles(n):
    """The middles of n equally likely parts of the standard normal distribution: a sample without chance."""
    return torch.special.ndtri((torch.arange(n, dtype=torch.float64) + 0.5) / n)


@claim("vision.thresholding")
@lie("halfway between the means, whatever the fractions", prior=0.0)
@lie("pixels equal to the threshold are dark", threshold=Above)
@lie("masks grow with the threshold", grows=True)
def where_both_classes_are_equally_likely(draw, prior=1.0, threshold=Threshold, grows=False):
    """Densities and accuracy at the threshold of two Gaussians; an image made of both; masks and equality."""
    dark, sigma, fraction = 0.3, float(draw.uniform(1, low=0.08, high=0.12)), float(draw.uniform(1, low=0.1, high=0.3))
    bright = float(draw.uniform(1, low=0.6, high=0.7))
    best = (dark + bright) / 2 + prior * sigma**2 / (bright - dark) * math.log((1 - fraction) / fraction)
    t = torch.linspace(dark, bright, 2001, dtype=torch.float64)
    accuracy = (1 - fraction) * normal_cdf((t - dark) / sigma) + fraction * normal_cdf((bright - t) / sigma)
    ones = int(20_000 * fraction)
    image = torch.cat([dark + sigma * normal_quantiles(20_000 - ones), bright + sigma * normal_quantiles(ones)])
    truth = torch.arange(20_000) >= 20_000 - ones
    found = threshold(0.0).fit(image[None], truth[None])
    right = (found(image) == truth).double().mean()
    even = torch.cat([dark + sigma * normal_quantiles(5000), bright + sigma * normal_quantiles(5000)]).clamp(0, 1)
    levels = torch.tensor([0.2, 0.5, 0.8], dtype=torch.float64)
    masks = [threshold(float(level))(image) for level in levels]
    return all_of(
        close(equal_variance_threshold(dark, bright, sigma, fraction), best),
        close(float(t[accuracy.argmax()]), best, within=float(t[1] - t[0])),
        close(best_threshold(image, truth), best, within=0.01),
        close(right, accuracy.max(), within=0.002),
        exactly(threshold(0.5)(levels), [False, True, True]),
        exactly(all(bool((high >= low).all()) for low, high in itertools.pairwise(masks)), grows),
        close(float(otsu_threshold(even.reshape(100, 100), 256)), (dark + bright) / 2, within=3 / 256),
    )


def true_positives(truth, mask):
    return (mask & truth).sum().double() / truth.sum()


def accuracy(truth, mask):
    return (mask == truth).double().mean()


@claim("vision.roc")
@lie("accuracy is monotone in the threshold", rate=accuracy)
@lie("ties count as losses", tie=0.0)
@lie("the curve begins where everything is positive", start=1.0)
def lower_thresholds_find_more(draw, rate=true_positives, tie=0.5, start=0.0):
    """Scores with ties against all pairs, each point against its threshold, and the area under the curve."""
    truth = torch.arange(120) < 50
    scores = draw.integers(0, 12, 120).double() + 2.0 * truth
    false, true, thresholds = roc_curve(scores, truth)
    rates = torch.stack([rate(truth, scores >= level) for level in thresholds])
    gaps = scores[truth][:, None] - scores[~truth]
    area = (0.5 * (true[1:] + true[:-1]) * false.diff()).sum()
    return all_of(
        always(rates.diff() >= 0),
        close(true, torch.stack([true_positives(truth, scores >= level) for level in thresholds])),
        always(torch.cat([false.diff(), true.diff()]) >= 0),
        exactly([float(false[0]), float(true[0]), float(false[-1]), float(true[-1])], [start, start, 1.0, 1.0]),
        close(area_under_roc(scores, truth), ((gaps > 0).double() + tie * (gaps == 0)).mean()),
        close(area, area_under_roc(scores, truth)),
    )
