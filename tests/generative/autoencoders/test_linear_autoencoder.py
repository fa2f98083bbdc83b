"""The linear autoencoder and principal component analysis: parity with scikit-learn, offsets, refusals."""

import math

import pytest
import torch

from lemmata.data import load
from lemmata.generative.autoencoders import PCA, LinearAutoencoder


def digits():
    return load("digits").train.x.flatten(1).double()


@pytest.mark.parametrize("components", [1, 10, 61])
def test_scikit_learns_pca(components):
    decomposition = pytest.importorskip("sklearn.decomposition")
    x = digits()
    peer = decomposition.PCA(components, svd_solver="full").fit(x.numpy())
    ours = PCA(64, components, dtype=torch.float64).fit(x)
    signs = (ours.axes * torch.from_numpy(peer.components_)).sum(1).sign()
    assert torch.allclose(signs[:, None] * ours.axes, torch.from_numpy(peer.components_), atol=1e-6)
    assert torch.allclose(ours.transform(x) * signs, torch.from_numpy(peer.transform(x.numpy())), atol=1e-6)
    again = torch.from_numpy(peer.inverse_transform(peer.transform(x.numpy())))
    assert torch.allclose(ours.inverse_transform(ours.transform(x)), again)
    assert ours.explained.item() == pytest.approx(peer.explained_variance_ratio_.sum())
    assert torch.allclose(ours.variances * len(x) / (len(x) - 1), torch.from_numpy(peer.explained_variance_))


def test_a_projection_that_is_done_twice_is_done():
    x, ours = digits(), PCA(64, 10, dtype=torch.float64).fit(digits())
    assert torch.allclose(ours(ours(x)), ours(x))
    assert torch.allclose(ours.axes @ ours.axes.mT, torch.eye(10).double(), atol=1e-12)
    assert torch.allclose(ours.transform(x[0]), ours.transform(x)[0])
    low = PCA(64, 10).fit(x.float())
    assert torch.allclose(low(x.float()).double(), ours(x), atol=1e-5)
    other = PCA(64, 10)
    other.load_state_dict(low.state_dict())
    assert torch.equal(other(x.float()), low(x.float()))


def test_an_offset_makes_up_for_data_off_the_origin():
    x = 5 + torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).double() * torch.tensor([3, 2, 1, 0.5])
    best = PCA(4, 2, dtype=torch.float64).fit(x)
    losses = []
    for bias, axes in ((True, best.axes), (False, torch.linalg.svd(x).Vh[:2])):
        model = LinearAutoencoder(4, 2, bias=bias, dtype=torch.float64)
        with torch.no_grad():
            model.encoder.weight.copy_(axes)
            model.decoder.weight.copy_(axes.mT)
            if bias:
                model.decoder.bias.copy_(best.mean - best.mean @ axes.mT @ axes)
        loss = model.loss(x)
        assert all(slope.abs().max() < 1e-10 for slope in torch.autograd.grad(loss, list(model.parameters())))
        losses.append(loss.item())
    assert losses[0] == pytest.approx((best(x) - x).square().sum(1).mean().item() / 2)
    assert losses[1] > 1.05 * losses[0]


def test_the_code_is_what_the_matrices_say():
    model, x = LinearAutoencoder(5, 2), torch.randn(3, 7, 5)
    assert torch.allclose(model.encode(x), x @ model.encoder.weight.mT, atol=1e-6)
    assert torch.allclose(model(x), x @ model.matrix.mT, atol=1e-6)
    assert torch.allclose(model.loss(x), 0.5 * (model(x) - x).square().sum(-1).mean())
    assert torch.equal(model.decode(model.encode(x)), model(x))


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    with pytest.raises(ValueError, match="components must be <= 3, got 4"):
        PCA(3, 4)
    with pytest.raises(ValueError, match="x must hold more points than the 2 components, got 2: take more"):
        PCA(3, 2).fit(torch.randn(2, 3))
    with pytest.raises(ValueError, match="x must be finite, found 1 NaN value"):
        PCA(2, 1).fit(torch.tensor([[0.0, math.nan], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="code_size must be >= 1, got 0"):
        LinearAutoencoder(3, 0)
    with pytest.raises(ValueError, match="z must have 2 inputs on its last axis"):
        LinearAutoencoder(5, 2).decode(torch.randn(4, 3))
