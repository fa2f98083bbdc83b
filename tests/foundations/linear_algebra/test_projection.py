"""What the claims about planes and projections do not say: bad input, dtypes, shapes, gradients."""

import math

import pytest
import torch

from lemmata.foundations.linear_algebra.projection import Hyperplane, project_onto_span, projection_matrix

PLANE = Hyperplane(torch.tensor([3.0, 4.0]), 10)


def test_dtypes_are_kept_and_any_leading_axes_answered():
    for dtype in (torch.float32, torch.float64):
        plane = Hyperplane(torch.tensor([3.0, 4.0], dtype=dtype), 10.0)
        assert plane.signed_distance(torch.ones(4, 5, 2, dtype=dtype)).shape == (4, 5)
        assert plane.project(torch.ones(2, dtype=dtype)).dtype is dtype
        assert plane.reflect(torch.ones(4, 5, 2, dtype=dtype)).shape == (4, 5, 2)
        assert projection_matrix(torch.ones(3, 2, 1, dtype=dtype)).shape == (3, 2, 2)
        assert project_onto_span(torch.ones(5, 2, dtype=dtype), torch.ones(2, 1, dtype=dtype)).dtype is dtype


def test_a_plane_shows_its_normal_and_offset():
    assert repr(PLANE) == "Hyperplane(normal=[3.0, 4.0], offset=10)"


def test_the_offset_may_be_a_number_or_a_tensor_of_one():
    for offset in (10, 10.0, torch.tensor(10.0), torch.tensor([10.0])):
        assert Hyperplane(torch.ones(2), offset).offset.shape == ()


@pytest.mark.parametrize(("d", "length"), [(2, 2.0**-400), (3, 3.0), (7, 2.0**400)])
def test_planes_project_and_reflect_along_their_normal(d, length):
    generator = torch.Generator().manual_seed(d)
    normal, p, x = (torch.randn(size, generator=generator, dtype=torch.float64) for size in ((d,), (d,), (20, d)))
    w = length * normal / normal.norm()
    plane, close = Hyperplane.through(p, w), {"rtol": 0.0, "atol": 1e-13}
    moved = (p - x) @ projection_matrix(w[:, None])
    torch.testing.assert_close(plane.project(x) - x, moved, **close)
    torch.testing.assert_close(plane.reflect(x) - x, 2 * moved, **close)
    distance = plane.signed_distance(plane.project(x) + 3 * w / length)
    torch.testing.assert_close(distance, torch.full_like(distance, 3.0), **close)
    assert Hyperplane(w, 2.0).offset == 2


@pytest.mark.parametrize("d", [2, 3, 7])
def test_what_a_projection_leaves_is_orthogonal_to_every_vector(d):
    generator = torch.Generator().manual_seed(d)
    vectors, x = (torch.randn(size, generator=generator, dtype=torch.float64) for size in ((d, 2), (20, d)))
    close = {"rtol": 0.0, "atol": 1e-14 * float(torch.linalg.cond(vectors)) * 100}
    vectors = torch.cat([vectors, vectors.sum(1, keepdim=True)], dim=1)  # some of them dependent
    left, matrix = x - project_onto_span(x, vectors), projection_matrix(vectors)
    torch.testing.assert_close(left @ vectors, torch.zeros(20, 3, dtype=torch.float64), **close)
    torch.testing.assert_close(project_onto_span(vectors.T, vectors), vectors.T, **close)
    torch.testing.assert_close(x @ matrix, x - left, **close)
    torch.testing.assert_close(matrix @ matrix, matrix, **close)


def test_gradients_agree_with_differences():
    normal = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    offset = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda n, b, x: Hyperplane(n, b).project(x), (normal, offset, x))
    vectors = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(project_onto_span, (x, vectors))


def test_nothing_is_left_of_a_projection_onto_everything():
    x = torch.randn(3, dtype=torch.float64)
    torch.testing.assert_close(project_onto_span(x, torch.randn(3, 5, dtype=torch.float64)), x)
    assert project_onto_span(x, torch.zeros(3, 2, dtype=torch.float64)).equal(torch.zeros(3, dtype=torch.float64))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Hyperplane(torch.zeros(2), 1.0), ValueError, "normal must not be zero"),
        (lambda: Hyperplane(torch.ones(2, 2), 1.0), ValueError, "normal must be a tensor with one axis"),
        (lambda: Hyperplane(torch.ones(2), math.nan), ValueError, "offset must be finite, got nan"),
        (lambda: Hyperplane(torch.ones(2), torch.ones(2)), ValueError, "offset must be one number, got shape"),
        (lambda: Hyperplane(torch.ones(2), "1"), TypeError, "offset must be a number, got str"),
        (lambda: Hyperplane.through(torch.ones(3), torch.ones(2)), ValueError, "point must be .* to fit normal"),
        (lambda: PLANE.project(torch.ones(3)), ValueError, r"x must be a \(..., 2\) tensor to fit normal"),
        (lambda: PLANE.signed_distance(torch.ones(2).double()), TypeError, "x must have the dtype of normal"),
        (lambda: projection_matrix(torch.ones(2)), ValueError, r"vectors must be a \(..., features, count\) tensor"),
        (lambda: project_onto_span(torch.ones(3), torch.ones(2, 2)), ValueError, "x must be .* to fit vectors"),
        (
            lambda: project_onto_span(torch.ones(4, 2), torch.ones(3, 2, 2)),
            ValueError,
            "x and vectors must have leading axes that broadcast",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
