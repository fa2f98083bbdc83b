"""PointNet: its shapes, its matrices at the start and after, gradients, dtypes, and refusals that name the fix."""

import pytest
import torch
from torch import nn

from lemmata.geometric.pointnet import (
    PointFeatures,
    PointNetClassifier,
    PointNetFeatures,
    PointNetSegmenter,
    TransformNetwork,
)

HEADS = [PointNetClassifier, PointNetSegmenter]


def small(kind, **words):
    return kind(classes=4, width=32, **words)


def test_shapes_are_those_of_the_paper():
    found = PointNetFeatures()(torch.randn(2, 40, 3))
    assert found.local.shape == (2, 40, 64)
    assert found.whole.shape == (2, 1024)
    assert [tuple(transform.shape) for transform in found.transforms] == [(2, 3, 3), (2, 64, 64)]
    widths = [[len(p) for p in head.parameters() if p.ndim > 1] for head in (
        PointNetClassifier(8).head, PointNetSegmenter(4).head
    )]  # fmt: skip
    assert widths == [[512, 256, 8], [512, 256, 128, 128, 4]]


def test_every_layer_but_a_heads_last_is_normalised_and_rectified():
    features, head = PointNetFeatures(width=16, transformed=False), small(PointNetSegmenter).head
    counts = [[type(layer) for layer in part].count(nn.BatchNorm1d) for part in (features.local, features.deep, head)]
    assert counts == [2, 3, 4]
    assert isinstance(head[-1], nn.Conv1d)
    found = features(torch.randn(2, 20, 3))
    assert found.local.min() == 0
    assert found.whole.min() >= 0


@pytest.mark.parametrize("kind", HEADS)
def test_new_t_nets_change_nothing(kind):
    """At first the matrices are unit matrices: the network is the one without T-Nets that has its weights."""
    transformed, plain, x = small(kind).eval(), small(kind, transformed=False).eval(), torch.randn(2, 20, 3)
    assert "features.input_transform.head.7.weight" in transformed.state_dict()
    assert plain.features.input_transform is None
    plain.load_state_dict({name: value for name, value in transformed.state_dict().items() if "_transform" not in name})
    torch.testing.assert_close(transformed(x), plain(x))


def test_the_penalty_is_zero_for_orthogonal_matrices_alone_and_takes_the_last():
    x = torch.zeros(1, 1)
    orthogonal = torch.linalg.qr(torch.randn(5, 6, 6, dtype=torch.double)).Q
    assert PointFeatures(x, x, (orthogonal,)).orthogonality_penalty() < 1e-28
    # |I - (2I)(2I)'|^2 = 3^2 * 6 for one matrix, and half of it in the mean with an orthogonal one
    double = 2 * torch.eye(6, dtype=torch.double)
    pair = torch.stack([double, orthogonal[0]])
    assert PointFeatures(x, x, (orthogonal, pair)).orthogonality_penalty().item() == pytest.approx(27)
    assert PointFeatures(x, x, ()).orthogonality_penalty() == 0
    features = PointNetFeatures(width=16)
    transform = features.feature_transform
    nn.init.normal_(transform.head[-1].weight, std=0.1)
    features(torch.randn(3, 10, 3)).orthogonality_penalty().backward()
    assert transform.head[-1].weight.grad.any()


