"""What the claims about angles and distances do not say: bad input, dtypes, shapes, gradients."""

import math

import pytest
import torch

from lemmata.foundations.linear_algebra.angles import angle_between, cosine_of_angle, squared_distances

X, Y = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 2.0], [3.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    x, y = X.to(dtype), Y.to(dtype)
    for value in (cosine_of_angle(x, x), angle_between(x, y[0]), squared_distances(x, y)):
        assert value.dtype is dtype


def test_batches_and_single_vectors_are_taken():
    assert cosine_of_angle(X[0], Y).shape == (3,)
    assert angle_between(X[:, None], Y).shape == (2, 3)
    assert squared_distances(X[:1], Y[:1]).shape == (1, 1)
    assert squared_distances(torch.ones(4, 1, 2, 3), torch.ones(5, 6, 3)).shape == (4, 5, 2, 6)


def test_parity_with_torch():
    x, y = torch.randn(50, 7, dtype=torch.float64), torch.randn(40, 7, dtype=torch.float64)
    torch.testing.assert_close(cosine_of_angle(x[:40], y), torch.cosine_similarity(x[:40], y))
    torch.testing.assert_close(squared_distances(x, y), torch.cdist(x, y) ** 2)


def test_scales_and_tiny_angles_lose_no_digits():
    u, v = torch.randn(2, 100, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    far_apart = cosine_of_angle(2.0**600 * u, 2.0**-600 * v)
    torch.testing.assert_close(far_apart, cosine_of_angle(u, v), rtol=0.0, atol=1e-14)
    torch.testing.assert_close(cosine_of_angle(u[0], v[0]), cosine_of_angle(u, v)[0], rtol=0.0, atol=1e-14)
    # The cosine of such an angle is 1 to 15 digits; the angle itself is still right to as many.
    one, other = torch.tensor([[1.0, 0.0], [1.0, 1e-9]], dtype=torch.float64)
    assert float(angle_between(one, other)) == pytest.approx(1e-9, rel=1e-12)


def test_distances_far_from_the_origin_are_as_good_as_the_points_there():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(size, 3, generator=generator, dtype=torch.float64) for size in (30, 20))
    far = torch.tensor([1e6, -1e6, 0.0], dtype=torch.float64)  # x and y lose 20 bits there
    expected = (x[:, None] - y).square().sum(-1)
    torch.testing.assert_close(squared_distances(x + far, y + far), expected, rtol=0.0, atol=2.0**-52 * 2**20 * 1000)
    assert (squared_distances(x, x) >= 0).all()
    sets = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(squared_distances(sets, sets), torch.cdist(sets, sets) ** 2, rtol=0.0, atol=1e-12)


def test_gradients_agree_with_differences():
    x, y = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for function in (cosine_of_angle, angle_between, squared_distances):
        assert torch.autograd.gradcheck(function, (x, y))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: cosine_of_angle(X, torch.zeros(2)), ValueError, "y must hold no zero vector"),
        (lambda: angle_between(torch.zeros(2), Y), ValueError, "x must hold no zero vector"),
        (lambda: cosine_of_angle(torch.tensor(1.0), Y), ValueError, r"x must be a \(..., features\) tensor"),
        (lambda: cosine_of_angle(X, torch.ones(3)), ValueError, r"y must be a \(..., 2\) tensor to fit x"),
        (lambda: cosine_of_angle(X, Y), ValueError, "x and y must have leading axes that broadcast"),
        (lambda: cosine_of_angle(X.double(), X), TypeError, "y must have the dtype of x"),
        (lambda: squared_distances(X[0], Y), ValueError, r"x must be a \(..., points, features\) tensor"),
        (lambda: squared_distances(X, Y[0]), ValueError, r"y must be a \(..., points, features\) tensor"),
        (lambda: squared_distances(X, Y * math.inf), ValueError, "y must be finite"),
        (lambda: squared_distances(X, torch.ones(2, 3)), ValueError, r"y must be a \(..., 2\) tensor to fit x"),
        (
            lambda: squared_distances(torch.ones(2, 2, 2), torch.ones(3, 2, 2)),
            ValueError,
            "x and y must have leading axes that broadcast",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
