r"""PointNet: clouds of points in space, classified as a whole or point by point."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["PointFeatures", "PointNetClassifier", "PointNetFeatures", "PointNetSegmenter", "TransformNetwork"]


class PointFeatures(NamedTuple):
    """What PointNet knows of a cloud: of each point, of the whole, and the matrices by which it was transformed.

    Shapes:
        local: (batch, points, 64)    whole: (batch, 1024)    transforms: matrices (batch, k, k), those of features last
    """

    local: Tensor
    whole: Tensor
    transforms: tuple[Tensor, ...]

    def orthogonality_penalty(self) -> Tensor:
        r"""$\|I - TT^\top\|_F^2$ of the last matrix, mean over the batch: zero iff it is orthogonal.

        In float32 at least, also under autocast: eight bits do not tell an orthogonal matrix from its neighbours.
        """
        if not self.transforms:
            return self.whole.new_zeros(())
        transform = self.transforms[-1]
        transform = transform.to(torch.promote_types(transform.dtype, torch.float32))
        eye = torch.eye(transform.shape[-1], dtype=transform.dtype, device=transform.device)
        with torch.autocast(transform.device.type, enabled=False):
            return (eye - transform @ transform.mT).square().sum((1, 2)).mean()


def shared(widths: Sequence[int], last: bool = True, **factory: object) -> nn.Sequential:
    """A network of each point by itself: linear layers with batch normalisation and rectifiers, also after the last."""
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(itertools.pairwise(widths), 2):
        layers.append(nn.Conv1d(inputs, outputs, 1, **factory))  # type: ignore[arg-type]
        if last or number < len(widths):
            layers += [nn.BatchNorm1d(outputs, **factory), nn.ReLU()]  # type: ignore[arg-type]
    return nn.Sequential(*layers)


def dense(widths: Sequence[int], dropout: float = 0.0, **factory: object) -> nn.Sequential:
    """Linear layers with batch normalisation and rectifiers between them; dropout before the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(inputs, outputs, **factory), nn.BatchNorm1d(outputs, **factory), nn.ReLU()]  # type: ignore[arg-type]
    return nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(*widths[-2:], **factory))  # type: ignore[arg-type]


