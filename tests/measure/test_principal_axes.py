"""The plane of greatest variance."""

import torch

from lemmata.measure.principal_axes import principal_plane


def test_the_principal_plane_is_that_of_the_greatest_variance():
    torch.manual_seed(0)
    axes = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64)).Q
    spread = torch.randn(200, 5, dtype=torch.float64) * torch.tensor([5.0, 3.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    places = principal_plane(spread @ axes + 7)
    assert places.shape == (200, 2)
    centred = spread - spread.mean(0)
    torch.testing.assert_close(torch.pdist(places), torch.pdist(centred), rtol=1e-9, atol=1e-9)
    covariance = places.T.cov()
    assert covariance[0, 0] > covariance[1, 1]
    assert abs(float(covariance[0, 1])) < 1e-9 * float(covariance[0, 0])
