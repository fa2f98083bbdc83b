"""PointNet: which points decide, what its matrices are, and what its heads see."""

import torch

from lemmata.geometric.claims.drawn_networks import drawn
from lemmata.geometric.pointnet import (
    PointFeatures,
    PointNetClassifier,
    PointNetFeatures,
    PointNetSegmenter,
    TransformNetwork,
)
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie


def shuffled(draw, x, times=4):
    """A cloud, (1, points, 3), in several orders, and these orders: (times, points, 3), (times, points)."""
    order = torch.stack([draw.permutation(x.shape[1]) for _ in range(times)])
    return x[0][order], order


def critical(features, x):
    """The points of one cloud without which the feature of the whole is another, each left out by itself."""
    count = x.shape[1]
    others = torch.stack([torch.cat([torch.arange(m), torch.arange(m + 1, count)]) for m in range(count)])
    changed = (features(x[0][others]).whole - features(x).whole).abs().amax(1)  # (points,)
    return x[:, changed > 1e-9]


class Summed(PointNetFeatures):
    """The sum over the points in place of the maximum."""

    def forward(self, x):
        found = super().forward(x)
        return found._replace(whole=self.deep(found.local.mT).sum(-1))


def multiplied(matrix, x):
    return matrix @ x


def untouched(matrix, x):
    return x


def by_parts(features, x, moved):
    """Features of the points and of the whole from the parts of the network, one after the other."""
    points = x.mT  # (batch, 3, points)
    local = features.local(moved(features.input_transform(points), points))
    local = moved(features.feature_transform(local), local)  # (batch, 64, points)
    return local.mT, features.deep(local).amax(-1)


@claim("sets.pointnet")
@lie("the T-Nets move clouds rigidly", printed="000/1", rigid=True)
@lie("with sums in place of maxima a point that comes twice counts once too", network=Summed)
@lie("the feature of the whole has 1088 numbers", whole=1088)
@lie("that of a point has 128", local=128)
@lie("the matrices are found and not applied", moved=untouched)
def few_points_decide(draw, rigid=False, whole=1024, local=64, moved=multiplied, network=PointNetFeatures):
    """The parts one by one; a cloud in other orders, with points twice, and without the points that do not matter."""
    x, features = draw.normal(1, 30, 3), drawn(draw, network())
    found, in_order, (each, all_together) = features(x), features(shuffled(draw, x)[0]), by_parts(features, x, moved)
    twice = features(torch.cat([x, x[:, :7]], 1))
    transform = found.transforms[0][0]
    small, cloud = drawn(draw, network(width=16, transformed=False)), draw.normal(1, 150, 3)
    deciding = critical(small, cloud)
    return all_of(
        exactly([found.local.shape[-1], found.whole.shape[-1]], [local, whole]),
        close(found.local, each, ulps=4096),
        close(found.whole, all_together, ulps=4096),
        close(torch.cat([in_order.whole, twice.whole]), found.whole.expand(5, -1), ulps=4096),
        exactly(torch.allclose(torch.cdist(x @ transform.mT, x @ transform.mT), torch.cdist(x, x), rtol=1e-3), rigid),
        at_most(deciding.shape[1], 16),
        close(small(deciding).whole, small(cloud).whole, ulps=4096),
    )


def gram(transform):
    return transform @ transform.mT


def unchanged(transform):
    return transform


