"""The lab of Gaussian processes: what it shows is what the library predicts."""

import pytest
import torch

from lemmata.kernel import GaussianProcess
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import gaussian_process_lab as lab


def shown(**given):
    return lab.show(read_state(lab.State, {key: str(value) for key, value in given.items()}))


def test_the_band_closes_at_points_without_noise_and_is_the_priors_far_away():
    found = shown(noise=0, points="0,1", length_scale=0.5)
    middle = found["at"].index(0.0)
    assert found["mean"][middle] == pytest.approx(1, abs=1e-3)
    assert found["high"][middle] - found["low"][middle] < 0.05
    assert found["high"][0] == pytest.approx(1.96 * lab.HEIGHT, abs=1e-3)
    assert all(sample[middle] == pytest.approx(1, abs=0.05) for sample in found["drawn"])


def test_heights_move_the_mean_and_not_the_band():
    low, high = shown(points="0,1;2,-1"), shown(points="0,3;2,-1")
    assert low["mean"] != high["mean"]
    widths = [[b - a for a, b in zip(each["low"], each["high"], strict=True)] for each in (low, high)]
    assert widths[0] == pytest.approx(widths[1], abs=2e-3)


def test_the_best_of_the_landscape_is_what_a_fit_finds_nearby():
    state = read_state(lab.State, {})
    found, (x, y) = lab.show(state), state.data()
    fitted = GaussianProcess("rbf", noise=0.04)
    fitted.kernel.variance = lab.HEIGHT**2
    fitted.kernel.log_variance.requires_grad_(False)
    fitted.fit(x, y)
    assert found["likelihood"] <= found["best"]["likelihood"] <= fitted.log_likelihood_ + 1e-6
    assert found["best"]["likelihood"] > fitted.log_likelihood_ - 0.3


def test_a_zigzag_has_two_explanations():
    zigzag = ";".join(f"{k / 2 - 4:g},{1 - 2 * (k % 2)}" for k in range(12))
    values = lab.landscape(read_state(lab.State, {"points": zigzag}))
    assert values[-1, -1] > values[4, -1]  # much noise
    assert values[0, 0] > values[0, 4]  # a short length scale


def test_samples_stay_while_something_is_dragged():
    here, there = shown(samples=5)["drawn"], shown(samples=2)["drawn"]
    assert here[:2] == there
    assert shown(seed=1)["drawn"] != shown()["drawn"]


@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern32", "matern52", "periodic", "linear"])
def test_every_kernel_with_no_point_one_and_many(kernel):
    many = ";".join(f"{k / 4 - 5:g},{(k % 5) / 2:g}" for k in range(lab.MOST))
    for points in ("", "0,0", "1,1;1,1", many):
        found = shown(kernel=kernel, points=points, noise=0)
        assert all(low <= high for low, high in zip(found["low"], found["high"], strict=True))
        assert torch.tensor(found["drawn"]).isfinite().all()
        assert (found["likelihood"] is None) == (points == "")
    with pytest.raises(ValueError, match="points must lie between"):
        shown(points="6,0")