@system(
    "transform_network", title="T-Net", kind="module", example="TransformNetwork(3, width=16)(torch.randn(4, 3, 10))"
)
class TransformNetwork(nn.Module):
    r"""A small PointNet that answers with a matrix, by which all points of the cloud are then multiplied.

    $$ T(X) \in \mathbb R^{k \times k}, \qquad T(PX) = T(X), \qquad x_m \mapsto T(X)\, x_m $$

    The matrix does not depend on the order of the points, so that the transformed cloud follows it. It is any matrix,
    no rotation: only a penalty draws it towards orthogonal ones. At first it is the unit matrix. Batch normalisation
    needs at least two clouds in training.

    Shapes:
        x: (batch, k, points)    returns: (batch, k, k)

    Claims: sets.pointnet.tnet
    Source: C. Qi, H. Su, K. Mo and L. Guibas, PointNet (2017).

    >>> torch.equal(TransformNetwork(3)(torch.randn(2, 3, 50)), torch.eye(3).expand(2, 3, 3))
    True
    """

    def __init__(
        self,
        features: int,
        width: int = 1024,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.features, self.width = validate.count("features", features), validate.count("width", width)
        self.points = shared([features, 64, 128, width], **factory)
        self.head = dense([width, 512, 256, features * features], **factory)
        nn.init.zeros_(self.head[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(self.head[-1].bias)  # type: ignore[arg-type]

    def forward(self, x: Float[Tensor, "batch k points"]) -> Float[Tensor, "batch k k"]:
        if validate.tensor("x", x).ndim != 3 or x.shape[1] != self.features or not x.shape[2]:
            wanted = f"(batch, {self.features}, points) with at least one point"
            raise ValueError(f"x must be {wanted}, got shape {tuple(x.shape)}")
        if not x.is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        found = self.head(_several_clouds(self, self.points(x).amax(-1)))  # (batch, k * k)
        eye = torch.eye(self.features, dtype=x.dtype, device=x.device)
        return eye + found.unflatten(1, (self.features, self.features))


def _several_clouds(module: nn.Module, whole: Tensor) -> Tensor:
    """Features of whole clouds, of two at least in training: the variance of one has no meaning."""
    if module.training and len(whole) < 2:
        fix = "give it several clouds at once, or call eval()"
        raise ValueError(f"x must hold at least 2 clouds in training, for batch normalisation, got {len(whole)}: {fix}")
    return whole


@system(
    "pointnet_features",
    title="PointNet's features",
    kind="module",
    example="PointNetFeatures(width=16)(torch.randn(4, 10, 3))",
)
class PointNetFeatures(nn.Module):
    r"""Features of each point and of the whole cloud.

    $$ \text{points} \xrightarrow{T_3} \cdot \xrightarrow{\text{shared}} 64 \xrightarrow{T_{64}} \cdot
       \xrightarrow{\text{shared}} 1024 \xrightarrow{\max} \text{whole} $$

    The maximum over the points makes the whole's feature blind to their order and, in evaluation mode, to points that
    come twice. Without T-Nets some points decide it alone: without the others it is the same.

    Shapes:
        x: (batch, points, dimensions)    returns: `PointFeatures`

    Claims: sets.pointnet
    Source: Qi et al. 2017.

    >>> found = PointNetFeatures()(torch.randn(2, 50, 3))
    >>> found.local.shape, found.whole.shape
    (torch.Size([2, 50, 64]), torch.Size([2, 1024]))
    """

    def __init__(
        self,
        dimensions: int = 3,
        width: int = 1024,
        transformed: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.dimensions, self.width = validate.count("dimensions", dimensions), validate.count("width", width)
        self.transformed = validate.flag("transformed", transformed)
        self.input_transform = TransformNetwork(dimensions, width, **factory) if transformed else None
        self.local = shared([dimensions, 64, 64], **factory)
        self.feature_transform = TransformNetwork(64, width, **factory) if transformed else None
        self.deep = shared([64, 64, 128, width], **factory)

    def forward(self, x: Float[Tensor, "batch points dimensions"]) -> PointFeatures:
        validate.inputs("x", x, self.dimensions)
        if x.ndim != 3 or not x.shape[1]:
            wanted = f"(batch, points, {self.dimensions}) with at least one point"
            raise ValueError(f"x must be {wanted}, got shape {tuple(x.shape)}")
        transforms = []
        h = x.mT  # (batch, dimensions, points)
        if self.input_transform is not None:
            transforms.append(self.input_transform(h))
            h = transforms[-1] @ h
        h = self.local(h)  # (batch, 64, points)
        if self.feature_transform is not None:
            transforms.append(self.feature_transform(h))
            h = transforms[-1] @ h
        return PointFeatures(h.mT, self.deep(h).amax(-1), tuple(transforms))


@system(
    "pointnet",
    title="PointNet",
    kind="module",
    example="PointNetClassifier(classes=5, width=16)(torch.randn(4, 10, 3))",
)
class PointNetClassifier(nn.Module):
    r"""The class of a cloud of points, whatever their order: a network of the whole's feature.

    Shapes:
        x: (batch, points, dimensions)    returns: (batch, classes) logits

    Claims: sets.pointnet.classification
    Source: Qi et al. 2017.

    >>> PointNetClassifier(classes=7).eval()(torch.randn(2, 50, 3)).shape
    torch.Size([2, 7])
    """

    def __init__(
        self,
        classes: int,
        dimensions: int = 3,
        width: int = 1024,
        transformed: bool = True,
        dropout: float = 0.3,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.classes, self.dropout = validate.count("classes", classes), validate.fraction("dropout", dropout)
        self.dimensions, self.width, self.transformed = dimensions, width, transformed
        self.features = PointNetFeatures(dimensions, width, transformed, **factory)
        self.head = dense([width, 512, 256, classes], dropout, **factory)

    def forward(self, x: Float[Tensor, "batch points dimensions"]) -> Float[Tensor, "batch classes"]:
        return self.logits(self.features(x))

    def logits(self, found: PointFeatures) -> Float[Tensor, "batch classes"]:
        """The logits of clouds whose features are known, as where their penalty is asked for too."""
        return self.head(_several_clouds(self, found.whole))


@system(
    "pointnet_segmenter",
    title="PointNet for parts",
    kind="module",
    example="PointNetSegmenter(classes=5, width=16)(torch.randn(4, 10, 3))",
)
class PointNetSegmenter(nn.Module):
    r"""A class for every point: a network, the same for all, of the point's own feature beside the whole's.

    Shapes:
        x: (batch, points, dimensions)    returns: (batch, points, classes) logits

    Claims: sets.pointnet.segmentation
    Source: Qi et al. 2017.

    >>> PointNetSegmenter(classes=4)(torch.randn(2, 50, 3)).shape
    torch.Size([2, 50, 4])
    """

    def __init__(
        self,
        classes: int,
        dimensions: int = 3,
        width: int = 1024,
        transformed: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.classes = validate.count("classes", classes)
        self.dimensions, self.width, self.transformed = dimensions, width, transformed
        self.features = PointNetFeatures(dimensions, width, transformed, **factory)
        self.head = shared([64 + width, 512, 256, 128, 128, classes], last=False, **factory)

    def forward(self, x: Float[Tensor, "batch points dimensions"]) -> Float[Tensor, "batch points classes"]:
        return self.logits(self.features(x))

    def logits(self, found: PointFeatures) -> Float[Tensor, "batch points classes"]:
        """The logits of the points of clouds whose features are known."""
        whole = found.whole[:, None].expand(-1, found.local.shape[1], -1)  # (batch, points, width)
        return self.head(torch.cat([found.local, whole], -1).mT).mT  # (batch, points, classes)
