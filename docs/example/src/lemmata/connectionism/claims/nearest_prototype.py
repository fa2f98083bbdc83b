"""Nearest prototypes, against a hyperplane."""

from lemmata.connectionism.nearest_prototype import NearestPrototype
from lemmata.judge import claim, close, lie


@claim("nearest_prototype.boundary")
@lie("the prototypes' difference counted once", factor=1.0)
@lie("the boundary goes through the origin", offset=0.0)
def two_prototypes_are_a_hyperplane(draw, factor=2.0, offset=1.0, classifier=NearestPrototype):
    """The logits' difference of two classes, against the hyperplane halfway between their prototypes."""
    x, two = draw.normal(100, 5), classifier(inputs=5, classes=2).double()
    p, q = two.prototypes.detach()  # (inputs,) each
    plane = factor * x @ (p - q) + offset * (q @ q - p @ p)
    return close(two(x)[:, 0] - two(x)[:, 1], plane, ulps=1000)