def test_the_penalty_is_torchs_norm_squared_and_has_its_gradient():
    x = torch.zeros(1, 1)
    matrices = torch.randn(5, 6, 6, dtype=torch.double, requires_grad=True)
    found = PointFeatures(x, x, (matrices,)).orthogonality_penalty()
    wanted = torch.linalg.matrix_norm(torch.eye(6) - torch.bmm(matrices, matrices.mT)).square().mean()
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)
    assert torch.autograd.gradcheck(lambda t: PointFeatures(x, x, (t,)).orthogonality_penalty(), matrices)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_penalty_is_computed_in_float32_at_least(dtype):
    """In bfloat16 each of 64 diagonal entries of the product is rounded by up to 2^-8, and so not the unit matrix's."""
    x = torch.zeros(1, 1)
    quarter = torch.tensor([[0.6, 0.8], [-0.8, 0.6]]).to(dtype)
    blocks = torch.block_diag(*[quarter] * 32)[None]
    # what remains is the rounding of the entries themselves: 0.36 + 0.64 = 1 up to a few units in the last place
    exact = (torch.eye(64).double() - blocks.double() @ blocks.double().mT).square().sum()
    with torch.autocast("cpu", torch.bfloat16):
        found = PointFeatures(x, x, (blocks,)).orthogonality_penalty()
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(exact.item(), rel=1e-3, abs=1e-10)


def test_the_matrix_multiplies_points_from_the_left():
    features, x = PointNetFeatures(width=16).eval(), torch.randn(1, 12, 3)
    nn.init.normal_(features.input_transform.head[-1].weight)
    transform = features.input_transform(x.mT)[0]
    transformed = torch.stack([transform @ point for point in x[0]])[None]
    features.input_transform, expected = None, features(x)
    torch.testing.assert_close(features(transformed).local, expected.local)


@pytest.mark.parametrize("kind", HEADS)
def test_gradients_are_those_of_finite_differences(kind):
    model = small(kind).double().eval()
    for part in model.modules():
        if isinstance(part, TransformNetwork):
            nn.init.normal_(part.head[-1].weight, std=0.1)
    x = torch.randn(2, 5, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(model, (x,))


@pytest.mark.parametrize("kind", HEADS)
def test_no_clouds_have_no_logits(kind):
    model = small(kind).eval()
    assert model(torch.randn(0, 9, 3)).shape == ((0, 4) if kind is PointNetClassifier else (0, 9, 4))


def test_without_t_nets_points_can_be_learnt_from_one_cloud():
    assert small(PointNetSegmenter, transformed=False).train()(torch.randn(1, 9, 3)).shape == (1, 9, 4)


def test_logits_are_a_function_of_the_features():
    for kind in HEADS:
        model, x = small(kind).eval(), torch.randn(2, 9, 3)
        torch.testing.assert_close(model.logits(model.features(x)), model(x))


def test_clouds_may_have_another_dimension_and_one_point():
    assert PointNetFeatures(dimensions=2, width=16)(torch.randn(3, 1, 2)).transforms[0].shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: small(PointNetClassifier)(torch.ones(2, 9, 2)), ValueError, "x must have 3 inputs on its last axis"),
        (lambda: small(PointNetClassifier)(torch.ones(9, 3)), ValueError, r"x must be \(batch, points, 3\) with at"),
        (lambda: small(PointNetSegmenter)(torch.ones(2, 0, 3)), ValueError, "at least one point, got shape"),
        (lambda: small(PointNetSegmenter)(torch.ones(2, 9, 3).long()), TypeError, r"use x.float\(\)"),
        (lambda: TransformNetwork(3)(torch.ones(2, 9, 3)), ValueError, r"x must be \(batch, 3, points\)"),
        (lambda: small(PointNetSegmenter)(torch.ones(1, 9, 3)), ValueError, r"at least 2 clouds in training.*eval\(\)"),
        (
            lambda: small(PointNetClassifier, transformed=False)(torch.ones(1, 9, 3)),
            ValueError,
            "for batch normalisation, got 1: give it several",
        ),
        (lambda: small(PointNetClassifier)(torch.ones(0, 9, 3)), ValueError, "x must hold at least 2 clouds"),
        (lambda: TransformNetwork(0), ValueError, "features must be"),
        (lambda: PointNetClassifier(0), ValueError, "classes must be"),
        (lambda: PointNetSegmenter(-1), ValueError, "classes must be"),
        (lambda: PointNetFeatures(width=0), ValueError, "width must be"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refusals_name_the_fix(call, error, words):
    with pytest.raises(error, match=words):
        call()
