"""Energy and Cramér distances: SciPy's numbers, slices, gradients, half precision, and what is refused."""

import pytest
import torch
from scipy import stats

from lemmata.measure.sample_distances import ROWS, cramer_distance, energy_distance, sliced_cramer


def samples(n=30, m=41, features=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, features, generator=generator, dtype=dtype)
    return x, 0.5 + 1.3 * torch.randn(m, features, generator=generator, dtype=dtype)


def test_on_the_line_it_is_the_square_of_scipys():
    x, y = samples(features=1)
    theirs = stats.energy_distance(x[:, 0].numpy(), y[:, 0].numpy()) ** 2
    assert energy_distance(x, y).item() == pytest.approx(theirs, rel=1e-12)
    assert 2 * cramer_distance(x[:, 0], y[:, 0]).item() == pytest.approx(theirs, rel=1e-12)
    assert sliced_cramer(x, y).item() == pytest.approx(theirs / 2, rel=1e-12)  # the line is its only slice


def test_a_sample_is_at_no_distance_from_itself_and_the_order_does_not_matter():
    x, y = samples()
    assert energy_distance(x, x.flip(0)).item() == pytest.approx(0, abs=1e-12)
    assert energy_distance(x, y).item() == pytest.approx(energy_distance(y, x).item())
    assert energy_distance(x, x, unbiased=True) < 0  # without the pairs of a point with itself
    assert energy_distance(x[:1], y[:1]).item() == pytest.approx(2 * (x[0] - y[0]).norm().item())


def test_many_points_are_taken_in_blocks():
    x, y = samples(n=ROWS + 5, m=7)
    whole = 2 * torch.cdist(x, y).mean() - torch.cdist(x, x).mean() - torch.cdist(y, y).mean()
    assert energy_distance(x, y).item() == pytest.approx(whole.item(), rel=1e-6)


def test_drawn_directions_come_near_and_are_those_of_the_generator():
    x, y = samples()
    drawn = [sliced_cramer(x, y, 2000, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(*drawn)
    assert drawn[0].item() == pytest.approx(sliced_cramer(x, y).item(), rel=0.05)
    lines = torch.eye(3).double()
    assert torch.allclose(sliced_cramer(x, y, lines), cramer_distance(x.mT, y.mT).mean())


def test_gradients_are_right_and_none_at_equal_points():
    x, y = samples(2, 3)
    x.requires_grad_()
    for distance in (energy_distance, sliced_cramer, lambda a, b: cramer_distance(a.mT, b.mT).sum()):
        assert torch.autograd.gradcheck(lambda x, distance=distance: distance(x, y), x)
    energy_distance(x, x.detach()).backward()
    assert bool(x.grad.isfinite().all())


def test_half_precision_is_widened_and_near_points_keep_their_distance():
    x, y = samples(dtype=torch.float32)
    assert energy_distance(x.bfloat16(), y.bfloat16()).item() == pytest.approx(energy_distance(x, y).item(), rel=0.03)
    far = torch.tensor([[1000.0], [1000.001]])
    assert energy_distance(far[:1], far[1:]).item() == pytest.approx(2 * (far[1] - far[0]).item(), rel=1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda x, y: (x[:, :2], y), ValueError, "x and y must have the same number of features, got 2 and 3"),
        (lambda x, y: (x.float(), y), TypeError, "x and y must have one dtype"),
        (lambda x, y: (x[0], y), ValueError, "x must be a .points, features. tensor"),
        (lambda x, y: (x * torch.nan, y), ValueError, "x must be finite"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(change, error, words):
    for distance in (energy_distance, sliced_cramer):
        with pytest.raises(error, match=words):
            distance(*change(*samples()))


@pytest.mark.usefixtures("unchecked")
def test_an_unbiased_estimate_needs_two_points():
    x, y = samples()
    with pytest.raises(ValueError, match="x must have at least 2 points, got 1"):
        energy_distance(x[:1], y, unbiased=True)
    with pytest.raises(ValueError, match="directions must be >= 1, got 0"):
        sliced_cramer(x, y, 0)
    with pytest.raises(ValueError, match="directions must have 3 features"):
        sliced_cramer(x, y, torch.eye(2).double())
    with pytest.raises(ValueError, match="x and y must have the same batch"):
        cramer_distance(x, y[:3])