@claim("sets.pointnet.tnet")
@lie("the transformed cloud is the same however the cloud was rotated", aligned=True)
@lie("the penalty compares the matrix itself with the unit matrix", product=unchanged)
@lie("the norm is not squared", power=1.0)
def a_matrix_of_the_cloud(draw, aligned=False, product=gram, power=2.0, network=TransformNetwork):
    """New networks and drawn ones; the penalty of drawn and of orthogonal matrices by their singular values."""
    matrices, alike, same, penalties, norms = [], [], [], [], []
    for k in (3, 64):
        x = draw.normal(1, 25, k)
        fresh, model = network(k).double().eval(), drawn(draw, network(k, width=64))
        transform, rotation = model(x.mT), draw.orthogonal(k)
        matrices += [fresh(x.mT).detach().flatten(), model(shuffled(draw, x)[0].mT).flatten()]
        alike += [torch.eye(k).flatten().double(), transform.expand(4, k, k).flatten()]
        moved = x @ rotation @ model((x @ rotation).mT).mT
        same.append(torch.allclose(moved, x @ transform.mT, rtol=1e-3))
        for each in (transform, rotation[None], torch.diag(draw.signs(k))[None]):
            penalties.append(PointFeatures(x, x, (each,)).orthogonality_penalty())
            norms.append(torch.linalg.matrix_norm(torch.eye(k).double() - product(each)[0]) ** power)
    return all_of(
        close(torch.cat(matrices), torch.cat(alike), ulps=4096),
        exactly(same, [aligned, aligned]),
        close(torch.stack(penalties), torch.stack(norms), ulps=1024),
    )


class OfTheFirstPoint(PointNetClassifier):
    """The class from the deep features of the first point."""

    def forward(self, x):
        return self.head(self.features.deep(self.features(x).local.mT)[..., 0])


class OfTheMean(PointNetClassifier):
    """The class from the mean of the points' features."""

    def forward(self, x):
        return self.head(self.features.deep(self.features(x).local.mT).mean(-1))


@claim("sets.pointnet.classification")
@lie("a head on the first point's feature is order-invariant", network=OfTheFirstPoint)
@lie("so is one on the mean, and it too sees the points that decide alone", network=OfTheMean)
def the_class_is_that_of_the_whole(draw, network=PointNetClassifier):
    """Class probabilities of a cloud in other orders, and of its few points that decide the feature of the whole."""
    x, model = draw.normal(1, 100, 3), drawn(draw, network(classes=5, width=16, transformed=False))
    large, few = drawn(draw, network(classes=5)), critical(model.features, x)
    return all_of(
        close(large(shuffled(draw, x)[0]).softmax(-1), large(x).softmax(-1).expand(4, -1), ulps=4096),
        close(model(few).softmax(-1), model(x).softmax(-1), ulps=4096),
        at_most(few.shape[1], 16),
    )


class OfPointsAlone(PointNetSegmenter):
    """The classes from the points' own features, with zeros for the whole's."""

    def forward(self, x):
        found = self.features(x)
        return self.head(torch.cat([found.local, 0 * found.whole[:, None].expand(-1, x.shape[1], -1)], -1).mT).mT


class OfTheWholeAlone(PointNetSegmenter):
    """The classes from the whole's feature, with zeros for the points' own."""

    def forward(self, x):
        found = self.features(x)
        return self.head(torch.cat([0 * found.local, found.whole[:, None].expand(-1, x.shape[1], -1)], -1).mT).mT


@claim("sets.pointnet.segmentation")
@lie("the points' own features are enough", network=OfPointsAlone)
@lie("the feature of the whole is enough", network=OfTheWholeAlone)
@lie("the network sees 1024 numbers of each point", inputs=1024)
def each_point_beside_the_whole(draw, inputs=1088, network=PointNetSegmenter):
    """A cloud in other orders; one point in two clouds; two points of one cloud, and one that comes twice."""
    model, plain = drawn(draw, network(classes=4)), drawn(draw, network(classes=4, transformed=False))
    x, other = draw.normal(1, 30, 3), draw.normal(1, 30, 3)
    moved, order = shuffled(draw, x)
    other[:, 0] = x[:, 0]
    classes, elsewhere = plain(x)[0].softmax(-1), plain(other)[0].softmax(-1)  # (points, classes)
    twice = model(torch.cat([x, x[:, :1]], 1))[0]
    return all_of(
        close(model(moved), model(x)[0][order], ulps=4096),
        close(twice[-1], twice[0], ulps=4096),
        # Without T-Nets a point's own feature is the same in both clouds: only the whole's tells them apart, by 1e-4
        # and more, where rounding is below 1e-12.
        always([(classes[0] - elsewhere[0]).abs().max() > 1e-9, (classes[0] - classes[1]).abs().max() > 1e-9]),
        exactly(next(model.head.parameters()).shape[1], inputs),
    )
